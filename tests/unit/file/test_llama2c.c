/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>

#include "core/base/mem.h"
#include "core/file/format.h"
#include "core/file/gguf_write.h"
#include "tests/temp.h"
#include "tests/unit/file/llama2c_bytes.h"

static void expect_tensor(const wg_weights *w, const char *name, int n_dims, int64_t in, int64_t out, const float *file,
                          size_t at)
{
    const wg_tensor *t = wg_weights_find(w, name);
    cr_assert(t && t->type == WG_F32 && t->n_dims == n_dims && t->dim[0] == in && t->dim[1] == out, "%s", name);
    cr_assert_eq(t->bytes, (size_t)(in * out) * 4);
    cr_assert_eq((const void *)t->data, (const void *)(file + at), "%s stands elsewhere", name);
}

/* Offsets are written out here as sums in file order, not taken from the reader. */
static void check_layout(bool tied)
{
    llama2c_shape s = llama2c_small;
    const int d = s.dim, f = s.hidden, kv = d / s.heads * s.kv_heads, L = s.layers, V = s.vocab;
    size_t n;
    wg_weights *w;
    wg_error err;
    if (!tied) s.vocab = -s.vocab;
    float *p = llama2c_bytes(&s, &n);
    cr_assert_eq(wg_weights_open_memory(&w, "dir/small.v0.bin", p, n, &err), WG_OK, "%s", err.text);
    cr_assert_str_eq(wg_weights_format(w), "llama2.c v0");
    cr_assert_eq(wg_weights_count(w), 2 + 9 * L + !tied);
    size_t at = 7;
    expect_tensor(w, "token_embd.weight", 2, d, V, p, at), at += (size_t)V * d;
    expect_tensor(w, "blk.0.attn_norm.weight", 1, d, 1, p, at);
    expect_tensor(w, "blk.1.attn_norm.weight", 1, d, 1, p, at + d), at += (size_t)L * d;
    expect_tensor(w, "blk.1.attn_q.weight", 2, d, d, p, at + (size_t)d * d), at += (size_t)L * d * d;
    expect_tensor(w, "blk.1.attn_k.weight", 2, d, kv, p, at + (size_t)d * kv), at += (size_t)L * d * kv;
    expect_tensor(w, "blk.0.attn_v.weight", 2, d, kv, p, at), at += (size_t)L * d * kv;
    expect_tensor(w, "blk.0.attn_output.weight", 2, d, d, p, at), at += (size_t)L * d * d;
    expect_tensor(w, "blk.1.ffn_norm.weight", 1, d, 1, p, at + d), at += (size_t)L * d;
    expect_tensor(w, "blk.0.ffn_gate.weight", 2, d, f, p, at), at += (size_t)L * d * f;
    expect_tensor(w, "blk.0.ffn_down.weight", 2, f, d, p, at), at += (size_t)L * d * f;
    expect_tensor(w, "blk.1.ffn_up.weight", 2, d, f, p, at + (size_t)d * f), at += (size_t)L * d * f;
    expect_tensor(w, "output_norm.weight", 1, d, 1, p, at), at += d;
    at += 2 * (size_t)s.context * (d / s.heads / 2);
    if (tied) cr_assert_null(wg_weights_find(w, "output.weight"));
    else expect_tensor(w, "output.weight", 2, d, V, p, at);

    static const struct {
        const char *key;
        int64_t v;
    } ints[] = {
        { "llama.context_length", 10 },      { "llama.embedding_length", 32 },    { "llama.block_count", 2 },
        { "llama.feed_forward_length", 48 }, { "llama.attention.head_count", 4 }, { "llama.attention.head_count_kv", 2 },
        { "llama.rope.dimension_count", 8 }, { "llama.vocab_size", 262 },
    };
    int64_t v;
    double x;
    wg_text t;
    for (size_t i = 0; i < sizeof ints / sizeof ints[0]; i++)
        cr_assert(wg_meta_int(w, ints[i].key, &v) && v == ints[i].v, "%s", ints[i].key);
    cr_assert(wg_meta_float(w, "llama.attention.layer_norm_rms_epsilon", &x) && (float)x == 1e-5f);
    cr_assert(wg_meta_float(w, "llama.rope.freq_base", &x) && x == 10000);
    cr_assert(wg_meta_string(w, "general.architecture", &t) && t.n == 5 && memcmp(t.s, "llama", 5) == 0);
    cr_assert(wg_meta_string(w, "general.name", &t) && t.n == 5 && memcmp(t.s, "small", 5) == 0);
    cr_assert_eq(wg_meta_array(w, "tokenizer.ggml.tokens", NULL), -1);
    wg_weights_close(w);
    free(p);
}

