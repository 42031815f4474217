/* SPDX-License-Identifier: MIT
 * SPM-style BPE on a tiny vocabulary: worked examples, and the definition executed literally. */
#include <criterion/criterion.h>

#include "tests/unit/text/tiny.h"

static tiny file; /* 100 KB: not for the stack */

static wg_tokenizer *opened(void)
{
    wg_tokenizer *t = NULL;
    wg_error err = { 0 };
    tiny_spm(&file);
    cr_assert_eq(tiny_open(&file, &t, &err), WG_OK, "%s", err.text);
    return t;
}

/* The texts of the tokens, joined by '|', spaces as '_'. */
static const char *pieces(const wg_tokenizer *t, const char *text, size_t n, bool bos, bool special)
{
    static char out[4096];
    int32_t *ids;
    size_t n_ids, at = 0;
    wg_error err;
    cr_assert_eq(wg_tokenizer_encode(t, text, n, bos, special, &ids, &n_ids, &err), WG_OK);
    out[0] = '\0';
    for (size_t i = 0; i < n_ids; i++) {
        const wg_text p = wg_tokenizer_piece(t, ids[i]);
        if (i > 0) out[at++] = '|';
        for (size_t k = 0; k < p.n; k++) {
            const bool space = p.n - k >= 3 && memcmp(p.s + k, SP, 3) == 0;
            out[at++] = space ? '_' : p.s[k];
            k += space ? 2 : 0;
        }
        out[at] = '\0';
    }
    wg_free(ids);
    return out;
}

Test(spm, worked_examples)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        { "", "" },
        { "hello", "_hello" },
        { "hello world", "_hello|_world" },
        { " hello", "__|hello" }, /* two spaces score better than _hello */
        { "  hello", "__|_hello" },
        { "   ", "____" },
        { "helloworld", "_hello|wor|ld" },
        { "lll", "_|ll|l" }, /* a tie: the left pair joins */
        { "a", "_a" },
        { "aaaa", "_|aa|aa" }, /* both aa score better than aaa and _a */
        { "aaa", "_|aaa" },
        { "ho", "_|h|o" },
        { "x", "_|<0x78>" },
        { "h\xc3\xa9", "_|h|\xc3\xa9" },
        { "\xe6\x88\x91\xe6\x88\x92", "_|\xe6\x88\x91|<0xE6>|<0x88>|<0x92>" },
        { "h\xff\xe2\x96h", "_|h|<0xFF>|<0xE2>|<0x96>|h" },
        { "\n", "_|<0x0A>" },
        { "<s>", "_|<0x3C>|s>" }, /* not allowed: plain text, which never joins to a control token */
        { "<0x41>", "_|<0x3C>|<0x30>|<0x78>|<0x34>|<0x31>|<0x3E>" },
        { "h<tool>h", "_|h|<tool>|_|h" }, /* user-defined: always; text behind it has its own prefix */
        { "<tool>>", "<tool>>" },         /* the longest wins */
        { "<tool<tool>", "_|<0x3C>|<0x74>|o|o|l|<tool>" },
    };
    wg_tokenizer *t = opened();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *got = pieces(t, cases[i].text, strlen(cases[i].text), false, false);
        cr_expect_str_eq(got, cases[i].want, "\"%s\": got %s, expected %s", cases[i].text, got, cases[i].want);
    }
    cr_expect_str_eq(pieces(t, "h\0h", 3, false, false), "_|h|<0x00>|h");
    cr_expect_str_eq(pieces(t, "hello", 5, true, false), "<s>|_hello");
    cr_expect_str_eq(pieces(t, "", 0, true, false), "<s>");
    cr_expect_str_eq(pieces(t, "<s>h</s>", 8, true, true), "<s>|<s>|_|h|</s>");
    cr_expect_str_eq(pieces(t, "h<|im_end|><unk>", 16, false, true), "_|h|<|im_end|>|<unk>");
    wg_tokenizer_close(t);
}

Test(spm, without_prefix_and_without_bytes)
{
    file = (tiny){ .with_prefix_key = true, .drop_byte = 0 };
    wg_tokenizer *t = opened();
    cr_expect_str_eq(pieces(t, "hello world", 11, false, false), "hello|_world");
    cr_expect_str_eq(pieces(t, "<tool>h", 7, false, false), "<tool>|h");
    char out[8];
    const int32_t hello = 3 + 256 + 18; /* SP "hello" */
    cr_expect_eq(wg_tokenizer_decode_one(t, hello, true, false, out, sizeof out), 6, "no prefix: nothing is dropped");
    wg_tokenizer_close(t);
}

Test(spm, texts_that_two_tokens_have)
{
    file = (tiny){ .with_doubles = true };
    wg_tokenizer *t = opened();
    int32_t *ids;
    size_t n;
    wg_error err;
    cr_assert_eq(wg_tokenizer_encode(t, "h<tool>", 7, false, false, &ids, &n, &err), WG_OK);
    cr_assert_eq(n, 3);
    cr_expect(ids[1] == 3 + 256 + 2, "the word, not the unused token before it: %d", ids[1]);
    cr_expect(ids[2] == wg_tokenizer_size(t) - 4, "the lower id: %d", ids[2]);
    wg_free(ids);
    wg_tokenizer_close(t);
}

