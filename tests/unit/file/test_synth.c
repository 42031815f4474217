/* SPDX-License-Identifier: MIT */
#include "core/file/synth.h"

#include <criterion/criterion.h>
#include <math.h>

#include "core/base/hash.h"
#include "core/base/mem.h"
#include "core/file/weights.h"
#include "tests/temp.h"

static wg_weights *open_ok(const char *path)
{
    wg_weights *w = NULL;
    wg_error err;
    cr_assert_eq(wg_weights_open(&w, path, &err), WG_OK, "%s", err.text);
    return w;
}

static void expect_dims(const wg_weights *w, const char *name, int type, int64_t in, int64_t out)
{
    const wg_tensor *t = wg_weights_find(w, name);
    cr_assert(t && t->type == type && t->dim[0] == in && t->dim[1] == out && t->n_dims == (out == 1 ? 1 : 2), "%s", name);
}

/* The bits are part of the contract: other machines and thread counts make the same file. */
Test(synth, a_file_depends_on_shape_type_and_seed_only)
{
    static const struct {
        int type;
        uint64_t seed;
        const char *sha256;
    } row[] = {
        { WG_F32, 1, "94ae8fa1bb55d5c8ee2a1c0b0e2dfef62cf44dfe4d6e9364dce308c8f710d5a9" },
        { WG_F32, 2, "69d1c40f488eec30a74b75acd48bd2d3fcf5cab90af6c07250d9e1a783c85660" },
        { WG_Q8_0, 1, "1bc36c929c455b89b6c33ecb6fee3400ae6c08b41190e8a993f3b08a0d082e3b" },
    };
    temp t;
    temp_make(&t);
    const char *path = temp_at(&t, "m.gguf");
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        char hex[WG_SHA256_HEX];
        cr_assert_eq(wg_synth("tiny", row[i].type, row[i].seed, path, NULL), WG_OK);
        cr_assert_eq(wg_sha256_file(path, hex, NULL), WG_OK);
        cr_expect_str_eq(hex, row[i].sha256, "type %d seed %d", row[i].type, (int)row[i].seed);
    }
    temp_remove(&t);
}

