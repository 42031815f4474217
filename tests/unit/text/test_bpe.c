/* SPDX-License-Identifier: MIT
 * Byte-level BPE on a tiny vocabulary: worked examples, the definition executed literally, round trips, long words. */
#include <criterion/criterion.h>

#include "core/text/pretok.h"
#include "tests/unit/text/tiny.h"

static tiny file;

static wg_tokenizer *opened(void)
{
    wg_tokenizer *t = NULL;
    wg_error err = { 0 };
    tiny_bpe(&file);
    cr_assert_eq(tiny_open(&file, &t, &err), WG_OK, "%s", err.text);
    return t;
}

/* The bytes of the tokens, joined by '|'. */
static const char *pieces(const wg_tokenizer *t, const char *text, size_t n, bool special)
{
    static char out[4096];
    int32_t *ids;
    size_t n_ids, at = 0;
    wg_error err;
    cr_assert_eq(wg_tokenizer_encode(t, text, n, false, special, &ids, &n_ids, &err), WG_OK);
    out[0] = '\0';
    for (size_t i = 0; i < n_ids; i++) {
        if (i > 0) out[at++] = '|';
        at += wg_tokenizer_decode_one(t, ids[i], i == 0, true, out + at, sizeof out - at);
        out[at] = '\0';
    }
    wg_free(ids);
    return out;
}

Test(bpe, worked_examples)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        { "", "" },
        { "hello", "hello" },
        { "hello world", "hello| world" },
        { " hello", " hello" },
        { "  hello", " | hello" },       /* the pre-tokeniser leaves the last space for the word */
        { "helloworld", "hello|world" }, /* " world" needs its space */
        { "ello", "e|ll|o" },            /* "l l" ranks before "l o" */
        { "aaa", "aaa" },
        { "aaaa", "aaaa" },
        { "aaaaa", "aa|aaa" }, /* "aa a" ranks before "aa aa" */
        { "xyz", "x|y|z" },
        { "1 2", "1| |2" },
        { "12", "12" },
        { "\xc3\xa9", "\xc3\xa9" }, /* two bytes, one merge */
        { "\xc3\xff", "\xc3|\xff" },
        { "\n\n", "\n\n" },
        { "   ", "  | " },
        { "<|endoftext|>", "<|||e|n|d|o|f|t|e|x|t|||>" },
        { "h<tool>h", "h|<tool>|h" },
    };
    wg_tokenizer *t = opened();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *got = pieces(t, cases[i].text, strlen(cases[i].text), false);
        cr_expect_str_eq(got, cases[i].want, "\"%s\": got %s, expected %s", cases[i].text, got, cases[i].want);
    }
    cr_expect_str_eq(pieces(t, "h<|endoftext|>h", 15, true), "h|<|endoftext|>|h");
    wg_tokenizer_close(t);

    file = (tiny){ .merge = "l l" }; /* listed twice: the first place counts */
    t = opened();
    cr_expect_str_eq(pieces(t, "ello", 4, false), "e|ll|o");
    wg_tokenizer_close(t);
}

static int32_t token_of(const wg_tokenizer *t, const char *text, size_t n)
{
    for (int32_t id = 0; id < wg_tokenizer_size(t); id++) {
        const wg_text p = wg_tokenizer_piece(t, id);
        if (p.n == n && memcmp(p.s, text, n) == 0) return id;
    }
    return -1;
}

/* The definition, slowly: in each pre-token, for the first merge in the list that any pair matches, join the leftmost. The
 * token of byte b is b, that of merge i is 256 + i. */
static size_t by_definition(const char *text, size_t n, const wg_tokenizer *t, int32_t *ids)
{
    wg_pretok *p;
    wg_splitter x;
    size_t out = 0;
    cr_assert_eq(wg_pretok_open_row(&p, wg_pretok_row_named("gpt-2", 5), NULL), WG_OK);
    wg_splitter_begin(&x, p, text, n);
    for (wg_piece piece; wg_splitter_next(&x, &piece);) {
        const size_t at = piece.at, len = piece.end - at;
        int32_t *word = ids + out;
        size_t count = len;
        for (size_t i = 0; i < len; i++) word[i] = (unsigned char)text[at + i];
        for (int m = 0; m < TINY_MERGES; m++) {
            const size_t gap = strcspn(tiny_merges[m], " ");
            const int32_t left = token_of(t, tiny_merges[m], gap);
            const int32_t right = token_of(t, tiny_merges[m] + gap + 1, strlen(tiny_merges[m]) - gap - 1);
            for (size_t i = 0; i + 1 < count; i++) {
                if (word[i] != left || word[i + 1] != right) continue;
                word[i] = 256 + m;
                memmove(word + i + 1, word + i + 2, (count - i - 2) * sizeof *word);
                count--;
                m = -1; /* from the top */
                break;
            }
        }
        out += count;
    }
    wg_free(p);
    return out;
}

