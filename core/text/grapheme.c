/* SPDX-License-Identifier: MIT
 * Clusters by the rules GB3 to GB13. What they look back at is the class of the last character and three small states. */
#include "core/text/grapheme.h"

#include <stdbool.h>

#include "core/text/unicode.h"

enum { SYLLABLES = 0xac00, SYLLABLES_END = 0xd7a4, TAILS = 28 };

static wg_grapheme_class class_of(uint32_t cp)
{
    int lo = 0, hi = WG_GRAPHEME_RANGES;
    if (cp == WG_UTF8_BAD) return WG_GRAPHEME_CONTROL;
    if (cp >= SYLLABLES && cp < SYLLABLES_END) return (cp - SYLLABLES) % TAILS == 0 ? WG_GRAPHEME_LV : WG_GRAPHEME_LVT;
    while (lo < hi) {
        const int mid = (lo + hi) / 2;
        if (wg_grapheme_ranges[mid].last < cp) lo = mid + 1;
        else hi = mid;
    }
    return lo < WG_GRAPHEME_RANGES && wg_grapheme_ranges[lo].first <= cp ? (wg_grapheme_class)wg_grapheme_ranges[lo].class
                                                                         : WG_GRAPHEME_OTHER;
}

typedef struct state {
    wg_grapheme_class last;
    bool picture;                         /* a picture, then only what extends it */
    enum { NO, LETTER, LINKED } conjunct; /* a consonant, then only what extends it; with a linker */
    bool odd;                             /* an odd number of regional indicators */
} state;

static void pass(state *s, wg_grapheme_class c)
{
    const bool extends = c == WG_GRAPHEME_EXTEND || c == WG_GRAPHEME_LINKER || c == WG_GRAPHEME_ZWNJ;
    s->picture = c == WG_GRAPHEME_PICTURE || (s->picture && extends);
    if (c == WG_GRAPHEME_CONSONANT) s->conjunct = LETTER;
    else if (s->conjunct != NO && c == WG_GRAPHEME_LINKER) s->conjunct = LINKED;
    else if (c == WG_GRAPHEME_ZWNJ || (!extends && c != WG_GRAPHEME_ZWJ)) s->conjunct = NO;
    s->odd = c == WG_GRAPHEME_REGION && !s->odd;
    s->last = c;
}

static bool is_control(wg_grapheme_class c) { return c == WG_GRAPHEME_CR || c == WG_GRAPHEME_LF || c == WG_GRAPHEME_CONTROL; }

/* Whether c belongs to the cluster. `joined`: a picture, what extends it, and a joiner stand before it. */
static bool joins(const state *s, wg_grapheme_class c, bool joined)
{
    if (s->last == WG_GRAPHEME_CR) return c == WG_GRAPHEME_LF;
    if (is_control(s->last) || is_control(c)) return false;
    switch (c) {
    case WG_GRAPHEME_EXTEND:
    case WG_GRAPHEME_ZWNJ:
    case WG_GRAPHEME_LINKER:
    case WG_GRAPHEME_ZWJ:
    case WG_GRAPHEME_SPACING: return true;
    default: break;
    }
    if (s->last == WG_GRAPHEME_PREPEND) return true;
    const bool behind_vowel = s->last == WG_GRAPHEME_LV || s->last == WG_GRAPHEME_V;
    switch (c) {
    case WG_GRAPHEME_L:
    case WG_GRAPHEME_LV:
    case WG_GRAPHEME_LVT: return s->last == WG_GRAPHEME_L;
    case WG_GRAPHEME_V: return s->last == WG_GRAPHEME_L || behind_vowel;
    case WG_GRAPHEME_T: return behind_vowel || s->last == WG_GRAPHEME_LVT || s->last == WG_GRAPHEME_T;
    case WG_GRAPHEME_CONSONANT: return s->conjunct == LINKED;
    case WG_GRAPHEME_PICTURE: return joined;
    case WG_GRAPHEME_REGION: return s->last == WG_GRAPHEME_REGION && s->odd;
    default: return false;
    }
}

size_t wg_grapheme_length(const char *s, size_t n)
{
    state st = { 0 };
    uint32_t cp;
    bool joined = false;
    size_t at = wg_utf8_decode(s, n, &cp);
    if (at == 0) return 0;
    pass(&st, class_of(cp));
    while (at < n) {
        const size_t k = wg_utf8_decode(s + at, n - at, &cp);
        const wg_grapheme_class c = class_of(cp);
        if (!joins(&st, c, joined)) break;
        joined = st.picture && c == WG_GRAPHEME_ZWJ;
        pass(&st, c);
        at += k;
    }
    return at;
}
