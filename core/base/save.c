/* SPDX-License-Identifier: MIT
 * Atomic writes of files and folders. */
#include "core/base/save.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/make_path.h"
#include "core/base/mem.h"

/* ---- parts: temporary files and folders beside their final name NAME: NAME.PID-I.part, NAME.PID.part. Their writer holds a
 * lock (flock), which ends with the process in any case, so the next writer of NAME can recognise and remove parts of killed
 * processes. On file systems without locks nothing is removed. */

/* Locks a new part, open as fd, until its last descriptor is closed. False: another process took it for an abandoned one and
 * removed it; make another. */
static bool lock_part(int fd)
{
    struct stat st;
    if (flock(fd, LOCK_EX)) return true; /* no locks, so nothing is swept */
    return fstat(fd, &st) != 0 || st.st_nlink > 0;
}

/* Removes a folder and the files in it. */
static void remove_folder(const char *path)
{
    DIR *d = opendir(path);
    for (const struct dirent *e; d && (e = readdir(d));)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) (void)unlinkat(dirfd(d), e->d_name, 0);
    if (d) closedir(d), (void)rmdir(path);
}

/* "NAME.123.part" or "NAME.123-4.part". */
static bool is_part_of(const char *name, const char *base)
{
    const size_t n = strlen(base);
    if (strncmp(name, base, n) != 0 || name[n] != '.') return false;
    const size_t digits = strspn(name + n + 1, "0123456789-");
    return digits > 0 && !strcmp(name + n + 1 + digits, ".part");
}

/* Removes the abandoned parts of NAME (path): files, and folders of files. */
static void sweep_parts(const char *path)
{
    char folder[PATH_MAX], base[NAME_MAX + 1], part[PATH_MAX + NAME_MAX + 2];
    struct stat st;
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/') n--;
    const char *slash = memrchr(path, '/', n);
    const size_t dir = slash ? (size_t)(slash - path) + 1 : 0;
    if (dir >= sizeof folder || n - dir >= sizeof base) return;
    snprintf(folder, sizeof folder, "%.*s", dir ? (int)dir : 1, dir ? path : ".");
    snprintf(base, sizeof base, "%.*s", (int)(n - dir), path + dir);
    DIR *d = opendir(folder);
    for (const struct dirent *e; d && (e = readdir(d));) {
        if (!is_part_of(e->d_name, base)) continue;
        snprintf(part, sizeof part, "%s/%s", folder, e->d_name);
        const int fd = open(part, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (fd < 0) continue;
        if (flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &st) == 0) {
            if (S_ISDIR(st.st_mode)) remove_folder(part);
            else if (S_ISREG(st.st_mode)) (void)unlink(part);
        }
        close(fd);
    }
    if (d) closedir(d);
}

/* ---- files */

enum { SAVE_BUFFER = 1 << 16 };

struct wg_save {
    int fd, lock;      /* lock: the same open file, which stays locked until the part has its name; -1: none */
    bool direct;       /* not a regular file: no neighbour, no rename */
    char *path, *part; /* part: the neighbour; NULL when direct */
    size_t fill;
    uint64_t written;
    unsigned char buffer[SAVE_BUFFER];
};

static wg_status fail_io(const wg_save *s, int why, wg_error *err)
{
    const char *fix = why == ENOSPC || why == EDQUOT ? "; free some space or write elsewhere"
                      : why == EFBIG                 ? "; raise the file size limit (ulimit -f) or write elsewhere"
                                                     : "";
    return wg_fail(err, WG_EIO, "%s: cannot write after %llu bytes: %s%s", s->path, (unsigned long long)(s->written - s->fill),
                   strerror(why), fix);
}

/* The file that a name refers to: links are followed, so that a link stays a link. */
static char *resolve(const char *path)
{
    char real[PATH_MAX];
    return wg_strdup(realpath(path, real) ? real : path);
}