/* The definition, slowly: among all adjacent pairs take the one whose concatenation has the highest score, leftmost. */
static size_t by_definition(const char *text, size_t n, const tiny *f, int32_t *ids)
{
    static char s[4096];
    static size_t end[4096];
    size_t len = 3, parts = 0, out = 0;
    memcpy(s, SP, 3);
    for (size_t i = 0; i < n; i++) {
        if (text[i] == ' ') {
            memcpy(s + len, SP, 3);
            len += 3;
        } else s[len++] = text[i];
    }
    for (size_t i = 0; i < len; i++) /* the alphabet below is well-formed, so a character ends before the next first byte */
        if (i + 1 == len || ((unsigned char)s[i + 1] & 0xc0) != 0x80) end[parts++] = i + 1;
    for (;;) {
        int best = -1;
        size_t at = 0;
        for (size_t i = 0; i + 1 < parts; i++) {
            const size_t from = i ? end[i - 1] : 0, size = end[i + 1] - from;
            for (int k = 259; k < f->tokens; k++)
                if (f->type[k] == 1 && f->text[k].n == size && memcmp(f->text[k].s, s + from, size) == 0 &&
                    (best < 0 || f->score[k] > f->score[best])) {
                    best = k;
                    at = i;
                }
        }
        if (best < 0) break;
        memmove(end + at, end + at + 1, (parts - at - 1) * sizeof *end);
        parts--;
    }
    for (size_t i = 0, from = 0; i < parts; from = end[i++]) {
        int id = -1;
        for (int k = 259; k < f->tokens && id < 0; k++)
            if (f->type[k] == 1 && f->text[k].n == end[i] - from && memcmp(f->text[k].s, s + from, end[i] - from) == 0) id = k;
        if (id >= 0) ids[out++] = id;
        else
            for (size_t k = from; k < end[i]; k++) ids[out++] = 3 + (unsigned char)s[k];
    }
    return out;
}

/* Also with a vocabulary in which a space stands inside a token, so that the text may not be cut before spaces. */
Test(spm, equals_the_definition)
{
    static const char *const parts[] = { " ",
                                         " ",
                                         "h",
                                         "e",
                                         "l",
                                         "l",
                                         "o",
                                         "w",
                                         "o",
                                         "r",
                                         "l",
                                         "d",
                                         "a",
                                         "a",
                                         "x",
                                         "\n",
                                         SP,
                                         "\xc3\xa9",
                                         "\xe6\x88\x91",
                                         "\xf0\x9f\x98\x81",
                                         "hello",
                                         " world",
                                         "h h",
                                         "h " };
    for (int inner = 0; inner < 2; inner++) {
        file = (tiny){ .with_inner_space = inner };
        wg_tokenizer *t = opened();
        uint64_t seed = 11;
        for (int round = 0; round < 3000; round++) {
            char text[400];
            int32_t want[2048], *ids;
            size_t n = 0, n_ids;
            wg_error err;
            for (uint32_t k = tiny_random(&seed) % 40 + 1; k > 0; k--) {
                const char *part = parts[tiny_random(&seed) % (sizeof parts / sizeof *parts)];
                memcpy(text + n, part, strlen(part));
                n += strlen(part);
            }
            const size_t n_want = by_definition(text, n, &file, want);
            cr_assert_eq(wg_tokenizer_encode(t, text, n, false, false, &ids, &n_ids, &err), WG_OK);
            const bool same = n_ids == n_want && memcmp(ids, want, n_ids * sizeof *ids) == 0;
            if (!same) cr_assert(same, "inner %d, round %d: \"%.*s\"", inner, round, (int)n, text);
            wg_free(ids);
        }
        wg_tokenizer_close(t);
    }
}

/* Without a literal U+2581 in it, any bytes come back. */
Test(spm, round_trip_of_random_bytes)
{
    wg_tokenizer *t = opened();
    uint64_t seed = 3;
    for (int round = 0; round < 3000; round++) {
        char text[300], *back;
        int32_t *ids;
        size_t n_ids, n_back;
        const size_t n = tiny_random(&seed) % sizeof text;
        for (size_t i = 0; i < n; i++) {
            const char any = (char)tiny_random(&seed);
            text[i] = tiny_random(&seed) % 3 ? any : "hello world "[tiny_random(&seed) % 12];
        }
        wg_error err;
        cr_assert_eq(wg_tokenizer_encode(t, text, n, round & 1, false, &ids, &n_ids, &err), WG_OK);
        cr_assert_eq(wg_tokenizer_decode(t, ids, n_ids, false, &back, &n_back, &err), WG_OK);
        cr_assert(n_back == n && memcmp(back, text, n) == 0, "round %d", round);
        wg_free(ids);
        wg_free(back);
    }
    wg_tokenizer_close(t);
    cr_assert_eq(wg_mem_read().live_blocks, 0);
}
