/* SPDX-License-Identifier: MIT
 * Models that are refused, with the reason; running out of memory at any point of loading. */
#include <criterion/criterion.h>

#include "core/model/model.h"
#include "tests/unit/model/tiny_model.h"

static const tiny base = { .layers = 2,
                           .dim = 64,
                           .heads = 4,
                           .kv_heads = 2,
                           .head_dim = 16,
                           .hidden = 40,
                           .vocab = 19,
                           .context = 32,
                           .type = { WG_F32, WG_F16, WG_BF16, WG_Q8_0 } };

static wg_error err;
static char path[64], text[WG_ERROR_TEXT + 8];

static wg_status load(const tiny *t, const wg_model_options *opt)
{
    wg_weights *w;
    wg_device d;
    wg_model *m;
    cr_assert(tiny_open(t, &w, path, &err) == WG_OK, "%s", err.text);
    cr_assert(wg_device_cpu(&d, NULL, &err) == WG_OK);
    const size_t blocks = wg_mem_read().live_blocks;
    const wg_status s = wg_model_open(&m, w, &d, opt, &err);
    if (s == WG_OK) wg_model_close(m);
    cr_assert(wg_mem_read().live_blocks == blocks, "leak");
    wg_weights_close(w);
    const char *rest = strncmp(err.text, path, strlen(path)) == 0 ? err.text + strlen(path) : NULL;
    if (s) snprintf(text, sizeof text, "%s%s", rest ? "FILE" : "", rest ? rest : err.text);
    return s;
}

static void expect(const tiny *t, const wg_model_options *opt, wg_status s, const char *message)
{
    const wg_model_options usual = { .kv_type = WG_F16, .max_rows = 8 };
    cr_assert(load(t, opt ? opt : &usual) == s, "expected: %s", message);
    cr_assert_str_eq(text, message);
}

static const char *victim;
static bool leave_out(const tiny *t, wg_tensor *x) { return (void)t, strcmp(x->name, victim) != 0; }

static bool reshape(const tiny *t, wg_tensor *x)
{
    (void)t;
    if (strcmp(x->name, victim) == 0) x->dim[x->n_dims - 1] = 48;
    return true;
}

static bool third_dim(const tiny *t, wg_tensor *x)
{
    (void)t;
    if (strcmp(x->name, victim) == 0) x->n_dims = 3, x->dim[2] = 2;
    return true;
}

static bool retype(const tiny *t, wg_tensor *x)
{
    (void)t;
    if (strcmp(x->name, victim) == 0) x->type = WG_I16;
    return true;
}

static bool rename_it(const tiny *t, wg_tensor *x)
{
    (void)t;
    if (strcmp(x->name, victim) == 0) x->name = "blk.01.attn_q.weight";
    return true;
}

static bool block_norm(const tiny *t, wg_tensor *x)
{
    (void)t;
    if (strcmp(x->name, victim) == 0) x->type = WG_Q8_0;
    return true;
}

Test(model_bad, missing_tensors)
{
    tiny t = base;
    t.tensor = leave_out;
    victim = "blk.1.ffn_down.weight";
    expect(&t, NULL, WG_EMODEL, "FILE: tensor 'blk.1.ffn_down.weight' is missing: expected (40, 64); is the file complete?");
    victim = "output_norm.weight";
    expect(&t, NULL, WG_EMODEL, "FILE: tensor 'output_norm.weight' is missing: expected (64, 1); is the file complete?");
    victim = "token_embd.weight";
    expect(&t, NULL, WG_EMODEL, "FILE: tensor 'token_embd.weight' is missing: expected (64, 19); is the file complete?");
    victim = "output.weight"; /* then the head is the embedding */
    const wg_model_options usual = { .kv_type = WG_F16 };
    cr_assert(load(&t, &usual) == WG_OK);
}

Test(model_bad, wrong_shapes_and_types)
{
    tiny t = base;
    t.tensor = reshape;
    victim = "blk.0.attn_k.weight";
    expect(&t, NULL, WG_EMODEL, "FILE: tensor 'blk.0.attn_k.weight' has shape (64, 48, 1, 1): expected (64, 32)");
    t.tensor = third_dim;
    expect(&t, NULL, WG_EMODEL, "FILE: tensor 'blk.0.attn_k.weight' has shape (64, 32, 2, 1): expected (64, 32)");
    t.tensor = retype;
    expect(&t, NULL, WG_EUNSUPPORTED,
           "FILE: tensor 'blk.0.attn_k.weight' has type i16: expected " WG_COMPUTABLE_TYPES
           "; `wager convert` writes f32, f16, bf16, q8_0 and more");
    victim = "blk.1.attn_norm.weight";
    t.tensor = block_norm;
    expect(&t, NULL, WG_EUNSUPPORTED,
           "FILE: tensor 'blk.1.attn_norm.weight' has type q8_0: expected f32, f16 or bf16; "
           "`wager convert` writes f32, f16, bf16, q8_0 and more");
    victim = "blk.1.attn_q.weight";
    t.tensor = rename_it;
    expect(&t, NULL, WG_EUNSUPPORTED,
           "FILE: tensor 'blk.01.attn_q.weight' has no place in a llama model of 2 layers: "
           "its results would be wrong without it");
}

