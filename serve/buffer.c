/* SPDX-License-Identifier: MIT
 * A text that grows at its end. */
#include "serve/buffer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool grow(wgs_buffer *b, size_t n)
{
    if (b->failed || n > (size_t)-1 / 4 - b->n) return !(b->failed = true);
    if (b->n + n <= b->room) return true;
    size_t room = b->room ? b->room : 256;
    while (room < b->n + n) room *= 2;
    char *s = realloc(b->s, room);
    if (!s) return !(b->failed = true);
    b->s = s;
    b->room = room;
    return true;
}

void wgs_buffer_put(wgs_buffer *b, const char *s, size_t n)
{
    if (!n || !grow(b, n)) return;
    memcpy(b->s + b->n, s, n);
    b->n += n;
}

void wgs_buffer_puts(wgs_buffer *b, const char *s) { wgs_buffer_put(b, s, strlen(s)); }

void wgs_buffer_format(wgs_buffer *b, const char *format, ...)
{
    va_list a, again;
    va_start(a, format);
    va_copy(again, a);
    const int n = vsnprintf(NULL, 0, format, a);
    va_end(a);
    if (n < 0) b->failed = true;
    else if (grow(b, (size_t)n + 1)) {
        vsnprintf(b->s + b->n, (size_t)n + 1, format, again);
        b->n += (size_t)n;
    }
    va_end(again);
}

size_t wgs_utf8_length(const char *s, size_t n)
{
    const unsigned char *u = (const unsigned char *)s;
    if (!n) return 0;
    if (u[0] < 0x80) return 1;
    const size_t length = u[0] >= 0xc2 && u[0] < 0xe0 ? 2 : (u[0] & 0xf0) == 0xe0 ? 3 : u[0] >= 0xf0 && u[0] < 0xf5 ? 4 : 0;
    if (!length || n < length) return 0;
    for (size_t i = 1; i < length; i++)
        if ((u[i] & 0xc0) != 0x80) return 0;
    const bool overlong = (u[0] == 0xe0 && u[1] < 0xa0) || (u[0] == 0xf0 && u[1] < 0x90);
    const bool surrogate = u[0] == 0xed && u[1] >= 0xa0, beyond = u[0] == 0xf4 && u[1] >= 0x90;
    return overlong || surrogate || beyond ? 0 : length;
}

void wgs_buffer_put_utf8(wgs_buffer *b, const char *s, size_t n)
{
    for (size_t i = 0; i < n;) {
        size_t good = 0, length;
        while (i + good < n && (length = wgs_utf8_length(s + i + good, n - i - good))) good += length;
        wgs_buffer_put(b, s + i, good);
        i += good;
        if (i < n) {
            wgs_buffer_puts(b, "\xef\xbf\xbd");
            i++;
        }
    }
}

void wgs_buffer_free(wgs_buffer *b)
{
    free(b->s);
    *b = (wgs_buffer){ 0 };
}
