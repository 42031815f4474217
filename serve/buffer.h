/* SPDX-License-Identifier: MIT
 * A text that grows at its end. Failing to grow is remembered, so that a text is written piece by piece and checked once. */
#ifndef WG_SERVE_BUFFER_H
#define WG_SERVE_BUFFER_H

#include <stdbool.h>
#include <stddef.h>

typedef struct wgs_buffer {
    char *s; /* (n) owned; NULL while nothing was put */
    size_t n, room;
    bool failed; /* out of memory: something is missing */
} wgs_buffer;

void wgs_buffer_put(wgs_buffer *b, const char *s, size_t n);
void wgs_buffer_puts(wgs_buffer *b, const char *s);
__attribute__((format(printf, 2, 3))) void wgs_buffer_format(wgs_buffer *b, const char *format, ...);

/* Appends n bytes as UTF-8: what is no part of a well-formed sequence becomes U+FFFD, one for each byte. JSON has no other
 * place for the bytes of a token that ends inside a character. */
void wgs_buffer_put_utf8(wgs_buffer *b, const char *s, size_t n);

void wgs_buffer_free(wgs_buffer *b);

/* Bytes of the well-formed UTF-8 sequence at the beginning of s: 1..4, or 0 where there is none. */
size_t wgs_utf8_length(const char *s, size_t n);

#endif
