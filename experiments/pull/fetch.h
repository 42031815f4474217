/* SPDX-License-Identifier: MIT
 * Fetches one file by HTTP: ranges in parallel where the server has them, resumed after any interruption, its digest checked
 * before it has its name. */
#ifndef WG_EXPERIMENTS_PULL_FETCH_H
#define WG_EXPERIMENTS_PULL_FETCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"

typedef struct wg_fetch {
    const char *url; /* http:// or https:// */
    const char
        *token; /* at most 1000 bytes; NULL: none. It is sent to the host of `url` and to no other, wherever redirects lead */
    const char *to;     /* the file that is made */
    int64_t bytes;      /* of it; -1: not known */
    const char *sha256; /* of it, 64 digits; NULL: not known */
    const char *git;    /* digest of it as git's object, 40 digits; NULL: not known */
    const char *name;   /* for the progress line */
    int connections;    /* at a time, 1 .. WG_FETCH_CONNECTIONS */
    bool progress;      /* a line on stderr */
} wg_fetch;
enum { WG_FETCH_CONNECTIONS = 8 };

/* Errors: ENOENT (404), EINVAL (401 and 403: a token is needed or has no access), EIO (no connection, too many attempts, a full
 * disk), EFORMAT (another size or digest than expected: what has arrived is removed). After any other error the next call goes
 * on where this one ended. */
wg_status wg_fetch_file(const wg_fetch *f, wg_error *err);

/* A whole answer, with a NUL behind its bytes (wg_free), redirects followed likewise. Errors: as above; EIO beyond `most`. */
wg_status wg_fetch_text(const char *url, const char *token, size_t most, char **text, size_t *n, wg_error *err);

#endif
