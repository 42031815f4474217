/* SPDX-License-Identifier: MIT
 * The first byte selects a tiny tokenizer and the meaning of the rest: text (encode, decode, stream: the bytes must return),
 * ids (decode and stream must agree), or damage to the file (offset, value pairs: opening must succeed or give a message). */
#include <stdlib.h>

#include "tests/unit/text/tiny.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static tiny file;

/* Streams ids and compares with the whole decode, which is returned. */
static char *decoded(const wg_tokenizer *t, const int32_t *ids, size_t n_ids, size_t *n)
{
    char *whole, part[512];
    size_t at = 0;
    wg_error err;
    wg_stream s = { 0 };
    if (wg_tokenizer_decode(t, ids, n_ids, false, &whole, n, &err)) abort();
    for (size_t i = 0; i <= n_ids; i++) {
        const size_t len = i < n_ids ? wg_stream_put(&s, t, ids[i], part, sizeof part) : wg_stream_end(&s, part, sizeof part);
        if (at + len > *n || memcmp(whole + at, part, len) != 0) abort();
        at += len;
    }
    if (at != *n) abort();
    return whole;
}

static bool contains(const char *s, size_t n, const char *word) { return memmem(s, n, word, strlen(word)) != NULL; }

static void text_mode(const wg_tokenizer *t, const char *text, size_t n, bool special)
{
    int32_t *ids;
    size_t n_ids, n_back;
    wg_error err;
    if (wg_tokenizer_encode(t, text, n, true, special, &ids, &n_ids, &err)) abort();
    for (size_t i = 0; i < n_ids; i++)
        if (ids[i] < 0 || ids[i] >= wg_tokenizer_size(t)) abort();
    char *back = decoded(t, ids, n_ids, &n_back);
    /* "llama": a U+2581 returns as a space, and text behind a user-defined token begins with another space */
    const bool returns = strcmp(wg_tokenizer_kind(t), "gpt2") == 0 || !(contains(text, n, SP) || contains(text, n, "<tool>"));
    if (!special && returns && (n_back != n || memcmp(back, text, n) != 0)) abort();
    wg_free(back);
    wg_free(ids);
}

static void ids_mode(const wg_tokenizer *t, const uint8_t *data, size_t size)
{
    int32_t *ids = wg_alloc(size / 2, sizeof *ids);
    size_t n;
    for (size_t i = 0; i < size / 2; i++)
        ids[i] = (int32_t)(data[2 * i] | data[2 * i + 1] << 8) % (wg_tokenizer_size(t) + 2) - 1;
    wg_free(decoded(t, ids, size / 2, &n));
    wg_free(ids);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const pretok[] = { "gpt-2", "llama3", "qwen2", "smollm" };
    if (size == 0) return 0;
    const unsigned kind = data[0] & 7, mode = data[0] >> 3 & 3;
    wg_tokenizer *t = NULL;
    wg_error err = { 0 };
    file = (tiny){ .with_inner_space = kind == 5, .pre = kind < 4 ? pretok[kind] : NULL };
    (kind < 4 ? tiny_bpe : tiny_spm)(&file);
    data++;
    size--;
    for (size_t i = 0; mode == 3 && i + 3 <= size; i += 3) file.b[(data[i] | data[i + 1] << 8) % file.n] = data[i + 2];
    const wg_status s = tiny_open(&file, &t, &err);
    if ((mode < 3 && s != WG_OK) || (s == WG_OK) != (t != NULL) || (s != WG_OK && err.text[0] == '\0')) abort();
    if (s == WG_OK && mode == 2) ids_mode(t, data, size);
    else if (s == WG_OK && mode == 3) {
        int32_t *ids; /* a damaged vocabulary need not be reversible, only safe */
        size_t n;
        if (wg_tokenizer_encode(t, "hello <tool> w\xff", 15, true, true, &ids, &n, &err) == WG_OK) {
            for (size_t i = 0; i < n; i++)
                if (ids[i] < 0 || ids[i] >= wg_tokenizer_size(t)) abort();
            char *back = decoded(t, ids, n, &n);
            wg_free(back);
            wg_free(ids);
        }
    } else if (s == WG_OK) text_mode(t, (const char *)data, size, mode == 1);
    wg_tokenizer_close(t);
    return 0;
}