Test(llama2c, looks_like_gguf)
{
    check_layout(true);
    check_layout(false);
}

/* No magic: only the exact size makes it a checkpoint. */
Test(llama2c, the_size_must_fit_exactly)
{
    size_t n;
    float *p = llama2c_bytes(&llama2c_small, &n);
    for (int delta = -40; delta <= 40; delta++) {
        uint8_t *copy = malloc(n + 40);
        memcpy(copy, p, n);
        wg_weights *w = NULL;
        wg_error err;
        const wg_status s = wg_weights_open_memory(&w, "m.bin", copy, n + (size_t)delta, &err);
        cr_assert_eq(s, delta ? WG_EFORMAT : WG_OK);
        if (delta) cr_assert(strstr(err.text, "seven header numbers"));
        wg_weights_close(w);
        free(copy);
    }
    for (size_t k = 0; k < 28; k++) /* a wrong header number: another size, or an impossible shape */
        for (int bit = 0; bit < 8; bit++) {
            uint8_t *copy = malloc(n);
            wg_weights *w = NULL;
            memcpy(copy, p, n);
            copy[k] ^= (uint8_t)(1 << bit);
            if (wg_weights_open_memory(&w, "m.bin", copy, n, NULL) == WG_OK)
                for (int i = 0; i < wg_weights_count(w); i++) {
                    const wg_tensor *t = wg_weights_at(w, i);
                    cr_assert((const uint8_t *)t->data + t->bytes <= copy + n);
                }
            wg_weights_close(w);
            free(copy);
        }
    for (int at = 0; at < 7; at++)
        for (int zero = 0; zero < 2; zero++) {
            llama2c_shape s = llama2c_small;
            ((int *)&s)[at] = zero ? 0 : at == 5 ? -2000000000 : -1;
            memcpy(p, &s, sizeof s);
            wg_weights *w;
            cr_assert_eq(wg_weights_open_memory(&w, "m.bin", p, n, NULL), WG_EFORMAT, "field %d", at);
        }
    free(p);
}

Test(llama2c, any_allocation_may_fail)
{
    size_t n;
    float *p = llama2c_bytes(&llama2c_small, &n);
    const size_t live = wg_mem_read().live_blocks;
    bool done = false;
    for (uint64_t k = 1; !done; k++) {
        wg_weights *w = NULL;
        wg_mem_fail_at(k, k % 2);
        const wg_status s = wg_weights_open_memory(&w, "m.bin", p, n, NULL);
        wg_mem_fail_at(0, false);
        cr_assert(s == WG_OK || s == WG_ENOMEM);
        done = s == WG_OK;
        wg_weights_close(w);
        cr_assert_eq(wg_mem_read().live_blocks, live);
    }
    free(p);
}

static wg_status tokenizer(const char *bytes, size_t n, int vocab, const char *out, wg_error *err)
{
    wg_gguf_writer *g;
    WG_TRY(wg_gguf_writer_open(&g, out, err));
    const wg_status s = wg_llama2c_tokenizer(g, "tok.bin", bytes, n, vocab, err);
    if (s == WG_OK) return wg_gguf_writer_finish(g, err);
    wg_gguf_writer_abort(g);
    return s;
}

