/* SPDX-License-Identifier: MIT
 * Models for law tests, drawn at random: family, shape, window, caps, positions, experts, types of weights. */
#ifndef WG_TESTS_LAW_RANDOM_MODEL_H
#define WG_TESTS_LAW_RANDOM_MODEL_H

#include "core/model/model.h"
#include "tests/unit/model/tiny_model.h"

/* A number below n; *r is the state of the generator. */
static uint32_t random_below(uint64_t *r, uint32_t n) { return (uint32_t)(tiny_mix(*r += 0x9E3779B97F4A7C15ull) >> 32) % n; }

/* Types that the CPU and devices compute with; on the CPU code books take the place of some models of K types. */
static const int weight_types[] = { WG_FLOAT_TYPES(WG_TYPE_ID) WG_SCALED_FLOAT_TYPES(WG_TYPE_ID)
                                        WG_DEVICE_QUANT_TYPES(WG_TYPE_ID) };
static const int codebook_types[] = { WG_CODEBOOK_TYPES(WG_TYPE_ID) };
enum { WEIGHT_TYPES = (int)(sizeof weight_types / sizeof weight_types[0]) };

/* GPT-NeoX (9), Falcon (10), MPT (11): parallel or not, norms, ALiBi, biases, both kinds of gelu. */
static void random_later_family(tiny *t, int f, uint64_t *r)
{
    t->norm_bias = random_below(r, 2), t->mlp_bias = random_below(r, 2);
    t->serial = random_below(r, 3) == 0;
    t->one_norm = f == 10 && random_below(r, 3);
    t->own_norm = t->one_norm && random_below(r, 2);
    if ((f == 10 && random_below(r, 3) == 0) || (f == 11 && random_below(r, 4))) t->alibi = random_below(r, 2) ? 8 : 4;
    if (random_below(r, 3) == 0) t->activation = "gelu_pytorch_tanh";
}

/* A family, and what its layers may have beside the tensors of all of them; windows, caps, scales and bases in any mixture. */
static void random_family(tiny *t, bool far, uint64_t *r)
{
    static const struct {
        const char *name;
        bool biases, always, output, head_norm, post_norm, fused;
    } family[] = {
        { "llama", true, false, true, false, false, false },   { "qwen2", true, true, false, false, false, false },
        { "qwen3", true, false, true, true, false, false },    { "gemma", false, false, false, false, false, false },
        { "gemma2", false, false, false, false, true, false }, { "gemma3", false, false, false, true, true, false },
        { "phi3", false, false, false, false, false, true },   { "gpt2", true, true, true, false, false, true },
        { "qwen3moe", true, false, true, true, false, false }, { "gptneox", true, false, true, false, false, true },
        { "falcon", true, false, true, false, false, true },   { "mpt", true, false, true, false, false, true },
        { "gpt-oss", true, false, true, false, false, false },
    };
    const int f = (int)random_below(r, 13);
    t->family = family[f].name;
    t->head_norm = family[f].head_norm;
    t->post_norm = family[f].post_norm;
    t->fused = family[f].fused;
    t->qkv_bias = family[f].always || (family[f].biases && random_below(r, 2));
    t->output_bias = family[f].output && (f == 7 || random_below(r, 2));
    t->oss = f == 12;
    t->layer_norm = t->ungated = f == 7 || (f > 8 && f < 12);
    t->positions = f == 7 || (f == 11 && random_below(r, 4) == 0);
    t->norm_bias = t->mlp_bias = f == 7;
    if (f > 8 && f < 12) random_later_family(t, f, r);
    if (t->positions || t->alibi > 0 || f == 11) t->freqs = false;
    if (random_below(r, 6) == 0) t->qkv_limit = 0.5 + random_below(r, 2);
    if (f == 8 || f == 12 || (f == 0 && random_below(r, 3) == 0)) {
        t->experts = 2 + (int)random_below(r, f ? 10 : 3);
        t->experts_used = 1 + (int)random_below(r, (uint32_t)t->experts);
        if (t->hidden > 64 && wg_type_get(t->type[0])->block <= 32) t->hidden = 16;
    }
    if (f == 12 || random_below(r, 2)) t->window = 1 + (int)random_below(r, far ? 280 : 1 + random_below(r, 90));
    if (t->window && (family[f].always || random_below(r, 2))) t->windowed = 1 + random_below(r, (1u << t->layers) - 1);
    if (t->window && !t->windowed && (f == 2 || f == 3 || f > 8)) t->windowed = 1; /* which layers: these families do not say */
    if (random_below(r, 3) == 0) t->attention_cap = 0.5 + random_below(r, 4);
    if (random_below(r, 3) == 0) t->logit_cap = 1 + random_below(r, 8);
    if (random_below(r, 4) == 0) t->attention_scale = 0.05 + 0.1 * random_below(r, 4);
    if (random_below(r, 4) == 0) t->window_rope_base = 500;
    t->rope_factor = random_below(r, 4) ? 0 : 2.5;
    t->yarn = random_below(r, 5) == 0;
    if (random_below(r, 3) == 0) t->n_rot = t->head_dim / 2 / 2 * 2;
}

/* Code books in the place of half of the matrices of K types. */
static inline void random_code_books(tiny *t)
{
    enum { BOOKS = (int)(sizeof codebook_types / sizeof codebook_types[0]) };
    for (int i = 0; i < 4; i++)
        if (wg_type_get(t->type[i])->block == 256 && t->seed >> i & 1)
            t->type[i] = codebook_types[(t->seed >> (8 + 4 * i)) % BOOKS];
}

static tiny random_model(uint64_t *r, int context, bool far)
{
    static const struct {
        int heads, kv_heads, head_dim;
    } attention[] = {
        { 2, 1, 32 }, { 1, 1, 80 }, { 10, 2, 8 }, { 4, 4, 8 },  { 4, 2, 16 },
        { 3, 1, 24 }, { 2, 2, 6 },  { 8, 1, 4 },  { 1, 1, 64 },
    };
    const int a = (int)random_below(r, 9), dims[] = { 24, 32, 40, 64, 96 };
    tiny t = { .layers = 1 + (int)random_below(r, 3),
               .dim = dims[random_below(r, 5)],
               .hidden = 16 + (int)random_below(r, 4) * 32,
               .context = context,
               .heads = attention[a].heads,
               .kv_heads = attention[a].kv_heads,
               .head_dim = attention[a].head_dim,
               .vocab = random_below(r, 12) == 0 ? 1777 : 17 + (int)random_below(r, 90),
               .tied = random_below(r, 2),
               .freqs = random_below(r, 4) == 0,
               .norm_type = random_below(r, 2) ? WG_F32 : WG_F16,
               .seed = *r };
    const int same = weight_types[random_below(
        r, random_below(r, 3) ? WEIGHT_TYPES - 3 : WEIGHT_TYPES)]; /* the larger models of K types more rarely */
    for (int i = 0; i < 4; i++) t.type[i] = random_below(r, 3) ? same : weight_types[random_below(r, WEIGHT_TYPES)];
    if (wg_type_get(same)->block > 32) { /* rows of whole blocks */
        t.layers = 1;
        t.dim = t.hidden = wg_type_get(same)->block;
        t.heads = 4, t.kv_heads = 2, t.head_dim = 64;
    }
    random_family(&t, far, r);
    return t;
}

#endif