Test(synth, tensors_of_the_families)
{
    temp t;
    temp_make(&t);
    const char *path = temp_at(&t, "m.gguf");
    const wg_synth_shape llama = {
        .layers = 2, .dim = 80, .heads = 10, .kv_heads = 2, .head_dim = 32, .hidden = 96, .vocab = 1777, .context = 64
    };
    cr_assert_eq(wg_synth_write(&llama, WG_Q8_0, 3, path, NULL), WG_OK);
    wg_weights *w = open_ok(path);
    cr_assert_eq(wg_weights_count(w), 3 + 2 * 9);
    expect_dims(w, "token_embd.weight", WG_F16, 80, 1777); /* 80 is not a multiple of 32 */
    expect_dims(w, "blk.1.attn_q.weight", WG_F16, 80, 320);
    expect_dims(w, "blk.1.attn_k.weight", WG_F16, 80, 64);
    expect_dims(w, "blk.0.attn_output.weight", WG_Q8_0, 320, 80);
    expect_dims(w, "blk.0.ffn_down.weight", WG_Q8_0, 96, 80);
    expect_dims(w, "blk.0.attn_norm.weight", WG_F32, 80, 1);
    expect_dims(w, "output.weight", WG_F16, 80, 1777);
    int64_t v;
    double x;
    cr_assert(wg_meta_int(w, "llama.attention.head_count_kv", &v) && v == 2);
    cr_assert(wg_meta_int(w, "llama.attention.key_length", &v) && v == 32);
    cr_assert(wg_meta_int(w, "llama.rope.dimension_count", &v) && v == 32);
    cr_assert(wg_meta_float(w, "llama.rope.freq_base", &x) && x == 10000);
    cr_assert(wg_meta_float(w, "llama.attention.layer_norm_rms_epsilon", &x) && (float)x == 1e-5f);
    wg_weights_close(w);

    const wg_synth_shape qwen = {
        .arch = "qwen2", .layers = 1, .dim = 64, .heads = 4, .hidden = 64, .vocab = 300, .context = 64, .tied = true
    };
    cr_assert_eq(wg_synth_write(&qwen, WG_BF16, 3, path, NULL), WG_OK);
    w = open_ok(path);
    cr_assert_eq(wg_weights_count(w), 2 + 12);
    expect_dims(w, "blk.0.attn_k.bias", WG_F32, 64, 1);
    expect_dims(w, "blk.0.attn_k.weight", WG_BF16, 64, 64); /* kv_heads 0: all heads */
    cr_assert_null(wg_weights_find(w, "output.weight"));
    wg_weights_close(w);

    const wg_synth_shape qwen3 = {
        .arch = "qwen3", .layers = 1, .dim = 64, .heads = 4, .head_dim = 32, .hidden = 64, .vocab = 300, .context = 64
    };
    cr_assert_eq(wg_synth_write(&qwen3, WG_F16, 3, path, NULL), WG_OK);
    w = open_ok(path);
    cr_assert_eq(wg_weights_count(w), 3 + 11);
    expect_dims(w, "blk.0.attn_k_norm.weight", WG_F32, 32, 1);
    expect_dims(w, "blk.0.attn_q.weight", WG_F16, 64, 128);
    wg_weights_close(w);

    wg_synth_shape moe = qwen3;
    moe.arch = "qwen3moe", moe.experts = 5, moe.experts_used = 2;
    cr_assert_eq(wg_synth_write(&moe, WG_Q8_0, 3, path, NULL), WG_OK);
    w = open_ok(path);
    cr_assert_eq(wg_weights_count(w), 3 + 12);
    expect_dims(w, "blk.0.ffn_gate_inp.weight", WG_F32, 64, 5);
    const wg_tensor *stack = wg_weights_find(w, "blk.0.ffn_down_exps.weight");
    cr_assert(stack && stack->type == WG_Q8_0 && stack->n_dims == 3 && stack->dim[2] == 5);
    cr_assert(memcmp(stack->data, (const char *)stack->data + stack->bytes / 5, 64) != 0); /* experts differ */
    wg_weights_close(w);

    const wg_synth_shape gpt2 = {
        .arch = "gpt2", .layers = 1, .dim = 64, .heads = 4, .hidden = 96, .vocab = 20, .context = 48, .tied = true
    };
    cr_assert_eq(wg_synth_write(&gpt2, WG_F16, 3, path, NULL), WG_OK);
    w = open_ok(path);
    expect_dims(w, "position_embd.weight", WG_F32, 64, 48);
    expect_dims(w, "blk.0.attn_qkv.weight", WG_F16, 64, 192);
    expect_dims(w, "blk.0.ffn_up.bias", WG_F32, 96, 1);
    cr_assert_null(wg_weights_find(w, "blk.0.ffn_gate.weight"));
    cr_assert(wg_meta_float(w, "gpt2.attention.layer_norm_epsilon", &x) && !wg_meta_float(w, "gpt2.rope.freq_base", &x));
    cr_assert_eq(wg_meta_array(w, "tokenizer.ggml.tokens", NULL), -1); /* 20 tokens cannot hold the bytes */
    wg_weights_close(w);
    temp_remove(&t);
}

