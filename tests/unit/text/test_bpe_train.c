/* SPDX-License-Identifier: MIT
 * Training of byte-level BPE: merges of the library `tokenizers` on the same text (on a play: test_shared_data.c); ties by
 * hand; texts in parts; what is written is read, and encodes as the library. */
#include "trained_bpe.h"

static void append(text *t, const char *s)
{
    const size_t n = strlen(s);
    memcpy(t->s + t->n, s, n);
    t->n += n;
}

/* Words of syllables by a linear congruential generator. */
static text generated(int words)
{
    static const char *const syllables[] = { "ba", "ka",  "ri", "ton", "e",    "st", "in",  "g",
                                             "ä",  "лов", "字", "x1",  "2026", "'s", "aaa", "\u00a0" };
    text t = { .s = wg_alloc((size_t)words * 24, 1) };
    uint32_t state = 1;
    for (int i = 0; i < words; i++) {
        state = (state * 1103515245u + 12345u) & 0x7fffffff;
        for (uint32_t k = 1 + (state >> 16) % 3; k > 0; k--) {
            state = (state * 1103515245u + 12345u) & 0x7fffffff;
            const uint32_t a = (state >> 16) % 256;
            append(&t, syllables[a * a >> 12]);
        }
        append(&t, i % 41 == 40 ? "\n\n" : i % 17 == 16 ? ".  " : " ");
    }
    return t;
}

static void train(wg_bpe_trainer *t, const char *pre, const text *x, size_t vocab, int64_t least)
{
    cr_assert_eq(wg_bpe_trainer_open(t, row_named(pre), &err), WG_OK, "%s", err.text);
    cr_assert_eq(wg_bpe_trainer_add(t, "TEXT", x->s, x->n, &err), WG_OK, "%s", err.text);
    cr_assert_eq(wg_bpe_trainer_run(t, vocab, least, NULL, 0, &err), WG_OK, "%s", err.text);
}

Test(bpe_train, has_the_merges_of_the_library)
{
    const text x = generated(6000);
    cr_assert_eq(check_cases("generated", &x), 3);
    wg_free(x.s);
}

/* ---- by hand */

static void check_merges(const char *words, size_t vocab, int64_t least, const char *want)
{
    wg_bpe_trainer t;
    char got[512] = "";
    size_t at = 0;
    const text x = { (char *)(uintptr_t)words, strlen(words) };
    train(&t, "gpt-2", &x, vocab, least);
    for (size_t i = 0; i < t.merges; i++) {
        const wg_text a = wg_byte_string_at(&t.token, (size_t)t.merge[i].left),
                      b = wg_byte_string_at(&t.token, (size_t)t.merge[i].right);
        at += (size_t)snprintf(got + at, sizeof got - at, "%s%.*s+%.*s", i ? " " : "", (int)a.n, a.s, (int)b.n, b.s);
    }
    cr_assert_str_eq(got, want);
    wg_bpe_trainer_close(&t);
}

Test(bpe_train, merges_by_hand)
{
    check_merges("ab\nab\nac", 1000, 2, "a+b");             /* two of a+b; all else stands once */
    check_merges("cd\nab\ncd\nab", 257, 1, "a+b");          /* a tie: the lower id */
    check_merges("bz\nby\nbz\nby", 258, 1, "b+y b+z");      /* then that of the right half */
    check_merges("aaaa\naaaa", 1000, 2, "a+a aa+aa");       /* three pairs a+a in a word, of which two join */
    check_merges("abc\nabc\nabc\nbc", 1000, 2, "b+c a+bc"); /* after b+c there is no a+b left */
    check_merges("abc\nabc\nabc\nbc", 1000, 4, "b+c");      /* least times */
}

/* A merge that makes the text of a special token makes that token. */
Test(bpe_train, a_merge_may_make_a_special_token)
{
    wg_bpe_trainer t;
    static const wg_text special[] = { { "ab", 2 }, { "ab", 2 } }; /* once */
    cr_assert_eq(wg_bpe_trainer_open(&t, row_named("gpt-2"), &err), WG_OK);
    cr_assert_eq(wg_bpe_trainer_add(&t, "TEXT", "ab\nab\nabc\nabc", 13, &err), WG_OK);
    cr_assert_eq(wg_bpe_trainer_run(&t, 300, 2, special, 2, &err), WG_OK);
    cr_assert(t.specials == 1 && t.merges == 2 && t.token.n == 258 && t.merge[0].id == 0 && t.merge[1].left == 0);
    wg_bpe_trainer_close(&t);
}