/* A window as long as the context in use changes nothing. */
Test(model_bad, a_window_shorter_than_the_context)
{
    tiny t = base;
    t.family = "qwen2"; /* some of its layers have it, and the file does not say which */
    t.qkv_bias = true;
    t.window = 24;
    expect(
        &t, NULL, WG_EUNSUPPORTED,
        "FILE: key 'qwen2.attention.sliding_window' = 24: the file does not say which layers have this window, and the context "
        "in use is 32 tokens: lower the context to 24");
    wg_model_options o = { .kv_type = WG_F16, .context = 24 };
    cr_assert(load(&t, &o) == WG_OK, "%s", err.text);
    o.context = 25;
    cr_assert(load(&t, &o) == WG_EUNSUPPORTED);
}

/* A family's tensors: one that is missing, and those of another family. */
Test(model_bad, tensors_of_families)
{
    tiny t = base;
    t.family = "qwen2";
    expect(&t, NULL, WG_EMODEL, "FILE: tensor 'blk.0.attn_q.bias' is missing: expected (64, 1); is the file complete?");
    t.family = "qwen3";
    expect(&t, NULL, WG_EMODEL, "FILE: tensor 'blk.0.attn_q_norm.weight' is missing: expected (16, 1); is the file complete?");
    t.family = "llama";
    t.head_norm = true;
    expect(
        &t, NULL, WG_EUNSUPPORTED,
        "FILE: tensor 'blk.0.attn_q_norm.weight' has no place in a llama model of 2 layers: its results would be wrong without "
        "it");
    t.family = "qwen2";
    t.head_norm = false;
    t.qkv_bias = t.output_bias = true;
    expect(
        &t, NULL, WG_EUNSUPPORTED,
        "FILE: tensor 'blk.0.attn_output.bias' has no place in a qwen2 model of 2 layers: its results would be wrong without "
        "it");
    t = base;
    t.qkv_bias = true;
    t.tensor = leave_out;
    victim = "blk.1.attn_v.bias";
    expect(&t, NULL, WG_EMODEL, "FILE: tensor 'blk.1.attn_v.bias' is missing: expected (32, 1); is the file complete?");
}

Test(model_bad, rotary_divisors)
{
    tiny t = base;
    t.freqs = true;
    const wg_model_options usual = { .kv_type = WG_F16 };
    cr_assert(load(&t, &usual) == WG_OK);
    t.tensor = reshape;
    victim = "rope_freqs.weight";
    expect(&t, NULL, WG_EMODEL, "FILE: tensor 'rope_freqs.weight' has shape (48, 1, 1, 1): expected (8, 1)");
    t.tensor = NULL;
    t.poison = "rope_freqs.weight";
    expect(&t, NULL, WG_EMODEL,
           "FILE: tensor 'rope_freqs.weight' holds NaN or infinity at row 0, column 5: the file is damaged or its "
           "training diverged; allow_nan (--allow-nan) loads it all the same");
    const wg_model_options lax = { .kv_type = WG_F16, .allow_nan = true };
    expect(&t, &lax, WG_EMODEL, "FILE: tensor 'rope_freqs.weight' holds nan at 5: expected a divisor of at least 0.125");
}

Test(model_bad, nan_in_every_type)
{
    static const struct {
        const char *tensor;
        int type, column, at;
    } row[] = {
        { "blk.0.attn_q.weight", WG_F32, 5, 0 },      { "blk.1.ffn_up.weight", WG_F16, 5, 0 },
        { "output.weight", WG_BF16, 5, 0 },           { "blk.0.attn_output.weight", WG_Q8_0, 0, 0 },
        { "output_norm.weight", WG_F32, 5, 0 },       { "blk.0.attn_q.weight", WG_Q4_0, 0, 0 },
        { "blk.0.attn_q.weight", WG_Q4_0, 64, 36 }, /* row 1 */
        { "blk.0.attn_q.weight", WG_Q4_1, 0, 2 },     { "blk.0.attn_q.weight", WG_Q5_0, 32, 22 },
        { "blk.0.attn_q.weight", WG_Q5_1, 0, 2 },     { "blk.0.attn_q.weight", WG_IQ4_NL, 0, 0 },
        { "blk.0.attn_q.weight", WG_Q4_K, 0, 2 },     { "blk.0.attn_q.weight", WG_Q5_K, 0, 0 },
        { "blk.0.attn_q.weight", WG_Q6_K, 256, 418 }, { "blk.0.attn_q.weight", WG_F8_E4M3, 128, 134 },
        { "output.weight", WG_F8_E4M3, 5, 9 },        { "blk.0.attn_q.weight", WG_Q2_K, 0, 80 },
        { "blk.0.attn_q.weight", WG_Q2_K, 256, 166 }, { "blk.0.attn_q.weight", WG_Q3_K, 256, 218 },
        { "blk.0.attn_q.weight", WG_IQ4_XS, 0, 0 },   { "blk.0.attn_q.weight", WG_MXFP4, 32, 17 },
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        char message[300];
        tiny t = base;
        t.poison = row[i].tensor;
        t.poison_at = row[i].at;
        if (wg_type_get(row[i].type)->block > 64) t.dim = 256;
        for (int k = 0; k < 4; k++) t.type[k] = row[i].type;
        snprintf(message, sizeof message,
                 "FILE: tensor '%s' holds NaN or infinity at row %d, column %d: the file is damaged or its training "
                 "diverged; allow_nan (--allow-nan) loads it all the same",
                 row[i].tensor, row[i].column / t.dim, row[i].column % t.dim);
        expect(&t, NULL, WG_EMODEL, message);
        const wg_model_options lax = { .kv_type = WG_F16, .allow_nan = true };
        cr_assert(load(&t, &lax) == WG_OK, "%s", err.text);
    }
}