static wg_status open_part(wg_save *s, wg_error *err)
{
    const size_t size = strlen(s->path) + 48;
    s->part = wg_alloc(size, 1);
    if (!s->part) return wg_nomem(err, size, "a file name");
    sweep_parts(s->path);
    for (int i = 0; i < 100; i++) {
        snprintf(s->part, size, "%s.%ld-%d.part", s->path, (long)getpid(), i);
        s->fd = open(s->part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (s->fd >= 0 && lock_part(s->fd)) {
            s->lock = dup(s->fd);
            return WG_OK;
        }
        if (s->fd >= 0) close(s->fd), s->fd = -1, errno = EEXIST;
        if (errno != EEXIST) break;
    }
    const int why = errno;
    wg_free(s->part);
    s->part = NULL;
    if (why == ENOENT) return wg_fail(err, WG_ENOENT, "%s: cannot create: its folder does not exist; make it first", s->path);
    return wg_fail(err, WG_EIO, "%s: cannot create: %s", s->path, strerror(why));
}

wg_status wg_save_open(wg_save **out, const char *path, wg_error *err)
{
    wg_save *s = wg_alloc(1, sizeof *s);
    if (!s) return wg_nomem(err, sizeof *s, "writing a file");
    s->fd = s->lock = -1;
    s->part = NULL;
    s->fill = 0;
    s->written = 0;
    s->path = resolve(path);
    wg_status st = s->path ? WG_OK : wg_nomem(err, strlen(path) + 1, "a file name");
    struct stat sb;
    s->direct = st == WG_OK && stat(s->path, &sb) == 0 && !S_ISREG(sb.st_mode);
    if (s->direct && S_ISDIR(sb.st_mode)) st = wg_fail(err, WG_EIO, "%s: is a folder; name the file to write", path);
    if (st == WG_OK && s->direct) {
        s->fd = open(s->path, O_WRONLY | O_CLOEXEC);
        if (s->fd < 0) st = wg_fail(err, WG_EIO, "%s: cannot write: %s", path, strerror(errno));
    } else if (st == WG_OK) {
        st = open_part(s, err);
    }
    if (st != WG_OK) {
        wg_save_abort(s);
        return st;
    }
    *out = s;
    return WG_OK;
}

wg_status wg_save_check(const char *path, wg_error *err)
{
    wg_save *s;
    struct stat sb;
    if (stat(path, &sb) == 0 && !S_ISREG(sb.st_mode) && !S_ISDIR(sb.st_mode)) return WG_OK; /* a pipe would be waited for */
    WG_TRY(wg_save_open(&s, path, err));
    wg_save_abort(s);
    return WG_OK;
}

static wg_status put(wg_save *s, const unsigned char *p, size_t n, wg_error *err)
{
    while (n > 0) {
        const ssize_t did = write(s->fd, p, n);
        if (did < 0 && errno == EINTR) continue;
        if (did <= 0) return fail_io(s, did < 0 ? errno : ENOSPC, err);
        p += did;
        n -= (size_t)did;
    }
    return WG_OK;
}

static wg_status flush(wg_save *s, wg_error *err)
{
    WG_TRY(put(s, s->buffer, s->fill, err));
    s->fill = 0;
    return WG_OK;
}

wg_status wg_save_write(wg_save *s, const void *bytes, size_t n, wg_error *err)
{
    if (s->fill + n > SAVE_BUFFER) WG_TRY(flush(s, err));
    if (n >= SAVE_BUFFER) {
        WG_TRY(put(s, bytes, n, err));
    } else if (n > 0) {
        memcpy(s->buffer + s->fill, bytes, n);
        s->fill += n;
    }
    s->written += n;
    return WG_OK;
}

wg_status wg_save_write_at(wg_save *s, uint64_t at, const void *bytes, size_t n, wg_error *err)
{
    const unsigned char *p = bytes;
    while (n > 0) {
        const ssize_t did = pwrite(s->fd, p, n, (off_t)at);
        if (did < 0 && errno == EINTR) continue;
        if (did <= 0) return fail_io(s, did < 0 ? errno : ENOSPC, err);
        p += did;
        at += (uint64_t)did;
        n -= (size_t)did;
        s->written += (uint64_t)did;
    }
    return WG_OK;
}

/* A rename is durable once its folder is. Best effort: not every file system can sync a folder. */
static void sync_folder(const char *path)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    const size_t n = slash ? (size_t)(slash - path) + 1 : 1;
    if (n >= sizeof folder) return;
    memcpy(folder, slash ? path : ".", n);
    folder[n] = '\0';
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return;
    (void)!fsync(fd);
    close(fd);
}

wg_status wg_save_commit(wg_save *s, wg_error *err)
{
    wg_status st = flush(s, err);
    if (st == WG_OK && !s->direct && fsync(s->fd) != 0) st = fail_io(s, errno, err);
    const int fd = s->fd;
    s->fd = -1;
    if (close(fd) != 0 && st == WG_OK) st = fail_io(s, errno, err);
    if (st == WG_OK && !s->direct) {
        if (rename(s->part, s->path) == 0) {
            wg_free(s->part);
            s->part = NULL;
            sync_folder(s->path);
        } else {
            st = wg_fail(err, WG_EIO, "%s: cannot put the finished file in place: %s", s->path, strerror(errno));
        }
    }
    wg_save_abort(s);
    return st;
}

void wg_save_abort(wg_save *s)
{
    if (!s) return;
    if (s->fd >= 0) close(s->fd);
    if (s->part) {
        unlink(s->part);
        wg_free(s->part);
    }
    if (s->lock >= 0) close(s->lock);
    wg_free(s->path);
    wg_free(s);
}

/* ---- folders */

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
    sweep_parts(f->path);
    snprintf(f->part, sizeof f->part, "%.*s.%ld.part", (int)n, f->path, (long)getpid());
    while (mkdir(f->part, 0777) == 0) {
        f->lock = open(f->part, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (f->lock < 0 || lock_part(f->lock)) return WG_OK;
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
    remove_folder(f->part);
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

wg_status wg_save_all(const char *path, const void *bytes, size_t n, wg_error *err)
{
    wg_save *to;
    WG_TRY(wg_save_open(&to, path, err));
    const wg_status s = wg_save_write(to, bytes, n, err);
    if (s == WG_OK) return wg_save_commit(to, err);
    wg_save_abort(to);
    return s;
}
