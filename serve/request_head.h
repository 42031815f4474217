/* SPDX-License-Identifier: MIT
 * What the header of a request has to be before its body is read: framed in one way only (RFC 9112), so that a proxy and this
 * server see the same requests; for a host that is ours; with a body of a type that is read here. */
#ifndef WG_SERVE_REQUEST_HEAD_H
#define WG_SERVE_REQUEST_HEAD_H

#include <stdbool.h>
#include <stddef.h>

#include "serve/server.h"

/* ---- The target of a request as its first line has it (RFC 9112, 3.2): a path, or the absolute form that is sent to proxies,
 * whose host counts instead of the field Host. Escapes are decoded here, so that an escaped slash separates nothing and an
 * escaped NUL ends nothing. */

typedef struct wgs_target {
    char *text; /* owned: the target without its query; NULL: out of memory */
    char *path; /* in text, escapes as they were sent; NULL: the target is neither a path nor an address */
    char *host; /* (host_bytes) in text; NULL: it names none */
    size_t host_bytes;
} wgs_target;

void wgs_target_read(wgs_target *t, const char *uri);
void wgs_target_free(wgs_target *t);

/* What stands in a path behind `prefix`, whose escapes are decoded for it; NULL: the path begins otherwise. */
char *wgs_target_behind(char *path, const char *prefix);

/* Decodes all escapes in place. false: one of them is of character 0, or has no two digits. */
bool wgs_target_decode(char *s);

/* ---- the head */

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
