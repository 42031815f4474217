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

/* The value of a hexadecimal digit, or -1. */
int wg_hex_digit(char c);

/* The row that has the character, of n rows of `size` bytes that begin with its first and its last one (uint32_t), ascending
 * and disjoint. NULL: none has it. */
const void *wg_range_find(const void *rows, size_t n, size_t size, uint32_t cp);

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

/* ---- extended grapheme clusters: what readers take for one character (Unicode Standard Annex 29, revision of Unicode 16). */

/* The length of the cluster at the beginning of n bytes; 0 when n is 0. A byte that is no character is a cluster by itself. */
size_t wg_grapheme_length(const char *s, size_t n);

/* Grapheme_Cluster_Break, with Extended_Pictographic and Indic_Conjunct_Break where these count. */
typedef enum wg_grapheme_class {
    WG_GRAPHEME_OTHER,
    WG_GRAPHEME_CR,
    WG_GRAPHEME_LF,
    WG_GRAPHEME_CONTROL,
    WG_GRAPHEME_EXTEND,
    WG_GRAPHEME_ZWNJ,   /* extends, but no conjunct goes on behind it */
    WG_GRAPHEME_LINKER, /* extends, and joins consonants */
    WG_GRAPHEME_ZWJ,
    WG_GRAPHEME_SPACING,
    WG_GRAPHEME_PREPEND,
    WG_GRAPHEME_CONSONANT,
    WG_GRAPHEME_PICTURE,
    WG_GRAPHEME_REGION,
    WG_GRAPHEME_L, /* Hangul: leading consonants, vowels, trailing consonants, syllables without and with the last */
    WG_GRAPHEME_V,
    WG_GRAPHEME_T,
    WG_GRAPHEME_LV,
    WG_GRAPHEME_LVT
} wg_grapheme_class;

typedef struct wg_grapheme_range {
    uint32_t first, last, class;
} wg_grapheme_range;

/* grapheme_table.c: ascending; all but Hangul syllables */
enum { WG_GRAPHEME_RANGES = 837 };
extern const wg_grapheme_range wg_grapheme_ranges[WG_GRAPHEME_RANGES];

#endif
