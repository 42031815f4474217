/* SPDX-License-Identifier: MIT
 * The map of characters of a SentencePiece model ("precompiled_charsmap"; nmt_nfkc and others): a double-array trie (Aoe 1989)
 * from pieces of text to their replacements, of which the longest match counts. Layout: u32 bytes of the trie, its units of
 * u32, and the replacements, each ended by NUL. A unit's bits: 31 and 0..7 label, 8 whether a value follows, 9 and 10..30
 * offset. */
#ifndef WG_CORE_TEXT_CHARSMAP_H
#define WG_CORE_TEXT_CHARSMAP_H

#include "core/file/weights.h"

enum { WG_CHARSMAP_PIECE = 255 };

typedef struct wg_charsmap {
    const char *units; /* (count) of four bytes */
    size_t count;
    wg_text values;
} wg_charsmap;

/* False: the bytes are no such map. */
bool wg_charsmap_open(wg_charsmap *m, wg_text bytes);

/* The length of the longest piece at the beginning of s[0..n) that is replaced, or 0; *to: by what. A piece has at most
 * WG_CHARSMAP_PIECE bytes, so that a trie with a cycle does not make each place cost the rest of the text. */
size_t wg_charsmap_find(const wg_charsmap *m, const char *s, size_t n, wg_text *to);

/* *to: by what the shortest piece at the beginning of s[0..n) is replaced; false: there is none. */
bool wg_charsmap_first(const wg_charsmap *m, const char *s, size_t n, wg_text *to);

#endif
