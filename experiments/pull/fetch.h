/* SPDX-License-Identifier: MIT
 * Fetches one file by HTTP: in parallel ranges if the server supports them, resumed after any interruption, and renamed after
 * its digest was checked. */
#ifndef WG_EXPERIMENTS_PULL_FETCH_H
#define WG_EXPERIMENTS_PULL_FETCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"

typedef struct wg_fetch {
    const char *url;    /* http:// or https:// */
    const char *token;  /* at most 1000 bytes; NULL: none. Only the host of `url` gets it */
    const char *to;     /* path of the result */
    int64_t bytes;      /* size; -1: unknown */
    const char *sha256; /* digest of 64 digits; NULL: unknown */
    const char *git;    /* digest as a git object, 40 digits; NULL: unknown */
    const char *name;   /* for the progress line */
    int connections;    /* at a time, 1 .. WG_FETCH_CONNECTIONS */
    bool progress;      /* a line on stderr */
} wg_fetch;
enum { WG_FETCH_CONNECTIONS = 8 };

/* Errors: ENOENT (404), EINVAL (401 and 403: a token is needed or has no access), EIO (no connection, too many attempts, a full
 * disk), EFORMAT (another size or digest than expected; the bytes are removed). After any other error the next call resumes. */
wg_status wg_fetch_file(const wg_fetch *f, wg_error *err);

/* Fetches a whole answer, NUL-terminated (wg_free), and follows redirects. Errors: as above; EIO beyond `most` bytes. */
wg_status wg_fetch_text(const char *url, const char *token, size_t most, char **text, size_t *n, wg_error *err);

#endif
