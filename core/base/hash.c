/* SPDX-License-Identifier: MIT
 * Digests. */
#include "core/base/hash.h"

#include <errno.h>
#include <sha2.h>
#include <string.h>

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

void wg_sha256_end(wg_sha256_state *s, char hex[WG_SHA256_HEX]) { SHA256End((SHA2_CTX *)(void *)s, hex); }

void wg_sha256(const void *bytes, size_t n, char hex[WG_SHA256_HEX]) { SHA256Data(bytes, n, hex); }

wg_status wg_sha256_file(const char *path, char hex[WG_SHA256_HEX], wg_error *err)
{
    if (SHA256File(path, hex)) return WG_OK;
    return wg_fail(err, errno == ENOENT ? WG_ENOENT : WG_EIO, "%s: cannot open: %s", path, strerror(errno));
}