/* ---- files */

/* A text in parts has the words of the whole, and so has one with a byte order mark. */
Test(bpe_train, reads_in_parts)
{
    wg_bpe_trainer whole, parts;
    char hex[2][WG_SHA256_HEX];
    temp folder;
    text x = generated(400000);
    size_t lines;
    cr_assert_gt(x.n, 2 << 20, "%zu", x.n);
    temp_make(&folder);
    const char *path = temp_at(&folder, "text");
    file_write(path, x.s, x.n);
    train(&whole, "llama-bpe", &x, 700, 2);
    cr_assert_eq(wg_bpe_trainer_open(&parts, row_named("llama-bpe"), &err), WG_OK);
    cr_assert_eq(wg_bpe_trainer_read(&parts, path, &err), WG_OK, "%s", err.text);
    cr_assert(parts.bytes == x.n && parts.read == whole.read && parts.words.n == whole.words.n);
    cr_assert_eq(wg_bpe_trainer_run(&parts, 700, 2, NULL, 0, &err), WG_OK);
    digest_merges(&whole, hex[0], &lines);
    digest_merges(&parts, hex[1], &lines);
    cr_assert_str_eq(hex[0], hex[1]);
    wg_bpe_trainer_close(&parts);
    file_write(path,
               "\xef\xbb\xbf"
               "ab ab",
               8);
    cr_assert_eq(wg_bpe_trainer_open(&parts, row_named("gpt-2"), &err), WG_OK);
    cr_assert_eq(wg_bpe_trainer_read(&parts, path, &err), WG_OK);
    cr_assert(parts.read == 2 && parts.bytes == 5);
    wg_bpe_trainer_close(&parts);
    wg_bpe_trainer_close(&whole);
    wg_free(x.s);
    temp_remove(&folder);
}

/* The end of a part lies inside a character. */
Test(bpe_train, reads_characters_across_parts)
{
    enum { N = 400000 };
    wg_bpe_trainer t;
    temp folder;
    char *s = wg_alloc(3 * N, 1);
    for (int i = 0; i < N; i++) memcpy(s + 3 * i, "\xc3\xa9 ", 3);
    temp_make(&folder);
    const char *path = temp_at(&folder, "text");
    file_write(path, s, 3 * N);
    cr_assert_eq(wg_bpe_trainer_open(&t, row_named("gpt-2"), &err), WG_OK);
    cr_assert_eq(wg_bpe_trainer_read(&t, path, &err), WG_OK, "%s", err.text);
    cr_assert(t.read == N + 1 && t.words.n == 3, "%d words", (int)t.read); /* the first without a space, and the last space */
    wg_bpe_trainer_close(&t);
    wg_free(s);
    temp_remove(&folder);
}

/* One word longer than a part. */
Test(bpe_train, reads_a_word_longer_than_a_part)
{
    wg_bpe_trainer t;
    temp folder;
    const size_t n = (3 << 20) + 5;
    char *s = wg_alloc(n, 1);
    memset(s, 'a', n);
    temp_make(&folder);
    const char *path = temp_at(&folder, "text");
    file_write(path, s, n);
    cr_assert_eq(wg_bpe_trainer_open(&t, row_named("gpt-2"), &err), WG_OK);
    cr_assert_eq(wg_bpe_trainer_read(&t, path, &err), WG_OK, "%s", err.text);
    cr_assert(t.read == 1 && t.words.v[0].n == n);
    cr_assert_eq(wg_bpe_trainer_run(&t, 260, 2, NULL, 0, &err), WG_OK);
    cr_assert_eq(t.merges, 4);
    wg_bpe_trainer_close(&t);
    wg_free(s);
    temp_remove(&folder);
}

