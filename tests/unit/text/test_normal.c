/* SPDX-License-Identifier: MIT
 * Normalisers: what each step does to characters that are easy to get wrong, to bytes that are no text, and to texts that were
 * made to be slow or to grow. Agreement with the library `tokenizers`: test_hf_tokenizer.c. */
#include "core/text/normal.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/text/unicode.h"

static wg_error err;
static wg_normalizer z;
static wg_normal_room room;

static wg_status open_words(const char *const *word)
{
    static wg_text words[8];
    size_t n = 0;
    for (; word[n]; n++) words[n] = (wg_text){ word[n], strlen(word[n]) };
    return wg_normalizer_open(&z, "FILE", words, n, &err);
}

static void close_all(void)
{
    wg_normalizer_close(&z);
    wg_normal_room_free(&room);
    cr_assert_eq(wg_mem_read().live_blocks, 0);
}

#define WORDS(...)                                                                                                             \
    (const char *const[]) { __VA_ARGS__, NULL }

static void becomes(const char *const *words, const char *text, const char *expected)
{
    wg_text out;
    cr_assert_eq(open_words(words), WG_OK, "%s", err.text);
    cr_assert_eq(wg_normalizer_apply(&z, (wg_text){ text, strlen(text) }, &room, &out, &err), WG_OK, "%s", err.text);
    cr_expect(out.n == strlen(expected) && memcmp(out.s, expected, out.n) == 0, "%s(\"%s\") is \"%.*s\", expected \"%s\"",
              words[0], text, (int)out.n, out.s, expected);
    close_all();
}

Test(normal, steps)
{
    becomes(WORDS("nfkc"), "\ufb01\u00a8 \uff21\u0301 \u2460\u1e9b\u0323", "fi \u0308 \u00c1 1\u1e69");
    becomes(WORDS("nfkd"), "\ufdfa",
            "\u0635\u0644\u0649 \u0627\u0644\u0644\u0647 \u0639\u0644\u064a\u0647 \u0648\u0633\u0644\u0645");
    becomes(WORDS("nfkc"), "\uff76\uff9e\u1100\uffc2", "\u30ac\uac00"); /* a mark, and a vowel, of half width */
    becomes(WORDS("lowercase"), "A\u0130\u03a3\u1e9e\u212a\u2c6f\U00010400z", "ai\u0307\u03c3\u00dfk\u0250\U00010428z");
    becomes(WORDS("lowercase"), "\u0100\u0101\u0102\u01c4\u01c5", "\u0101\u0101\u0103\u01c6\u01c6");
    becomes(WORDS("nfd", "strip_accents"), "\u00e9\u0344\u1e69\u0903x",
            "e"
            "sx");
    becomes(WORDS("nmt"),
            "\x01"
            "a\x0b\x7f\tb\u200b\ufeff\u2581\xc2\x85.",
            "a b   \xc2\x85.");
    becomes(WORDS("replace_regex", " {2,}", " "), "  a   b c    ", " a b c ");
    becomes(WORDS("replace_regex", "\\d+", ""), "1a22", "a");
    becomes(WORDS("replace", "ab", "b"), "aab", "ab"); /* what is written is not searched again */
    becomes(WORDS("prepend", "x", "strip", "both"), "  ", "x");
    becomes(WORDS("strip", "right", "prepend", "x"), " \u3000", "");
}

/* Bytes that are no characters stay, whatever the step. */
Test(normal, no_utf8)
{
    static const char bad[] = "\xff"
                              "e\xcc\x80\xed\xa0\x80\xc3";
    becomes(WORDS("nfkc"), bad, "\xff\u00e8\xed\xa0\x80\xc3");
    becomes(WORDS("lowercase"), bad, bad);
    becomes(WORDS("nmt"), bad, bad);
    becomes(WORDS("strip_accents"), bad,
            "\xff"
            "e\xed\xa0\x80\xc3");
}

/* A million marks in falling order of classes, which are sorted: time that grows with the square would not end. */
Test(normal, many_marks)
{
    enum { MARKS = 1 << 20 };
    static const char *const forms[] = { "nfc", "nfd", "nfkc", "nfkd" };
    char *text = malloc(2 * MARKS + 1);
    text[0] = 'a';
    for (int i = 0; i < MARKS; i++) memcpy(text + 1 + 2 * i, i % 2 ? "\xcc\xa7" : "\xcc\x83", 2); /* classes 202 and 230 */
    for (int i = 0; i < 4; i++) {
        wg_text out;
        cr_assert_eq(open_words(WORDS(forms[i])), WG_OK);
        cr_assert_eq(wg_normalizer_apply(&z, (wg_text){ text, 2 * MARKS + 1 }, &room, &out, &err), WG_OK);
        cr_assert(out.n >= 2 * MARKS && memcmp(out.s + out.n - 2, "\xcc\x83", 2) == 0);
        cr_assert(memcmp(out.s + MARKS / 2, "\xcc\xa7\xcc\xa7", 2) == 0 ||
                  memcmp(out.s + MARKS / 2, "\xa7\xcc\xa7\xcc", 2) == 0);
        close_all();
    }
    free(text);
}

