/* SPDX-License-Identifier: MIT
 * Extended grapheme clusters: what readers take for one character (Unicode Standard Annex 29, revision of Unicode 16). */
#ifndef WG_CORE_TEXT_GRAPHEME_H
#define WG_CORE_TEXT_GRAPHEME_H

#include <stddef.h>
#include <stdint.h>

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
