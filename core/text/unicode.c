/* SPDX-License-Identifier: MIT
 * Strict UTF-8 by the table of well-formed sequences (Unicode, table 3-7): the first byte fixes the length and the range
 * of the second byte, and that range alone excludes overlong forms, surrogates and everything beyond U+10FFFF. */
#include "core/text/unicode.h"

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
    for (size_t i = 0; i < sizeof more / sizeof *more; i++)
        if (cp >= more[i][0] && cp <= more[i][1]) return true;
    return false;
}