Test(bpe, equals_the_definition)
{
    static const char alphabet[] = "hhelloow rrld  aaa112\n\n\xc3\xa9\xffx";
    wg_tokenizer *t = opened();
    uint64_t seed = 17;
    for (int round = 0; round < 2000; round++) {
        char text[64];
        int32_t want[64], *ids;
        size_t n_ids;
        wg_error err;
        const size_t n = tiny_random(&seed) % sizeof text;
        for (size_t i = 0; i < n; i++) text[i] = alphabet[tiny_random(&seed) % (sizeof alphabet - 1)];
        const size_t n_want = by_definition(text, n, t, want);
        cr_assert_eq(wg_tokenizer_encode(t, text, n, false, false, &ids, &n_ids, &err), WG_OK);
        const bool same = n_ids == n_want && memcmp(ids, want, n_ids * sizeof *ids) == 0;
        if (!same) cr_assert(same, "round %d: \"%.*s\"", round, (int)n, text);
        wg_free(ids);
    }
    wg_tokenizer_close(t);
}

Test(bpe, round_trip_of_random_bytes)
{
    static const char *const kinds[] = { "gpt-2", "llama-bpe", "qwen2", "smollm" };
    for (int k = 0; k < 4; k++) {
        file = (tiny){ .pre = kinds[k] };
        wg_tokenizer *t = opened();
        uint64_t seed = 23;
        for (int round = 0; round < 1000; round++) {
            char text[300], *back;
            int32_t *ids;
            size_t n_ids, n_back;
            wg_error err;
            const size_t n = tiny_random(&seed) % sizeof text;
            for (size_t i = 0; i < n; i++) {
                const char any = (char)tiny_random(&seed);
                text[i] = tiny_random(&seed) % 3 ? any : "hello wor\n12"[tiny_random(&seed) % 12];
            }
            cr_assert_eq(wg_tokenizer_encode(t, text, n, true, round & 1, &ids, &n_ids, &err), WG_OK);
            cr_assert_eq(ids[0], wg_tokenizer_bos(t));
            cr_assert_eq(wg_tokenizer_decode(t, ids, n_ids, false, &back, &n_back, &err), WG_OK);
            cr_assert(n_back == n && memcmp(back, text, n) == 0, "%s, round %d", kinds[k], round);
            wg_free(ids);
            wg_free(back);
        }
        wg_tokenizer_close(t);
    }
    cr_assert_eq(wg_mem_read().live_blocks, 0);
}

/* Llama-3 files take a word that is a token as it is, even where no merges lead to it. */
Test(bpe, whole_words)
{
    file = (tiny){ .pre = "llama-bpe" };
    wg_tokenizer *t = opened();
    cr_expect_str_eq(pieces(t, "xyz xyz", 7, false), "xyz| |x|y|z");
    wg_tokenizer_close(t);
}

/* One pre-token of a million bytes: linear structures and a heap, or this test never ends. */
Test(bpe, one_long_word)
{
    enum { N = 1000000 };
    wg_tokenizer *t = opened();
    char *text = wg_alloc(N, 1), *back;
    int32_t *ids;
    size_t n_ids, n_back;
    wg_error err;
    memset(text, 'a', N);
    cr_assert_eq(wg_tokenizer_encode(t, text, N, false, false, &ids, &n_ids, &err), WG_OK);
    cr_assert_eq(n_ids, N / 4);
    cr_assert_eq(wg_tokenizer_decode(t, ids, n_ids, false, &back, &n_back, &err), WG_OK);
    cr_assert(n_back == N && memcmp(back, text, N) == 0);
    wg_free(back);
    wg_free(ids);
    wg_free(text);
    wg_tokenizer_close(t);
}