/* Mean 0 and deviation 1/sqrt(k) within five standard errors; no two tensors and no two rows alike; odd rows too. */
Test(synth, weights_are_distributed_as_stated)
{
    temp t;
    temp_make(&t);
    const char *path = temp_at(&t, "m.gguf");
    const wg_synth_shape s = { .layers = 2, .dim = 33, .heads = 3, .head_dim = 22, .hidden = 101, .vocab = 600, .context = 64 };
    cr_assert_eq(wg_synth_write(&s, WG_F32, 11, path, NULL), WG_OK);
    wg_weights *w = open_ok(path);
    for (int i = 0; i < wg_weights_count(w); i++) {
        const wg_tensor *x = wg_weights_at(w, i);
        const float *p = x->data;
        const size_t n = x->bytes / 4;
        const double deviation = x->n_dims == 1 ? 0.1 : 1 / sqrt((double)x->dim[0]), center = x->n_dims == 1;
        double sum = 0, square = 0, most = 0;
        for (size_t k = 0; k < n; k++) {
            const double z = (p[k] - center) / deviation;
            sum += z, square += z * z, most = fmax(most, fabs(z));
        }
        cr_assert(fabs(sum / sqrt((double)n)) < 5, "%s: mean", x->name);
        /* the fourth moment of the law is 2.7 */
        cr_assert(fabs(square - (double)n) / sqrt(1.7 * (double)n) < 5, "%s: deviation", x->name);
        cr_assert(most < 3.47, "%s: %g", x->name, most);
        if (x->n_dims == 2) cr_assert(memcmp(p, p + x->dim[0], (size_t)x->dim[0] * 4) != 0);
    }
    const wg_tensor *a = wg_weights_find(w, "blk.0.attn_q.weight"), *b = wg_weights_find(w, "blk.1.attn_q.weight");
    double dot = 0;
    for (size_t k = 0; k < a->bytes / 4; k++) dot += ((const float *)a->data)[k] * ((const float *)b->data)[k] * 33.0;
    cr_assert(fabs(dot / sqrt((double)a->bytes / 4)) < 5, "layers are correlated");
    wg_weights_close(w);
    temp_remove(&t);
}

static int by_text(const void *a, const void *b)
{
    const wg_text *x = a, *y = b;
    const size_t n = x->n < y->n ? x->n : y->n;
    const int c = memcmp(x->s, y->s, n);
    return c ? c : (x->n > y->n) - (x->n < y->n);
}

Test(synth, the_vocabulary_is_complete_and_unique)
{
    enum { VOCAB = 21000 };
    temp t;
    temp_make(&t);
    const char *path = temp_at(&t, "m.gguf");
    const wg_synth_shape s = { .layers = 1, .dim = 2, .heads = 1, .hidden = 2, .vocab = VOCAB, .context = 8 };
    cr_assert_eq(wg_synth_write(&s, WG_F32, 1, path, NULL), WG_OK);
    wg_weights *w = open_ok(path);
    static wg_text all[VOCAB];
    int64_t kind;
    for (int i = 0; i < VOCAB; i++) {
        char byte[8];
        snprintf(byte, sizeof byte, "<0x%02X>", (unsigned)(i - 3) & 0xFF);
        cr_assert(wg_meta_array_string(w, "tokenizer.ggml.tokens", i, &all[i]) && all[i].n > 0);
        cr_assert(wg_meta_array_int(w, "tokenizer.ggml.token_type", i, &kind));
        if (i >= 3 && i < 259) cr_assert(kind == 6 && all[i].n == 6 && memcmp(all[i].s, byte, 6) == 0);
        else cr_assert_eq(kind, i == 0 ? 2 : i < 3 ? 3 : 1);
    }
    cr_assert(all[259].n == 2 && memcmp(all[259].s, "ba", 2) == 0);
    cr_assert(all[359].n == 5 && memcmp(all[359].s,
                                        "\xe2\x96\x81"
                                        "ba",
                                        5) == 0);
    cr_assert(all[459].n == 4 && memcmp(all[459].s, "baba", 4) == 0);
    qsort(all, VOCAB, sizeof all[0], by_text);
    for (int i = 1; i < VOCAB; i++) cr_assert(by_text(&all[i - 1], &all[i]) < 0, "%.*s twice", (int)all[i].n, all[i].s);
    wg_weights_close(w);
    temp_remove(&t);
}

