/* SPDX-License-Identifier: MIT
 * Checks of a request's header before the body is read: its framing is unambiguous (RFC 9112), so that a proxy and this
 * server see the same requests; it is for a host of this server; its body has a type that this server reads. */
#ifndef WG_SERVE_REQUEST_HEAD_H
#define WG_SERVE_REQUEST_HEAD_H

#include <stdbool.h>
#include <stddef.h>

#include "serve/server.h"

/* ---- The target in the first line of a request (RFC 9112, 3.2): a path, or the absolute form for proxies, whose host replaces
 * the field Host. Escapes are decoded here, so that an escaped slash is no separator and an escaped NUL no end. */

typedef struct wgs_target {
    char *text; /* owned: the target without its query; NULL: memory ran out */
    char *path; /* points into text, escapes not decoded; NULL: the target is neither a path nor absolute */
    char *host; /* (host_bytes) points into text; NULL: the target has no host */
    size_t host_bytes;
} wgs_target;

void wgs_target_read(wgs_target *t, const char *uri);
void wgs_target_free(wgs_target *t);

/* The part of a path behind `prefix`, or NULL where the path does not begin with it. Escapes of the prefix are decoded in
 * place. */
char *wgs_target_behind(char *path, const char *prefix);

/* Decodes all escapes in place. false: an escape is not two hexadecimal digits, or stands for character 0. */
bool wgs_target_decode(char *s);

/* ---- the head */

/* The value of a header field without the white space around it. */
typedef struct wgs_value {
    const char *s; /* (n) NULL: the request does not have the field */
    size_t n;
} wgs_value;
wgs_value wgs_head_value(struct MHD_Connection *c, const char *name);
bool wgs_value_is(wgs_value v, const char *text); /* equal, upper and lower case alike */

/* The first line of a request, as libmicrohttpd hands it to its log callback, before anything in it is decoded. */
typedef struct wgs_first_line {
    const char *uri; /* the target in the library's buffer */
    size_t bytes;    /* length up to the first NUL */
    bool spaces;     /* the target contains spaces */
} wgs_first_line;

/* Whether the header is well formed and states the length of the body in one way. most: bytes of the largest header. false: *p
 * is set (400, 414, 431), and the caller must close the connection, because the start of the next request is not known. */
bool wgs_head_framed(struct MHD_Connection *c, const char *method, const char *version, const wgs_first_line *line, size_t most,
                     wgs_problem *p);

/* Whether the target or the field Host names a host of this server; false: *p is set (400, 403). A page can point its own
 * name at 127.0.0.1 (DNS rebinding), so a server at a loopback address without a key accepts names of this machine and of
 * --allow-host only. */
bool wgs_head_host(const wgs_server *s, struct MHD_Connection *c, const wgs_target *target, wgs_problem *p);

/* Whether the body is declared as uncompressed JSON in UTF-8; false: *p is set (415). Browsers let pages of other origins send
 * other types without a preflight request. */
bool wgs_head_body(struct MHD_Connection *c, wgs_problem *p);

/* Whether the request announces a body. */
bool wgs_head_has_body(struct MHD_Connection *c);

#endif
