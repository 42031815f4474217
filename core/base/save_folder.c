/* SPDX-License-Identifier: MIT
 * Atomic folders (save_folder.h). */
#include "core/base/save_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/make_path.h"
#include "core/base/mem.h"
#include "core/base/part_lock.h"

struct wg_save_folder {
    char *path, part[WG_SAVE_FOLDER_PATH];
    int lock; /* the part, locked; -1: it cannot be */
};

static bool is_empty(const char *folder)
{
    int n = 0;
    DIR *d = opendir(folder);
    for (const struct dirent *e; d && (e = readdir(d));) n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    if (d) closedir(d);
    return n == 0;
}

static wg_status make_part(wg_save_folder *f, wg_error *err)
{
    size_t n = strlen(f->path);
    struct stat st;
    while (n > 1 && f->path[n - 1] == '/') n--;
    if (n == 0) return wg_fail(err, WG_EINVAL, "the name of a folder is empty");
    if (n + 40 > sizeof f->part) return wg_fail(err, WG_EINVAL, "a path of %zu bytes; expected a shorter one", n);
    if (stat(f->path, &st) == 0 && !S_ISDIR(st.st_mode))
        return wg_fail(err, WG_EINVAL, "%s: is a file; expected the name of a folder that does not exist, or is empty",
                       f->path);
    if (stat(f->path, &st) == 0 && !is_empty(f->path))
        return wg_fail(err, WG_EINVAL, "%s: is a folder with files in it; name one that does not exist, or remove it first",
                       f->path);
    WG_TRY(wg_make_parents(f->path, err));
    wg_part_sweep(f->path);
    snprintf(f->part, sizeof f->part, "%.*s.%ld.part", (int)n, f->path, (long)getpid());
    while (mkdir(f->part, 0777) == 0) {
        f->lock = open(f->part, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (f->lock < 0 || wg_part_lock(f->lock)) return WG_OK;
        close(f->lock);
    }
    return wg_fail(err, WG_EIO, "%s: cannot create a folder beside it: %s", f->path, strerror(errno));
}

wg_status wg_save_folder_open(wg_save_folder **out, const char *path, wg_error *err)
{
    wg_save_folder *f = *out = wg_calloc(1, sizeof *f);
    if (!f || !(f->path = wg_strdup(path))) {
        wg_free(f);
        *out = NULL;
        return wg_nomem(err, sizeof *f + strlen(path), "a folder");
    }
    f->lock = -1;
    const wg_status s = make_part(f, err);
    if (s == WG_OK) return s;
    wg_free(f->path);
    wg_free(f);
    *out = NULL;
    return s;
}

const char *wg_save_folder_part(const wg_save_folder *f) { return f->part; }

static void close_folder(wg_save_folder *f)
{
    if (f->lock >= 0) close(f->lock);
    wg_free(f->path);
    wg_free(f);
}

void wg_save_folder_abort(wg_save_folder *f)
{
    if (!f) return;
    wg_part_remove_folder(f->part);
    close_folder(f);
}

wg_status wg_save_folder_commit(wg_save_folder *f, wg_error *err)
{
    if (rename(f->part, f->path) == 0) { /* replaces an empty folder */
        close_folder(f);
        return WG_OK;
    }
    const wg_status s = wg_fail(err, WG_EIO, "%s: cannot give the folder its name: %s", f->path, strerror(errno));
    wg_save_folder_abort(f);
    return s;
}