Test(model_bad, options)
{
    wg_model_options o = { .kv_type = WG_Q8_0 };
    expect(&base, &o, WG_EINVAL, "kv_type = q8_0: expected f32, f16, bf16 or q8");
    o = (wg_model_options){ .kv_type = WG_F16, .max_rows = -1 };
    expect(&base, &o, WG_EINVAL, "max_rows = -1: expected 1..65536, or 0 for 512");
    o = (wg_model_options){ .kv_type = WG_F16, .context = 33 };
    expect(&base, &o, WG_EINVAL, "context = 33: the model was made for 32 tokens: expected 1..32, or 0 for all of them");
}

/* Fails each allocation of loading in turn: a message, nothing held, and the last one succeeds. */
Test(model_bad, every_failed_allocation_leaks_nothing)
{
    wg_weights *w;
    wg_device d;
    const wg_model_options opt = { .kv_type = WG_F16, .max_rows = 8 };
    cr_assert(tiny_open(&base, &w, path, &err) == WG_OK && wg_device_cpu(&d, NULL, &err) == WG_OK);
    const size_t blocks = wg_mem_read().live_blocks;
    uint64_t nth = 1;
    for (;; nth++) {
        wg_model *m = NULL;
        wg_mem_fail_at(nth, false);
        const wg_status s = wg_model_open(&m, w, &d, &opt, &err);
        wg_mem_fail_at(0, false);
        wg_model_close(m);
        cr_assert(wg_mem_read().live_blocks == blocks, "allocation %d", (int)nth);
        if (s == WG_OK) break;
        cr_assert(s == WG_ENOMEM && strstr(err.text, "out of memory: "), "%s", err.text);
    }
    /* the model, its layers, angles; 9 tensors a layer and 3 more; 12 blocks of scratch; what is read into host
     * memory before it goes to the device: 5 vectors, the angles; the list of what is read ahead */
    cr_assert(nth - 1 == 3 + 2 * 9 + 3 + 12 + 6 + 1, "%d allocations", (int)nth - 1);
    wg_weights_close(w);
}

/* A name can specify any size: it is refused before anything is generated, with a remedy. */
Test(model_bad, a_model_without_a_file_that_does_not_fit)
{
    const wg_model_options usual = { .kv_type = WG_F16, .max_rows = 8 };
    wg_weights *w;
    wg_device d;
    wg_model *m = NULL;
    cr_assert_eq(wg_weights_open(&w, "synth:llama-3.1-8b:f32:layers=1024:vocab=300:context=64", &err), WG_OK, "%s", err.text);
    cr_assert_eq(wg_device_cpu(&d, NULL, &err), WG_OK);
    cr_assert_eq(wg_model_open(&m, w, &d, &usual, &err), WG_ENOMEM);
    cr_assert(strstr(err.text, "893.40 GB of weights") && strstr(err.text, "of memory are free: name a smaller type"), "%s",
              err.text);
    wg_weights_close(w);
}

static bool long_factors(const tiny *t, wg_tensor *x)
{
    (void)t;
    if (strcmp(x->name, "rope_freqs.weight") == 0) x->name = "rope_factors_long.weight";
    return true;
}

static void original(const tiny *t, wg_gguf_writer *g)
{
    (void)t, wg_gguf_set_u32(g, "llama.rope.scaling.original_context_length", 16);
}

/* The list of long contexts needs to know which these are. */
Test(model_bad, longrope_without_its_context)
{
    tiny t = base;
    t.freqs = true;
    t.tensor = long_factors;
    expect(&t, NULL, WG_EMODEL,
           "FILE: there is a tensor 'rope_factors_long.weight', and no key 'llama.rope.scaling.original_context_length', which "
           "says from which context on it holds");
    t.meta = original;
    const wg_model_options o = { .kv_type = WG_F16, .max_rows = 8 };
    cr_assert(load(&t, &o) == WG_OK, "%s", err.text);
}