/* A trie whose only branch leads back to its beginning: every place of a text would cost the rest of it. */
static size_t cycle(char *to)
{
    enum { UNITS = 256, A = 'a' };
    uint32_t unit[UNITS] = { 0 };
    const uint32_t bytes = sizeof unit;
    unit[A] = A | (uint32_t)A << 10; /* offset A leads back to unit 0, whose branch is at A again */
    unit[0] = 0;
    memcpy(to, &bytes, 4);
    memcpy(to + 4, unit, sizeof unit);
    memcpy(to + 4 + sizeof unit, "x", 2);
    return 4 + sizeof unit + 2;
}

Test(normal, charsmap_with_a_cycle)
{
    enum { LETTERS = 1 << 20 };
    static char map[2048];
    char *text = malloc(LETTERS);
    memset(text, 'a', LETTERS);
    for (int k = 0; k < 2; k++) {
        const wg_text words[] = { { k ? "precompiled" : "charsmap", k ? 11 : 8 }, { map, cycle(map) } };
        wg_text out;
        cr_assert_eq(wg_normalizer_open(&z, "FILE", words, 2, &err), WG_OK);
        cr_assert_eq(wg_normalizer_apply(&z, (wg_text){ text, LETTERS }, &room, &out, &err), WG_OK);
        cr_assert(out.n == LETTERS && memcmp(out.s, text, LETTERS) == 0);
        close_all();
    }
    free(text);
}

/* Steps that make a text large: an error, and no memory for what it would be. */
Test(normal, growth)
{
    char text[1000];
    wg_text out;
    memset(text, 'a', sizeof text);
    cr_assert_eq(open_words(WORDS("replace", "a", "aaaaaaaaaa", "replace", "a", "aaaaaaaaaa")), WG_OK);
    cr_assert_eq(wg_normalizer_apply(&z, (wg_text){ text, sizeof text }, &room, &out, &err), WG_OK);
    cr_assert_eq(out.n, 100000);
    close_all();
    cr_assert_eq(open_words(WORDS("replace", "a", "aaaaaaaaaaaaaaaaaaaaaaaa", "replace_regex", "a",
                                  "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
                                  "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")),
                 WG_OK);
    cr_assert_eq(wg_normalizer_apply(&z, (wg_text){ text, sizeof text }, &room, &out, &err), WG_EUNSUPPORTED);
    cr_assert_str_eq(err.text,
                     "a text grows to more than 1112576 bytes when it is normalised, which is not implemented; is its "
                     "tokenizer.json as it was published?");
    close_all();
}

/* Annex 29: line ends, Hangul, marks, joined pictures, regions, prepended marks, conjuncts, bytes that are no characters. */
Test(grapheme, lengths)
{
    static const struct {
        const char *text;
        size_t n;
    } row[] = {
        { "", 0 },
        { "ab", 1 },
        { "\r\nx", 2 },
        { "\n\u0301", 1 },
        { "e\u0301\u0323\u200dx", 1 + 2 + 2 + 3 },
        { "\u1100\u1161\u11a8\u11a8\u1100", 12 },
        { "\uac00\u11a8\uac00", 6 },
        { "\uac01\u1161", 3 },
        { "\u0e01\u0e33x", 6 },
        { "\u0600a\u0301b", 2 + 1 + 2 },
        { "\U0001f469\u200d\U0001f467x", 4 + 3 + 4 },
        { "\U0001f469\U0001f3fd\u200d\U0001f467", 4 + 4 + 3 + 4 },
        { "a\u200d\U0001f467", 1 + 3 },
        { "\U0001f1e9\U0001f1ea\U0001f1eb", 8 },
        { "\u0915\u094d\u0937x", 9 },
        { "\u0915\u094d\u200d\u0937", 12 },
        { "\u0915\u0937", 3 },
        { "\xff\u0301", 1 },
        { "a\xcc", 1 },
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        cr_expect_eq(wg_grapheme_length(row[i].text, strlen(row[i].text)), row[i].n, "%s: %zu, expected %zu", row[i].text,
                     wg_grapheme_length(row[i].text, strlen(row[i].text)), row[i].n);
}
