/* SPDX-License-Identifier: MIT
 * Streaming gives the bytes of the whole decode, and cuts only between characters. */
#include <criterion/criterion.h>

#include "core/text/unicode.h"
#include "tests/unit/text/tiny.h"

static tiny file;

static wg_tokenizer *opened(int kind)
{
    wg_tokenizer *t = NULL;
    wg_error err = { 0 };
    file = (tiny){ 0 };
    (kind ? tiny_bpe : tiny_spm)(&file);
    cr_assert_eq(tiny_open(&file, &t, &err), WG_OK, "%s", err.text);
    return t;
}

/* Streams ids; no part may end inside a character of the whole text (bytes that are no character stand alone). */
static void check(const wg_tokenizer *t, const int32_t *ids, size_t n_ids, int round)
{
    static char got[1 << 16];
    char *want, part[512];
    size_t n_want, n = 0, boundary = 0;
    uint32_t cp;
    wg_error err;
    wg_stream s = { 0 };
    cr_assert_eq(wg_tokenizer_decode(t, ids, n_ids, false, &want, &n_want, &err), WG_OK);
    bool ok = true;
    for (size_t i = 0; i <= n_ids; i++) {
        const size_t len = i < n_ids ? wg_stream_put(&s, t, ids[i], part, sizeof part) : wg_stream_end(&s, part, sizeof part);
        memcpy(got + n, part, len);
        n += len;
        while (boundary < n && boundary < n_want) boundary += wg_utf8_decode(want + boundary, n_want - boundary, &cp);
        ok = ok && boundary == n && s.n_held < 4;
    }
    ok = ok && n == n_want && memcmp(got, want, n) == 0;
    if (!ok) cr_assert(ok, "round %d: \"%s\"", round, want);
    wg_free(want);
}

Test(stream, random_tokens)
{
    for (int kind = 0; kind < 2; kind++) {
        wg_tokenizer *t = opened(kind);
        uint64_t seed = 41;
        for (int round = 0; round < 5000; round++) {
            int32_t ids[60];
            const size_t n = tiny_random(&seed) % 60;
            for (size_t i = 0; i < n; i++) ids[i] = (int32_t)(tiny_random(&seed) % (unsigned)(wg_tokenizer_size(t) + 2)) - 1;
            check(t, ids, n, round);
        }
        wg_tokenizer_close(t);
    }
}

/* Texts of many scripts, so that characters are spread over several byte tokens. */
Test(stream, characters_arrive_whole)
{
    static const char *const parts[] = { "hello",
                                         " ",
                                         "\xc3\xa9",
                                         "\xe6\x88\x92",
                                         "\xf0\x9f\x98\x81",
                                         "\xe2\x80\x8d",
                                         "\xed\x9f\xbf",
                                         "\n",
                                         "\xf4\x8f\xbf\xbf",
                                         "\xe0\xa0\x80",
                                         "x" };
    for (int kind = 0; kind < 2; kind++) {
        wg_tokenizer *t = opened(kind);
        uint64_t seed = 43;
        for (int round = 0; round < 2000; round++) {
            char text[256];
            int32_t *ids;
            size_t n = 0, n_ids;
            wg_error err;
            for (uint32_t k = tiny_random(&seed) % 30; k > 0; k--) {
                const char *part = parts[tiny_random(&seed) % (sizeof parts / sizeof *parts)];
                memcpy(text + n, part, strlen(part));
                n += strlen(part);
            }
            cr_assert_eq(wg_tokenizer_encode(t, text, n, true, false, &ids, &n_ids, &err), WG_OK);
            check(t, ids, n_ids, round);
            wg_free(ids);
        }
        wg_tokenizer_close(t);
    }
    cr_assert_eq(wg_mem_read().live_blocks, 0);
}

Test(stream, holds_back_and_lets_go)
{
    wg_tokenizer *t = opened(0);
    char out[512];
    wg_stream s = { 0 };
    const int32_t byte = 3, hello = 3 + 256 + 18; /* <0x00>, SP "hello" */
    cr_expect_eq(wg_stream_put(&s, t, wg_tokenizer_bos(t), out, sizeof out), 0, "control tokens print nothing");
    cr_expect(wg_stream_put(&s, t, hello, out, sizeof out) == 5 && memcmp(out, "hello", 5) == 0,
              "BOS does not count as the first");
    cr_expect(wg_stream_put(&s, t, hello, out, sizeof out) == 6 && memcmp(out, " hello", 6) == 0);
    cr_expect_eq(wg_stream_put(&s, t, byte + 0xe2, out, sizeof out), 0);
    cr_expect_eq(wg_stream_put(&s, t, byte + 0x96, out, sizeof out), 0);
    cr_expect(wg_stream_put(&s, t, byte + 0x81, out, sizeof out) == 3 && memcmp(out, SP, 3) == 0);
    cr_expect_eq(wg_stream_put(&s, t, byte + 0xe2, out, sizeof out), 0);
    cr_expect(wg_stream_put(&s, t, hello, out, sizeof out) == 7 && memcmp(out, "\xe2 hello", 7) == 0,
              "never completed: as it is");
    cr_expect(wg_stream_put(&s, t, byte + 0xff, out, sizeof out) == 1, "can never become a character");
    cr_expect_eq(wg_stream_put(&s, t, byte + 0xf0, out, sizeof out), 0);
    cr_expect_eq(wg_stream_put(&s, t, wg_tokenizer_eos(t), out, sizeof out), 0);
    cr_expect(wg_stream_end(&s, out, sizeof out) == 1 && out[0] == '\xf0');
    cr_expect_eq(wg_stream_end(&s, out, sizeof out), 0);
    wg_tokenizer_close(t);
}

/* A token of any length: found, decoded, streamed. */
Test(stream, long_token)
{
    enum { LONG = 3000 };
    static char word[LONG + 1], out[2 * LONG];
    int32_t *ids;
    size_t n;
    wg_error err;
    wg_stream s = { 0 };
    wg_tokenizer *t = NULL;
    memset(word, 'x', LONG);
    file = (tiny){ .word = word, .pre = "llama3" };
    tiny_bpe(&file);
    cr_assert_eq(tiny_open(&file, &t, &err), WG_OK, "%s", err.text);
    cr_assert(wg_tokenizer_room(t) >= LONG + 4 && wg_tokenizer_room(t) <= LONG + 8);
    cr_assert_eq(wg_tokenizer_encode(t, word, LONG, false, false, &ids, &n, &err), WG_OK);
    cr_assert(n == 1 && wg_stream_put(&s, t, ids[0], out, sizeof out) == LONG && memcmp(out, word, LONG) == 0);
    wg_free(ids);
    wg_tokenizer_close(t);
}
