/* SPDX-License-Identifier: MIT
 * A set of byte strings, numbered in order of insertion, each with a count; used for words of texts and tokens. */
#ifndef WG_CORE_TEXT_BYTE_STRINGS_H
#define WG_CORE_TEXT_BYTE_STRINGS_H

#include <stdint.h>

#include "core/base/error.h"
#include "core/file/weights.h"

typedef struct wg_byte_string {
    size_t at;
    uint32_t n;
    int64_t count;
} wg_byte_string;

typedef struct wg_byte_strings { /* zero-initialise */
    char *bytes;                 /* of all strings, one behind the other */
    wg_byte_string *v;
    uint32_t *slot; /* (slots) number + 1, open addressing; 0: empty */
    size_t n_bytes, bytes_room, n, room, slots;
} wg_byte_strings;

void wg_byte_strings_free(wg_byte_strings *s);
/* Adds `count` to the count of a string of n bytes, which is inserted if new; *number: its number. ENOMEM. */
wg_status wg_byte_strings_add(wg_byte_strings *s, const char *bytes, size_t n, int64_t count, uint32_t *number, wg_error *err);
/* The number, or -1. */
int64_t wg_byte_strings_find(const wg_byte_strings *s, const char *bytes, size_t n);
static inline wg_text wg_byte_string_at(const wg_byte_strings *s, size_t i)
{
    return (wg_text){ s->bytes + s->v[i].at, s->v[i].n };
}

#endif
