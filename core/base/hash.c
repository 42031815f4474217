/* SPDX-License-Identifier: MIT
 * Digests. */
#include "core/base/hash.h"

#include <errno.h>
#include <fcntl.h>
#include <sha2.h>
#include <string.h>
#include <unistd.h>

#include "core/base/mem.h"

_Static_assert(sizeof(SHA2_CTX) <= sizeof(wg_sha256_state), "the opaque state must hold libmd's");

uint64_t wg_hash64(uint64_t h, const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    for (size_t i = 0; i < n; i++) h = (h ^ p[i]) * 0x100000001b3ull;
    return h;
}

void wg_sha256_begin(wg_sha256_state *s) { SHA256Init((SHA2_CTX *)(void *)s); }

void wg_sha256_add(wg_sha256_state *s, const void *bytes, size_t n)
{
    if (n > 0) SHA256Update((SHA2_CTX *)(void *)s, bytes, n);
}

void wg_sha256_end(wg_sha256_state *s, char hex[WG_SHA256_HEX])
{
    static const char digit[] = "0123456789abcdef";
    uint8_t d[SHA256_DIGEST_LENGTH];
    SHA256Final(d, (SHA2_CTX *)(void *)s);
    for (int i = 0; i < SHA256_DIGEST_LENGTH; i++) {
        hex[2 * i] = digit[d[i] >> 4];
        hex[2 * i + 1] = digit[d[i] & 15];
    }
    hex[WG_SHA256_HEX - 1] = '\0';
}

void wg_sha256(const void *bytes, size_t n, char hex[WG_SHA256_HEX])
{
    wg_sha256_state s;
    wg_sha256_begin(&s);
    wg_sha256_add(&s, bytes, n);
    wg_sha256_end(&s, hex);
}

wg_status wg_sha256_file(const char *path, char hex[WG_SHA256_HEX], wg_error *err)
{
    enum { CHUNK = 1 << 18 };
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return wg_fail(err, errno == ENOENT ? WG_ENOENT : WG_EIO, "%s: cannot open: %s", path, strerror(errno));
    void *chunk = wg_alloc(CHUNK, 1);
    if (!chunk) {
        close(fd);
        return wg_nomem(err, CHUNK, "reading a file to digest");
    }
    wg_sha256_state s;
    wg_sha256_begin(&s);
    ssize_t got;
    while ((got = read(fd, chunk, CHUNK)) > 0 || (got < 0 && errno == EINTR))
        wg_sha256_add(&s, chunk, got > 0 ? (size_t)got : 0);
    const int why = errno;
    wg_free(chunk);
    close(fd);
    if (got < 0) return wg_fail(err, WG_EIO, "%s: cannot read: %s", path, strerror(why));
    wg_sha256_end(&s, hex);
    return WG_OK;
}
