/* SPDX-License-Identifier: MIT
 * The target of a request as its first line has it (RFC 9112, 3.2): a path, or the absolute form that is sent to proxies,
 * whose host counts instead of the field Host. Escapes are decoded here, so that an escaped slash separates nothing and an
 * escaped NUL ends nothing. */
#ifndef WG_SERVE_REQUEST_TARGET_H
#define WG_SERVE_REQUEST_TARGET_H

#include <stdbool.h>
#include <stddef.h>

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

#endif
