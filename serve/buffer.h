/* SPDX-License-Identifier: MIT
 * A text that grows at its end. A failure to grow is remembered, so callers append without checks and look at `failed` once. */
#ifndef WG_SERVE_BUFFER_H
#define WG_SERVE_BUFFER_H

#include <stdbool.h>
#include <stddef.h>

typedef struct wgs_buffer {
    char *s; /* (n) owned; NULL while it is empty */
    size_t n, room;
    bool failed; /* memory ran out: a part of the text is missing */
} wgs_buffer;

void wgs_buffer_put(wgs_buffer *b, const char *s, size_t n);
void wgs_buffer_puts(wgs_buffer *b, const char *s);
__attribute__((format(printf, 2, 3))) void wgs_buffer_format(wgs_buffer *b, const char *format, ...);

/* Appends n bytes as UTF-8; each byte outside of a well-formed sequence becomes U+FFFD, because JSON cannot hold the bytes of a
 * token that ends inside a character. */
void wgs_buffer_put_utf8(wgs_buffer *b, const char *s, size_t n);

void wgs_buffer_free(wgs_buffer *b);

/* Bytes of the well-formed UTF-8 sequence at the beginning of s: 1..4, or 0 where there is none. */
size_t wgs_utf8_length(const char *s, size_t n);

#endif