Test(synth, bad_shapes_are_refused)
{
    static const struct {
        wg_synth_shape s;
        const char *text;
    } row[] = {
        { { .layers = 0, .dim = 8, .heads = 1, .hidden = 8, .vocab = 9, .context = 8 },
          "synthetic shape: layers is 0; expected 1..16777216" },
        { { .layers = 1, .dim = -8, .heads = 1, .hidden = 8, .vocab = 9, .context = 8 },
          "synthetic shape: dim is -8; expected 1..16777216" },
        { { .layers = 1, .dim = 8, .heads = 0, .hidden = 8, .vocab = 9, .context = 8 },
          "synthetic shape: heads is 0; expected 1..16777216" },
        { { .layers = 1, .dim = 8, .heads = 3, .kv_heads = 2, .head_dim = 2, .hidden = 8, .vocab = 9, .context = 8 },
          "synthetic shape: 3 heads on 2 key/value heads; expected a multiple" },
        { { .layers = 1, .dim = 9, .heads = 1, .hidden = 8, .vocab = 9, .context = 8 },
          "synthetic shape: head_dim is 9; expected an even number" },
        { { .arch = "bert", .layers = 1, .dim = 8, .heads = 1, .hidden = 8, .vocab = 9, .context = 8 },
          "synthetic shape: arch is 'bert'; expected llama, qwen2, qwen3, qwen3moe, gpt2, gptneox, falcon, mpt or gpt-oss" },
        { { .arch = "qwen3moe", .layers = 1, .dim = 8, .heads = 1, .hidden = 8, .vocab = 9, .context = 8, .experts = 3 },
          "synthetic shape: 0 of 3 experts; expected 1 up to all of 2..512" },
        { { .layers = 1, .dim = 8, .heads = 1, .hidden = 8, .vocab = 9, .context = 8, .rope_base = NAN },
          "synthetic shape: rope_base is nan; expected more than 1" },
    };
    wg_error err;
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        cr_assert_eq(wg_synth_write(&row[i].s, WG_F32, 1, "/dev/null", &err), WG_EINVAL);
        cr_assert_str_eq(err.text, row[i].text);
    }
    cr_assert_eq(wg_synth("tiny", WG_I16, 1, "/dev/null", &err), WG_EINVAL);
    cr_assert_str_eq(err.text, "cannot make weights of i16; expected " WG_COMPUTABLE_TYPES);
    cr_assert_eq(wg_synth("llama", WG_F32, 1, "/dev/null", &err), WG_EINVAL);
    cr_assert_str_eq(
        err.text,
        "there is no shape 'llama'; expected one of: llama-3.2-1b, llama-3-8b, llama-3.1-8b, draft-124m, tinyllama-1.1b, "
        "qwen2.5-0.5b, qwen3-0.6b, qwen3-8b, qwen3-30b-a3b, gpt-oss-20b, gpt2, pythia-1.4b, falcon-7b, mpt-7b, tiny (did you "
        "mean "
        "'llama-3.2-1b'?)");
    cr_assert_eq(wg_synth("tiny", WG_F32, 1, "/dev/full", &err), WG_EIO);
}

Test(synth, any_allocation_may_fail)
{
    temp t;
    wg_error err;
    temp_make(&t);
    const char *path = temp_at(&t, "m.gguf");
    const size_t live = wg_mem_read().live_blocks;
    bool done = false;
    for (uint64_t n = 1; !done; n++) {
        wg_mem_fail_at(n, n % 2);
        const wg_status s = wg_synth("tiny", WG_F32, 1, path, &err);
        wg_mem_fail_at(0, false);
        cr_assert(s == WG_OK || s == WG_ENOMEM, "%d: %s", (int)n, err.text);
        done = s == WG_OK;
        cr_assert_eq(dir_count(t.dir), done);
        cr_assert_eq(wg_mem_read().live_blocks, live, "allocation %d leaks", (int)n);
    }
    temp_remove(&t);
}

