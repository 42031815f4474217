/* SPDX-License-Identifier: MIT
 * The digest of a file as a git object, which hubs give for small files: SHA-1 over "blob SIZE", NUL and the bytes. */
#ifndef WG_EXPERIMENTS_PULL_DIGEST_H
#define WG_EXPERIMENTS_PULL_DIGEST_H

#include "core/base/hash.h"

wg_status wg_git_digest(const char *path, char hex[WG_SHA256_HEX], wg_error *err); /* 40 digits */

#endif
