/* SPDX-License-Identifier: MIT
 * A set of HTTP exchanges on one thread, over libcurl's multi interface. libcurl is loaded when a set is opened, so the program
 * starts where it is not installed. */
#ifndef WG_EXPERIMENTS_LOAD_HTTP_H
#define WG_EXPERIMENTS_LOAD_HTTP_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/error.h"

typedef struct wg_http wg_http;

/* Takes n bytes of a response's body, of this status. False: give up. */
typedef bool wg_http_body(void *user, int status, const char *bytes, size_t n);
/* Takes a line of a response's head, a header or the status line, without its end. */
typedef void wg_http_head(void *user, const char *line, size_t n);

enum { WG_HTTP_HEADERS = 4 };
typedef struct wg_http_request {
    const char *url;
    const char *body; /* (n) of a POST with JSON, copied; NULL: a GET */
    size_t n;
    double seconds;                      /* until it is given up; 0: as long as bytes come, but for `stall` seconds */
    double stall;                        /* seconds without a byte */
    const char *header[WG_HTTP_HEADERS]; /* "Name: value", copied; those of this request alone. NULL: no more */
    wg_http_head *on_head;               /* NULL: heads are not wanted */
    wg_http_body *on_body;
    void *user;
} wg_http_request;

typedef enum wg_http_result {
    WG_HTTP_COMPLETE,
    WG_HTTP_UNREACHABLE, /* no connection, or it ended before a status line */
    WG_HTTP_BROKEN,      /* ended within the response */
    WG_HTTP_TIMEOUT,
    WG_HTTP_GIVEN_UP, /* by on_body */
} wg_http_result;

typedef struct wg_http_end {
    int slot, status; /* status 0: none */
    wg_http_result result;
    bool new_connection;
    char error[160]; /* of libcurl; "" when complete */
} wg_http_end;

typedef struct wg_http_options {
    int slots;       /* exchanges at a time */
    const char *key; /* for "Authorization: Bearer" of every request, or NULL */
    bool reuse;      /* keep connections */
    bool proxies;    /* use those of the environment */
} wg_http_options;
/* Errors: EUNSUPPORTED where the program was built without libcurl, or libcurl is not there; ENOMEM. Redirects are answers like
 * others: nothing follows them. */
wg_status wg_http_open(wg_http **out, const wg_http_options *o, wg_error *err);
void wg_http_close(wg_http *h); /* exchanges under way are abandoned; NULL is fine */

/* Begins an exchange in a free slot, with an address that begins with http:// or https://. ENOMEM. */
wg_status wg_http_start(wg_http *h, int slot, const wg_http_request *r, wg_error *err);
void wg_http_abandon(wg_http *h, int slot); /* without an end */

/* Moves all exchanges on, and where none has ended waits up to so many seconds for something to do. */
void wg_http_wait(wg_http *h, double seconds);
bool wg_http_ended(wg_http *h, wg_http_end *end); /* takes an exchange that has ended; its slot is free then */

/* A whole answer of at most `most` bytes, with a NUL behind them (wg_free), in slot 0, which must be free. EIO: it did not
 * come. */
wg_status wg_http_get(wg_http *h, const char *url, double seconds, size_t most, char **text, size_t *n, int *status,
                      wg_error *err);

#endif