/* A GGUF file without tensors, in which the first special token ends a text. */
Test(bpe_train, writes_gguf)
{
    wg_bpe_trainer t;
    temp folder;
    wg_weights *w;
    wg_tokenizer *k;
    int32_t *ids;
    size_t n;
    static const wg_text special[] = { { "<end>", 5 }, { "<pad>", 5 } };
    temp_make(&folder);
    const char *path = temp_at(&folder, "vocabulary.gguf");
    cr_assert_eq(wg_bpe_trainer_open(&t, row_named("qwen2"), &err), WG_OK);
    cr_assert_eq(wg_bpe_trainer_add(&t, "TEXT", "abc abc ab 12 12", 16, &err), WG_OK);
    cr_assert_eq(wg_bpe_trainer_run(&t, 300, 2, special, 2, &err), WG_OK);
    cr_assert_eq(wg_bpe_trainer_save(&t, path, &err), WG_OK, "%s", err.text);
    cr_assert_eq(wg_weights_open(&w, path, &err), WG_OK, "%s", err.text);
    cr_assert_eq(wg_tokenizer_open(&k, w, &err), WG_OK, "%s", err.text);
    cr_assert(wg_tokenizer_eos(k) == 0 && wg_tokenizer_size(k) == (int)t.token.n);
    cr_assert_eq(wg_tokenizer_encode(k, "ab<end> abc1", 12, false, true, &ids, &n, &err), WG_OK);
    cr_assert(n == 5 && ids[1] == 0, "%zu", n); /* ab <end> _ab c 1 */
    wg_free(ids);
    wg_tokenizer_close(k);
    wg_weights_close(w);
    wg_bpe_trainer_close(&t);
    temp_remove(&folder);
}

/* A byte that is not UTF-8 is named by its place in the file, also behind the first part. */
Test(bpe_train, refuses_what_is_not_text)
{
    wg_bpe_trainer t;
    temp folder;
    text x = generated(300000);
    static const wg_text special[] = { { "<s>", 3 } };
    size_t at = 1500000;
    while ((unsigned char)x.s[at] != ' ') at++;
    x.s[at] = '\xff';
    temp_make(&folder);
    const char *path = temp_at(&folder, "text");
    file_write(path, x.s, x.n);
    cr_assert_eq(wg_bpe_trainer_open(&t, row_named("gpt-2"), &err), WG_OK);
    char want[64];
    snprintf(want, sizeof want, ": byte %zu (0xff) is not UTF-8", at);
    cr_assert_eq(wg_bpe_trainer_read(&t, path, &err), WG_EFORMAT);
    cr_assert(strstr(err.text, want), "%s", err.text);
    wg_bpe_trainer_close(&t);
    cr_assert_eq(wg_bpe_trainer_open(&t, row_named("gpt-2"), &err), WG_OK);
    cr_assert_eq(wg_bpe_trainer_add(&t, "TEXT", "a\xc3", 2, &err), WG_EFORMAT); /* cut off */
    cr_assert_eq(wg_bpe_trainer_run(&t, 300, 2, special, 1, &err), WG_EINVAL);
    cr_assert(strstr(err.text, "the texts are empty"), "%s", err.text);
    cr_assert_eq(wg_bpe_trainer_add(&t, "TEXT", "a b", 3, &err), WG_OK);
    cr_assert_eq(wg_bpe_trainer_run(&t, 256, 2, special, 1, &err), WG_EINVAL);
    cr_assert(
        strstr(err.text, "a vocabulary of 256 tokens is too small: expected at least 257, the 256 bytes and 1 special token"));
    wg_bpe_trainer_close(&t);
    wg_free(x.s);
    temp_remove(&folder);
}

/* Whatever allocation fails, the error is reported and nothing stays behind. */
Test(bpe_train, survives_failed_allocations)
{
    text x = generated(60);
    for (uint64_t n = 1;; n++) {
        wg_bpe_trainer t = { 0 };
        wg_mem_fail_at(n, false);
        wg_status s = wg_bpe_trainer_open(&t, row_named("gpt-2"), &err);
        if (!s) s = wg_bpe_trainer_add(&t, "TEXT", x.s, x.n, &err);
        if (!s) s = wg_bpe_trainer_run(&t, 300, 2, NULL, 0, &err);
        wg_mem_fail_at(0, false);
        wg_bpe_trainer_close(&t);
        cr_assert(s == WG_OK || s == WG_ENOMEM, "allocation %d: %s", (int)n, err.text);
        if (!s) break;
    }
    wg_free(x.s);
}