/* Without a file: the same head, and the same bytes tensor by tensor, again after they were given back. */
Test(synth, a_name_is_the_file_it_stands_for)
{
    static const char *const type[] = { "f32", "bf16", "q8_0", "q4_0" };
    temp t;
    temp_make(&t);
    const char *path = temp_at(&t, "m.gguf");
    for (size_t i = 0; i < sizeof type / sizeof type[0]; i++) {
        char name[64];
        snprintf(name, sizeof name, "synth:tiny:%s:seed=7", type[i]);
        cr_assert_eq(wg_synth("tiny", wg_type_parse(type[i]), 7, path, NULL), WG_OK);
        wg_weights *file = open_ok(path), *made = open_ok(name);
        uint64_t seed = 0;
        cr_assert(wg_weights_made(made, &seed) && seed == 7 && !wg_weights_made(file, &seed));
        cr_assert_eq(wg_weights_file_bytes(made), wg_weights_file_bytes(file));
        cr_assert_eq(wg_meta_count(made), wg_meta_count(file));
        cr_assert_eq(wg_weights_count(made), wg_weights_count(file));
        for (int k = 0; k < 2 * wg_weights_count(file); k++) {
            const wg_tensor *a = wg_weights_at(file, k / 2), *b = wg_weights_at(made, k / 2);
            cr_assert(strcmp(a->name, b->name) == 0 && a->type == b->type && a->bytes == b->bytes);
            cr_assert_eq(wg_weights_need(made, b, NULL), WG_OK);
            cr_assert_arr_eq(a->data, b->data, a->bytes, "%s of %s", a->name, name);
            wg_weights_release(made, b);
        }
        wg_weights_close(file);
        wg_weights_close(made);
    }
    temp_remove(&t);
}

/* Types that are not written: whole blocks of random codes, with the mean and the deviation of the others. */
Test(synth, random_codes_have_the_deviation_too)
{
    static const char *const type[] = { "q4_k", "q5_k", "q6_k", "iq4_nl", "q2_k", "q3_k", "iq4_xs" };
    for (size_t i = 0; i < sizeof type / sizeof type[0]; i++) {
        char name[64];
        snprintf(name, sizeof name, "synth:draft-124m:%s:layers=1:vocab=300", type[i]);
        wg_weights *w = open_ok(name);
        const wg_tensor *x = wg_weights_find(w, "blk.0.ffn_gate.weight");
        const size_t k = 768, row = x->bytes / 2048;
        float v[768];
        double sum = 0, square = 0;
        cr_assert_eq(x->type, wg_type_parse(type[i]));
        cr_assert_eq(wg_weights_need(w, x, NULL), WG_OK);
        for (size_t r = 0; r < 64; r++) {
            cr_assert_eq(wg_row_to_f32(x->type, (const char *)x->data + r * row, v, k), 0);
            for (size_t c = 0; c < k; c++) sum += v[c] * sqrt(768), square += v[c] * v[c] * 768;
        }
        const double n = 64 * 768;
        cr_expect(fabs(sum / n) < 0.2, "%s: mean %g", name, sum / n);
        cr_expect(fabs(sqrt(square / n) - 1) < 0.08, "%s: deviation %g", name, sqrt(square / n));
        wg_weights_close(w);
    }
}

Test(synth, names_are_checked_piece_by_piece)
{
    static const struct {
        const char *name, *part;
    } row[] = {
        { "synth:", "expected synth:SHAPE:TYPE" },
        { "synth:tiny", "expected synth:SHAPE:TYPE" },
        { "synth:tiny:", "expected synth:SHAPE:TYPE" },
        { "synth:teeny:f16", "synth:teeny:f16: there is no shape 'teeny'; expected one of: llama-3.2-1b" },
        { "synth:tiny:f17", "weights of type 'f17': expected f32, f16" },
        { "synth:tiny:iq2_s", "weights of type 'iq2_s'" },
        { "synth:tiny:f16:layer=2", "layers" },
        { "synth:tiny:f16:layers=0x", "synth:tiny:f16:layers=0x: " },
        { "synth:tiny:f16:layers=1:seed", "seed" },
        { "synth:tiny:f16:seed=000000000000000000000000000000000000000000000000000000000000000000001", "expected synth:SHAPE" },
        { "synth:tiny:f16:vocab=-1", "vocab" },
        { "synth:tiny:f16:context=99999999", "context" },
        { "synth:a-name-that-is-longer-than-that-of-any-shape-there-is-or-ever-will-be-here:f16", "expected synth:SHAPE" },
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        wg_weights *w = NULL;
        wg_error err;
        cr_expect_eq(wg_weights_open(&w, row[i].name, &err), WG_EINVAL, "%s", row[i].name);
        cr_expect_not_null(strstr(err.text, row[i].part), "%s: %s", row[i].name, err.text);
    }
}
