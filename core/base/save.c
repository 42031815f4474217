/* SPDX-License-Identifier: MIT
 * Atomic file writes. */
#include "core/base/save.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/mem.h"
#include "core/base/part_lock.h"

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
    wg_part_sweep(s->path);
    for (int i = 0; i < 100; i++) {
        snprintf(s->part, size, "%s.%ld-%d.part", s->path, (long)getpid(), i);
        s->fd = open(s->part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (s->fd >= 0 && wg_part_lock(s->fd)) {
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

wg_status wg_save_all(const char *path, const void *bytes, size_t n, wg_error *err)
{
    wg_save *to;
    WG_TRY(wg_save_open(&to, path, err));
    const wg_status s = wg_save_write(to, bytes, n, err);
    if (s == WG_OK) return wg_save_commit(to, err);
    wg_save_abort(to);
    return s;
}
