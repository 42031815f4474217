/* SPDX-License-Identifier: MIT
 * The target in the first line of a request (RFC 9112, 3.2): a path, or the absolute form for proxies, whose host replaces the
 * field Host. Escapes are decoded here, so that an escaped slash is no separator and an escaped NUL no end. */
#ifndef WG_SERVE_REQUEST_TARGET_H
#define WG_SERVE_REQUEST_TARGET_H

#include <stdbool.h>
#include <stddef.h>

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

#endif