static void expect_token(const wg_weights *w, int64_t id, const char *text, int64_t kind)
{
    wg_text t;
    int64_t k;
    double score;
    cr_assert(wg_meta_array_string(w, "tokenizer.ggml.tokens", id, &t));
    cr_assert(t.n == strlen(text) && memcmp(t.s, text, t.n) == 0, "%d: %.*s", (int)id, (int)t.n, t.s);
    cr_assert(wg_meta_array_int(w, "tokenizer.ggml.token_type", id, &k) && k == kind, "%d: kind %d", (int)id, (int)k);
    cr_assert(wg_meta_array_float(w, "tokenizer.ggml.scores", id, &score) && score == -(double)id);
}

Test(llama2c, tokenizer)
{
    enum { VOCAB = 263 };
    temp t;
    size_t n;
    wg_weights *w;
    wg_error err;
    int64_t v;
    bool b;
    temp_make(&t);
    char *p = llama2c_vocabulary(VOCAB, &n);
    cr_assert_eq(tokenizer(p, n, VOCAB, temp_at(&t, "t.gguf"), &err), WG_OK, "%s", err.text);
    cr_assert_eq(wg_weights_open(&w, t.path, &err), WG_OK);
    cr_assert_eq(wg_meta_array(w, "tokenizer.ggml.tokens", NULL), VOCAB);
    expect_token(w, 0, "<unk>", 2);
    expect_token(w, 1, "<s>", 3);
    expect_token(w, 2, "</s>", 3);
    expect_token(w, 3, "<0x00>", 6);
    expect_token(w, 258, "<0xFF>", 6);
    expect_token(w, 259, "\xe2\x96\x81", 1);
    expect_token(w, 260,
                 "\xe2\x96\x81"
                 "a",
                 1);
    expect_token(w, 262,
                 "c\xe2\x96\x81"
                 "d",
                 1);
    cr_assert(wg_meta_int(w, "tokenizer.ggml.bos_token_id", &v) && v == 1);
    cr_assert(wg_meta_int(w, "tokenizer.ggml.eos_token_id", &v) && v == 2);
    cr_assert(wg_meta_bool(w, "tokenizer.ggml.add_bos_token", &b) && b);
    cr_assert(wg_meta_bool(w, "tokenizer.ggml.add_space_prefix", &b) && b);
    wg_weights_close(w);

    const size_t live = wg_mem_read().live_blocks;
    for (size_t cut = 0; cut < n; cut++) {
        char *exact = malloc(cut ? cut : 1);
        memcpy(exact, p, cut);
        cr_assert_eq(tokenizer(exact, cut, VOCAB, "/dev/null", &err), WG_EFORMAT, "%zu", cut);
        free(exact);
    }
    cr_assert_eq(tokenizer(p, n, VOCAB - 1, "/dev/null", &err), WG_EFORMAT);
    cr_assert_str_eq(
        err.text,
        "tok.bin: byte 3656: 11 bytes follow the last of 262 tokens; it is the tokenizer of a model with another vocabulary");
    cr_assert_eq(tokenizer(p, n, VOCAB + 1, "/dev/null", &err), WG_EFORMAT);
    cr_assert(strstr(err.text,
                     "byte 3667: the file ends inside token 263 of 264; expected a llama2.c tokenizer.bin with as many tokens "
                     "as the model: is it the tokenizer of another model, or truncated?"),
              "%s", err.text);
    cr_assert_eq(tokenizer(p, n, 1 << 30, "/dev/null", &err), WG_EFORMAT);
    cr_assert_str_eq(err.text, "tok.bin: 3667 bytes cannot hold the 1073741824 tokens of the model; expected a llama2.c "
                               "tokenizer.bin");
    memcpy(p + 8, &(uint32_t){ UINT32_MAX }, 4);
    cr_assert_eq(tokenizer(p, n, VOCAB, "/dev/null", &err), WG_EFORMAT);
    cr_assert_eq(wg_mem_read().live_blocks, live);
    free(p);
    temp_remove(&t);
}
