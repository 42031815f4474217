/* SPDX-License-Identifier: MIT
 * A text can be encoded in parts: the ids before a cut do not depend on the text after it. Tested on random text over
 * alphabets of borders only (spaces, line ends, apostrophes, digits, pieces of characters), grown a few bytes at a time,
 * against the ids of the whole, for both kinds and every pre-tokeniser. */
#include <criterion/criterion.h>

#include "tests/unit/text/tiny.h"

static tiny file;

static wg_tokenizer *opened(const char *pre)
{
    wg_tokenizer *t = NULL;
    wg_error err = { 0 };
    file.pre = pre;
    if (pre) tiny_bpe(&file);
    else tiny_spm(&file);
    cr_assert_eq(tiny_open(&file, &t, &err), WG_OK, "%s", err.text);
    return t;
}

/* Grows a text of `n` bytes from `alphabet` and encodes only what is behind the last cut; returns how many cuts there were. */
static int grow(const wg_tokenizer *t, const char *const *alphabet, int letters, size_t n, uint64_t seed)
{
    char text[600];
    int32_t sure[WG_PART_ROOM(600)];
    size_t at = 0, cut = 0, n_sure = 0;
    int cuts = 0;
    wg_merger m = { 0 };
    wg_ids ids = { 0 };
    wg_error err;
    while (at < n) {
        for (uint32_t k = tiny_random(&seed) % 6; k < 6; k++) {
            const char *s = alphabet[tiny_random(&seed) % (uint32_t)letters];
            memcpy(text + at, s, strlen(s));
            at += strlen(s);
        }
        int32_t *whole;
        size_t n_whole;
        cr_assert_eq(wg_tokenizer_encode(t, text, at, false, false, &whole, &n_whole, &err), WG_OK);
        ids.n = 0;
        cr_assert_eq(wg_tokenizer_encode_part(t, text + cut, at - cut, cut == 0, &m, &ids, &err), WG_OK);
        cr_assert_eq(n_sure + ids.n, n_whole, "%s: %zu + %zu ids, the whole text has %zu: '%.*s'", file.pre, n_sure, ids.n,
                     n_whole, (int)at, text);
        cr_assert_eq(memcmp(sure, whole, n_sure * sizeof *sure), 0, "before the cut at %zu: '%.*s'", cut, (int)at, text);
        cr_assert_eq(memcmp(ids.v, whole + n_sure, ids.n * sizeof *sure), 0, "after the cut at %zu: '%.*s'", cut, (int)at,
                     text);
        wg_free(whole);
        const size_t more = wg_tokenizer_cut(t, text + cut, at - cut);
        cr_assert_lt(more, at - cut);
        if (more == 0) continue;
        ids.n = 0;
        cr_assert_eq(wg_tokenizer_encode_part(t, text + cut, more, cut == 0, &m, &ids, &err), WG_OK);
        memcpy(sure + n_sure, ids.v, ids.n * sizeof *sure);
        n_sure += ids.n;
        cut += more;
        cuts++;
    }
    wg_merger_free(&m);
    wg_free(ids.v);
    return cuts;
}

static const char *const borders[] = {
    " ", " ",  "\n", "\r", "\t",   "'",    "s",        "r",    "e",    "'l",           "l",     "hell", "o",
    "1", "23", ".",  "!",  "\xc3", "\xa9", "\xe6\x88", "\x91", "\xff", "\xe3\x80\x80", "hello", " wor"
};
static const char *const words[] = { " hello", "hello", " world", " ", "lo", "\n", "\xc3\xa9", "aaa", " a" };

Test(cut, parts_have_the_ids_of_the_whole)
{
    static const char *const pre[] = { NULL,     "gpt-2",  "llama-bpe", "dbrx",         "qwen2",          "starcoder",
                                       "qwen35", "tekken", "gpt-4o",    "deepseek-llm", "deepseek-coder", "deepseek-v3",
                                       "falcon" };
    for (size_t i = 0; i < sizeof pre / sizeof *pre; i++) {
        wg_tokenizer *t = opened(pre[i]);
        int cuts = 0;
        for (uint64_t seed = 1; seed <= 18; seed++) {
            cuts += grow(t, borders, sizeof borders / sizeof *borders, 250, seed * 77);
            cuts += grow(t, words, sizeof words / sizeof *words, 250, seed * 78);
        }
        cr_assert_gt(cuts, 200, "%s: only %d cuts", pre[i] ? pre[i] : "spm", cuts);
        wg_tokenizer_close(t);
    }
}

/* A token that is found in raw text may begin before a border and end behind it; nothing after its first byte is cut. */
Test(cut, stops_before_tokens_of_raw_text)
{
    wg_tokenizer *t = opened("gpt-2");
    const char text[] = "hello world hello world <tool hello world hello world";
    cr_assert_gt(wg_tokenizer_cut(t, text, sizeof text - 1), 0);
    cr_assert_leq(wg_tokenizer_cut(t, text, sizeof text - 1), strcspn(text, "<"));
    static const char *const tools[] = { "<tool>", "<to", "ol>", " hello", " ", "<", "world " };
    for (uint64_t seed = 1; seed <= 40; seed++) grow(t, tools, sizeof tools / sizeof *tools, 250, seed);
    wg_tokenizer_close(t);
}

/* A vocabulary that joins across spaces has no places to cut at. */
Test(cut, none_where_tokens_hold_spaces)
{
    file.with_inner_space = true;
    wg_tokenizer *t = opened(NULL);
    cr_assert_eq(wg_tokenizer_cut(t, "hello world hello world", 23), 0);
    wg_tokenizer_close(t);
    file.with_inner_space = false;
}
