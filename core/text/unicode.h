/* SPDX-License-Identifier: MIT
 * Characters for the tokenizers: strict UTF-8 decoding that never fails (a byte that begins no valid character is a
 * character by itself), and the Unicode properties that the published pre-tokenizer patterns use. */
#ifndef WG_CORE_TEXT_UNICODE_H
#define WG_CORE_TEXT_UNICODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WG_UTF8_MAX = 4, WG_UTF8_BAD = 0x110000 }; /* BAD stands for a byte that is not part of a valid character */

/* Decodes the first character of n bytes; returns its length: 1..4, or 0 when n is 0. A byte that does not begin a valid
 * character (stray, truncated, overlong, surrogate, beyond U+10FFFF) has length 1 and code point WG_UTF8_BAD. */
size_t wg_utf8_decode(const char *s, size_t n, uint32_t *cp);

/* Writes the UTF-8 of a code point below 0x110000, returns its length. */
size_t wg_utf8_encode(uint32_t cp, char out[WG_UTF8_MAX]);

/* The number of bytes at the end of s that may still become a character when more bytes follow (0..3). */
size_t wg_utf8_open_tail(const char *s, size_t n);

/* General categories, as far as the patterns tell them apart; WG_UTF8_BAD and all that is not assigned are OTHER. */
typedef enum wg_category {
    WG_CATEGORY_OTHER,
    WG_CATEGORY_LU,
    WG_CATEGORY_LL,
    WG_CATEGORY_LT,
    WG_CATEGORY_LM,
    WG_CATEGORY_LO,
    WG_CATEGORY_M,
    WG_CATEGORY_ND,
    WG_CATEGORY_NL,
    WG_CATEGORY_NO,
    WG_CATEGORY_PC,
    WG_CATEGORY_P, /* other punctuation */
    WG_CATEGORY_S,
    WG_CATEGORY_SPACE /* White_Space, whatever the category */
} wg_category;
wg_category wg_unicode_category(uint32_t cp);

/* \p{L}, \p{N} and White_Space; everything else is OTHER. */
typedef enum wg_unicode { WG_UNICODE_OTHER, WG_UNICODE_LETTER, WG_UNICODE_NUMBER, WG_UNICODE_SPACE } wg_unicode;
wg_unicode wg_unicode_class(uint32_t cp);

/* \w of the library's flag single_word: alphabetic characters, marks, decimal digits, connecting punctuation, joiners. */
bool wg_unicode_is_word(uint32_t cp);

/* unicode_table.c */
enum { WG_UNICODE_BLOCK = 128, WG_UNICODE_BLOCKS = 7172 };
extern const char wg_unicode_version[]; /* "16.0.0" */
extern const unsigned char wg_unicode_index[WG_UNICODE_BLOCKS];
extern const uint64_t wg_unicode_block[][WG_UNICODE_BLOCK / 16];

#endif
