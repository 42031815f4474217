/* SPDX-License-Identifier: MIT
 * Strict UTF-8 by the table of well-formed sequences (Unicode, table 3-7): the first byte fixes the length and the range
 * of the second byte, and that range alone excludes overlong forms, surrogates and everything beyond U+10FFFF. */
#include "core/text/unicode.h"

#include <stdbool.h>

/* The length that a first byte determines (0: none) and the legal range of the second byte. */
static size_t promised(unsigned char first, unsigned char *lo, unsigned char *hi)
{
    *lo = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
    *hi = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
    if (first < 0x80) return 1;
    if (first < 0xc2) return 0;
    if (first < 0xe0) return 2;
    if (first < 0xf0) return 3;
    return first < 0xf5 ? 4 : 0;
}

/* The number of leading bytes of s[0..n) that are valid for the character that s[0] begins; *need is its full length (0:
 * s[0] begins none). */
static size_t agreeing(const char *s, size_t n, size_t *need)
{
    unsigned char lo, hi;
    size_t i = 1;
    *need = promised((unsigned char)s[0], &lo, &hi);
    for (; i < *need && i < n; i++) {
        const unsigned char c = (unsigned char)s[i];
        if (c < lo || c > hi) break;
        lo = 0x80;
        hi = 0xbf;
    }
    return i;
}

size_t wg_utf8_decode(const char *s, size_t n, uint32_t *cp)
{
    size_t need;
    if (n == 0) return 0;
    if ((unsigned char)s[0] < 0x80) {
        *cp = (unsigned char)s[0];
        return 1;
    }
    if (agreeing(s, n, &need) < need || need == 0) {
        *cp = WG_UTF8_BAD;
        return 1;
    }
    uint32_t v = (unsigned char)s[0] & (0x7fu >> need);
    for (size_t i = 1; i < need; i++) v = v << 6 | ((unsigned char)s[i] & 0x3fu);
    *cp = v;
    return need;
}

size_t wg_utf8_encode(uint32_t cp, char out[WG_UTF8_MAX])
{
    const size_t n = cp < 0x80 ? 1 : cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;
    static const unsigned char lead[] = { 0, 0, 0xc0, 0xe0, 0xf0 };
    for (size_t i = n - 1; i > 0; i--, cp >>= 6) out[i] = (char)(0x80 | (cp & 0x3f));
    out[0] = (char)(lead[n] | cp);
    return n;
}

size_t wg_utf8_open_tail(const char *s, size_t n)
{
    for (size_t k = n < WG_UTF8_MAX - 1 ? n : WG_UTF8_MAX - 1; k > 0; k--) {
        size_t need;
        if (agreeing(s + n - k, k, &need) == k && need > k) return k;
    }
    return 0;
}

int wg_hex_digit(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    return (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
}

const void *wg_range_find(const void *rows, size_t n, size_t size, uint32_t cp)
{
    size_t lo = 0, hi = n;
    while (lo < hi) {
        const size_t mid = (lo + hi) / 2;
        const uint32_t *row = (const uint32_t *)(const void *)((const char *)rows + mid * size);
        if (row[1] < cp) lo = mid + 1;
        else if (row[0] > cp) hi = mid;
        else return row;
    }
    return NULL;
}

wg_category wg_unicode_category(uint32_t cp)
{
    const uint32_t at = cp / WG_UNICODE_BLOCK, in = cp % WG_UNICODE_BLOCK;
    if (at >= WG_UNICODE_BLOCKS) return WG_CATEGORY_OTHER;
    return (wg_category)(wg_unicode_block[wg_unicode_index[at]][in / 16] >> 4 * (in % 16) & 15);
}

wg_unicode wg_unicode_class(uint32_t cp)
{
    const wg_category is = wg_unicode_category(cp);
    if (is >= WG_CATEGORY_LU && is <= WG_CATEGORY_LO) return WG_UNICODE_LETTER;
    if (is >= WG_CATEGORY_ND && is <= WG_CATEGORY_NO) return WG_UNICODE_NUMBER;
    return is == WG_CATEGORY_SPACE ? WG_UNICODE_SPACE : WG_UNICODE_OTHER;
}

bool wg_unicode_is_word(uint32_t cp)
{
    /* circled letters and the two joiners, which their categories do not tell */
    static const uint32_t more[][2] = {
        { 0x200c, 0x200d }, { 0x24b6, 0x24e9 }, { 0x1f130, 0x1f149 }, { 0x1f150, 0x1f169 }, { 0x1f170, 0x1f189 }
    };
    const wg_category is = wg_unicode_category(cp);
    if ((is >= WG_CATEGORY_LU && is <= WG_CATEGORY_NL) || is == WG_CATEGORY_PC) return true;
    return wg_range_find(more, sizeof more / sizeof *more, sizeof *more, cp) != NULL;
}

/* ---- clusters by the rules GB3 to GB13. What they look back at is the class of the last character and three small states. */

enum { SYLLABLES = 0xac00, SYLLABLES_END = 0xd7a4, TAILS = 28 };

static wg_grapheme_class class_of(uint32_t cp)
{
    if (cp == WG_UTF8_BAD) return WG_GRAPHEME_CONTROL;
    if (cp >= SYLLABLES && cp < SYLLABLES_END) return (cp - SYLLABLES) % TAILS == 0 ? WG_GRAPHEME_LV : WG_GRAPHEME_LVT;
    const wg_grapheme_range *r = wg_range_find(wg_grapheme_ranges, WG_GRAPHEME_RANGES, sizeof *r, cp);
    return r ? (wg_grapheme_class)r->class : WG_GRAPHEME_OTHER;
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
