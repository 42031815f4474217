/* SPDX-License-Identifier: MIT
 * Digests: SHA-256 (libmd) for published identities, a fast 64-bit hash for tables and quick comparisons. */
#ifndef WG_CORE_BASE_HASH_H
#define WG_CORE_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"

enum { WG_SHA256_HEX = 65 }; /* 64 hex digits and NUL */

/* FNV-1a over n bytes, continuing from `h` (start with WG_HASH_START). */
#define WG_HASH_START 0xcbf29ce484222325ull
uint64_t wg_hash64(uint64_t h, const void *bytes, size_t n);

void wg_sha256(const void *bytes, size_t n, char hex[WG_SHA256_HEX]);
wg_status wg_sha256_file(const char *path, char hex[WG_SHA256_HEX], wg_error *err);

/* A running SHA-256. */
typedef struct wg_sha256_state {
    _Alignas(8) unsigned char opaque[256];
} wg_sha256_state;
void wg_sha256_begin(wg_sha256_state *s);
void wg_sha256_add(wg_sha256_state *s, const void *bytes, size_t n);
void wg_sha256_end(wg_sha256_state *s, char hex[WG_SHA256_HEX]);

#endif
