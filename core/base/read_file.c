/* SPDX-License-Identifier: MIT
 * Reading whole files. Pipes have no length, so the buffer grows as bytes arrive. */
#include "core/base/read_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
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

wg_status wg_read_file(const char *path, size_t most, char **bytes, size_t *n, wg_error *err)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        if (errno == ENOENT) return wg_fail(err, WG_ENOENT, "%s: there is no such file", path);
        return wg_fail(err, WG_EIO, "%s: cannot open: %s", path, strerror(errno));
    }
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
