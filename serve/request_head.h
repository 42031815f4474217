/* SPDX-License-Identifier: MIT
 * What the header of a request has to be before its body is read: framed in one way only (RFC 9112), so that a proxy and this
 * server see the same requests; for a host that is ours; with a body of a type that is read here. */
#ifndef WG_SERVE_REQUEST_HEAD_H
#define WG_SERVE_REQUEST_HEAD_H

#include "serve/request_target.h"
#include "serve/server.h"

/* The value of a field, without the white space around it. */
typedef struct wgs_value {
    const char *s; /* (n) NULL: the request does not have the field */
    size_t n;
} wgs_value;
wgs_value wgs_head_value(struct MHD_Connection *c, const char *name);
bool wgs_value_is(wgs_value v, const char *text); /* letters of either case */

/* The first line of a request, as libmicrohttpd hands it to its log callback, before anything in it is decoded. */
typedef struct wgs_first_line {
    const char *uri; /* where it stands */
    size_t bytes;    /* up to its first NUL */
    bool spaces;     /* it has some */
} wgs_first_line;

/* Whether the header is well formed and says in one way how long the body is. most: bytes of a header. false: *p (400, 414,
 * 431), and the connection has to be closed, because nobody knows where the next request begins. */
bool wgs_head_framed(struct MHD_Connection *c, const char *method, const char *version, const wgs_first_line *line, size_t most,
                     wgs_problem *p);

/* Whether the request is for a host of this server, which its target or the field Host names: 400, 403. A page whose name an
 * attacker has pointed at 127.0.0.1 sends its own name; so a server at a loopback address without a key takes names of this
 * machine alone, and those of --allow-host. */
bool wgs_head_host(const wgs_server *s, struct MHD_Connection *c, const wgs_target *target, wgs_problem *p);

/* Whether a body is JSON in UTF-8, and not compressed: 415. Pages of other origins may send other types, or none, without
 * asking. */
bool wgs_head_body(struct MHD_Connection *c, wgs_problem *p);

/* Whether the request announces a body. */
bool wgs_head_has_body(struct MHD_Connection *c);

#endif
