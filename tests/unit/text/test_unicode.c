/* SPDX-License-Identifier: MIT
 * UTF-8 against the definition, exhaustively up to three bytes and over all code points; properties against the counts of
 * the Unicode version named in the table. */
#include <criterion/criterion.h>
#include <string.h>

#include "core/text/unicode.h"

/* Assertions cost more than the checks here, so sweeps remember the first failure and assert once. */
static uint32_t first_bad;
static int n_bad;
static void check(bool ok, uint32_t at)
{
    if (!ok && n_bad++ == 0) first_bad = at;
}

Test(unicode, every_code_point_round_trips)
{
    for (uint32_t cp = 0; cp < 0x110000; cp++) {
        char s[WG_UTF8_MAX];
        uint32_t back;
        const size_t n = wg_utf8_encode(cp, s), got = wg_utf8_decode(s, n, &back);
        const bool surrogate = cp >= 0xd800 && cp < 0xe000;
        check(surrogate ? got == 1 && back == WG_UTF8_BAD : got == n && back == cp, cp);
        check(wg_utf8_open_tail(s, n) == 0, cp);
        for (size_t cut = 1; cut < n && !surrogate; cut++) {
            check(wg_utf8_decode(s, cut, &back) == 1 && back == WG_UTF8_BAD, cp);
            check(wg_utf8_open_tail(s, cut) == cut, cp);
        }
    }
    cr_assert_eq(n_bad, 0, "first at U+%04X", first_bad);
}

/* Whatever three bytes come, the result is right: a character is one exactly when encoding it gives these bytes back. */
Test(unicode, every_three_bytes)
{
    for (uint32_t v = 0; v < 1u << 24; v++) {
        const char s[3] = { (char)(v >> 16), (char)(v >> 8), (char)v };
        char back[WG_UTF8_MAX];
        uint32_t cp;
        const size_t n = wg_utf8_decode(s, 3, &cp);
        if (cp != WG_UTF8_BAD) {
            check(n == wg_utf8_encode(cp, back) && memcmp(s, back, n) == 0, v);
        } else {
            const unsigned char a = (unsigned char)s[0], b = (unsigned char)s[1], c = (unsigned char)s[2];
            const uint32_t two = (a & 0x1fu) << 6 | (b & 0x3fu), three = (a & 0xfu) << 12 | (b & 0x3fu) << 6 | (c & 0x3fu);
            const bool ok2 = a >> 5 == 6 && b >> 6 == 2 && two >= 0x80;
            const bool ok3 = a >> 4 == 14 && b >> 6 == 2 && c >> 6 == 2 && three >= 0x800 && (three < 0xd800 || three > 0xdfff);
            check(n == 1 && a >= 0x80 && !ok2 && !ok3, v);
        }
    }
    cr_assert_eq(n_bad, 0, "first at bytes %06X", first_bad);
}

Test(unicode, malformed_sequences)
{
    static const char *const bad[] = { "\x80",
                                       "\xbf",
                                       "\xc0\x80",
                                       "\xc1\xbf",
                                       "\xe0\x80\x80",
                                       "\xe0\x9f\xbf",
                                       "\xed\xa0\x80",
                                       "\xf0\x80\x80\x80",
                                       "\xf0\x8f\xbf\xbf",
                                       "\xf4\x90\x80\x80",
                                       "\xf5\x80\x80\x80",
                                       "\xff",
                                       "\xfe" };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        uint32_t cp = 0;
        cr_assert(wg_utf8_decode(bad[i], strlen(bad[i]), &cp) == 1 && cp == WG_UTF8_BAD, "case %zu", i);
        cr_assert_eq(wg_utf8_open_tail(bad[i], strlen(bad[i])), 0, "case %zu", i);
    }
    uint32_t cp = 7;
    cr_assert(wg_utf8_decode("", 0, &cp) == 0 && cp == 7);
    cr_assert_eq(wg_utf8_open_tail("", 0), 0);
    cr_assert_eq(wg_utf8_open_tail("ab\xf0\x9f\x98", 5), 3);
    cr_assert_eq(wg_utf8_open_tail("\xf0\x9f\x98\x81\xe2", 5), 1);
    cr_assert_eq(wg_utf8_open_tail("\xf0\x9f\xe2\x96", 4), 2, "the first two bytes can no longer become a character");
}

Test(unicode, classes)
{
    int count[4] = { 0 };
    cr_assert_str_eq(wg_unicode_version, "16.0.0");
    for (uint32_t cp = 0; cp < 0x110000; cp++) count[wg_unicode_class(cp)]++;
    cr_assert_eq(count[WG_UNICODE_LETTER], 141028);
    cr_assert_eq(count[WG_UNICODE_NUMBER], 1911);
    cr_assert_eq(count[WG_UNICODE_SPACE], 25);

    static const struct {
        uint32_t cp;
        wg_unicode is;
    } known[] = {
        { 'a', WG_UNICODE_LETTER },       { 'Z', WG_UNICODE_LETTER },     { '0', WG_UNICODE_NUMBER },
        { '9', WG_UNICODE_NUMBER },       { '_', WG_UNICODE_OTHER },      { 0, WG_UNICODE_OTHER },
        { ' ', WG_UNICODE_SPACE },        { 0x1c, WG_UNICODE_OTHER },     { 0x85, WG_UNICODE_SPACE },
        { 0xa0, WG_UNICODE_SPACE },       { 0xaa, WG_UNICODE_LETTER },    { 0xbd, WG_UNICODE_NUMBER },
        { 0x17f, WG_UNICODE_LETTER },     { 0x301, WG_UNICODE_OTHER },    { 0x663, WG_UNICODE_NUMBER },
        { 0x180e, WG_UNICODE_OTHER },     { 0x200b, WG_UNICODE_OTHER },   { 0x200d, WG_UNICODE_OTHER },
        { 0x2028, WG_UNICODE_SPACE },     { 0x2160, WG_UNICODE_NUMBER },  { 0x3000, WG_UNICODE_SPACE },
        { 0x4e00, WG_UNICODE_LETTER },    { 0xac00, WG_UNICODE_LETTER },  { 0xd800, WG_UNICODE_OTHER },
        { 0xfeff, WG_UNICODE_OTHER },     { 0x1f600, WG_UNICODE_OTHER },  { 0x323af, WG_UNICODE_LETTER },
        { 0x323b0, WG_UNICODE_OTHER },    { 0x10ffff, WG_UNICODE_OTHER }, { WG_UTF8_BAD, WG_UNICODE_OTHER },
        { 0xffffffff, WG_UNICODE_OTHER },
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        cr_assert_eq(wg_unicode_class(known[i].cp), known[i].is, "U+%04X", known[i].cp);
}
