/* SPDX-License-Identifier: MIT
 * A set of HTTP exchanges on one thread, over libcurl's multi interface. libcurl is loaded when a set is opened, so the program
 * starts without it, too. */
#ifndef WG_EXPERIMENTS_LOAD_HTTP_H
#define WG_EXPERIMENTS_LOAD_HTTP_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/error.h"

typedef struct wg_http wg_http;

/* Takes n bytes of the body of a response with this status. False: abort the exchange. */
typedef bool wg_http_body(void *user, int status, const char *bytes, size_t n);
/* Takes a line of a response's head, a header or the status line, without its end. */
typedef void wg_http_head(void *user, const char *line, size_t n);

enum { WG_HTTP_HEADERS = 4 };
typedef struct wg_http_request {
    const char *url;
    const char *body; /* (n) of a POST with JSON, copied; NULL: a GET */
    size_t n;
    double seconds;                      /* time limit; 0: none but `stall` */
    double stall;                        /* longest time without a byte, in seconds */
    const char *header[WG_HTTP_HEADERS]; /* "Name: value" of this request alone, copied; NULL: no more */
    wg_http_head *on_head;               /* may be NULL */
    wg_http_body *on_body;
    void *user;
} wg_http_request;

typedef enum wg_http_result {
    WG_HTTP_COMPLETE,
    WG_HTTP_UNREACHABLE, /* no connection, or it ended before a status line */
    WG_HTTP_BROKEN,      /* ended within the response */
    WG_HTTP_TIMEOUT,
    WG_HTTP_GIVEN_UP, /* aborted by on_body */
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
    bool proxies;    /* use the environment's proxies */
} wg_http_options;
/* Opens a set. Errors: EUNSUPPORTED (built without libcurl, or it is not installed), ENOMEM. Redirects are not followed; they
 * are answers like others. */
wg_status wg_http_open(wg_http **out, const wg_http_options *o, wg_error *err);
void wg_http_close(wg_http *h); /* abandons running exchanges; NULL is fine */

/* Begins an exchange in a free slot, with an address that begins with http:// or https://. ENOMEM. */
wg_status wg_http_start(wg_http *h, int slot, const wg_http_request *r, wg_error *err);
void wg_http_abandon(wg_http *h, int slot); /* no end is reported */

/* Advances all exchanges; if none has ended, waits up to `seconds` for activity. */
void wg_http_wait(wg_http *h, double seconds);
bool wg_http_ended(wg_http *h, wg_http_end *end); /* takes an ended exchange and frees its slot */

/* Fetches a whole answer of at most `most` bytes, NUL-terminated (wg_free), in slot 0, which must be free. EIO: no complete
 * answer. */
wg_status wg_http_get(wg_http *h, const char *url, double seconds, size_t most, char **text, size_t *n, int *status,
                      wg_error *err);

#endif
