/* SPDX-License-Identifier: MIT
 * Reading and mapping whole files. Pipes have no length, so the buffer grows as bytes arrive. */
#include "core/base/read_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/mem.h"

static wg_status load(int fd, const char *path, size_t most, char **bytes, size_t *n, wg_error *err)
{
    for (size_t size = 1 << 14;;) {
        if (!*bytes || *n + 1 == size) {
            if (*bytes) size *= 2;
            char *more = wg_realloc(*bytes, size, 1);
            if (!more) return wg_nomem(err, size, path);
            *bytes = more;
        }
        const ssize_t got = read(fd, *bytes + *n, size - 1 - *n);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return wg_fail(err, WG_EIO, "%s: cannot read: %s", path, strerror(errno));
        *n += (size_t)got;
        (*bytes)[*n] = '\0';
        if (*n > most) return wg_fail(err, WG_EFORMAT, "%s: more than %zu bytes; is this the right file?", path, most);
        if (got == 0) return WG_OK;
    }
}

static wg_status cannot_open(const char *path, wg_error *err)
{
    if (errno == ENOENT) return wg_fail(err, WG_ENOENT, "%s: there is no such file", path);
    return wg_fail(err, WG_EIO, "%s: cannot open: %s", path, strerror(errno));
}

wg_status wg_read_file(const char *path, size_t most, char **bytes, size_t *n, wg_error *err)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return cannot_open(path, err);
    char *p = NULL;
    size_t size = 0;
    const wg_status s = load(fd, path, most, &p, &size, err);
    close(fd);
    if (s != WG_OK) {
        wg_free(p);
        return s;
    }
    *bytes = p;
    *n = size;
    return WG_OK;
}

wg_status wg_map_file(const char *path, const char *unfit, void **base, size_t *bytes, wg_error *err)
{
    struct stat st;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return cannot_open(path, err);
    const bool fine = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0;
    void *p = fine ? mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
    const int why = errno;
    close(fd);
    if (!fine) return wg_fail(err, WG_EFORMAT, "%s: %s", path, unfit);
    if (p == MAP_FAILED) return wg_fail(err, WG_EIO, "%s: cannot map into memory: %s", path, strerror(why));
    *base = p;
    *bytes = (size_t)st.st_size;
    return WG_OK;
}
