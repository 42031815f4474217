/* SPDX-License-Identifier: MIT
 * Small random models for tests: any shape, any type for every tensor, and a hook to damage them. The file is written,
 * opened and unlinked at once. Weights depend on (seed, tensor name, index) only. */
#ifndef WG_TESTS_TINY_MODEL_H
#define WG_TESTS_TINY_MODEL_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/hash.h"
#include "core/base/mem.h"
#include "core/file/gguf_write.h"
#include "core/file/weights.h"
#include "tests/kernels/blocks.h"

typedef struct tiny {
    int layers, dim, heads, kv_heads, head_dim, hidden, vocab, context;
    const char *family; /* NULL: llama */
    bool qkv_bias, output_bias, head_norm, post_norm;
    bool fused;                      /* queries, keys and values are one tensor, and so are gate and up */
    bool layer_norm, norm_bias;      /* tiny_layer_norm sets what goes together */
    bool ungated, mlp_bias;          /* an MLP without a gate; with biases */
    bool positions;                  /* learned ones */
    bool serial;                     /* use_parallel_residual says no */
    bool one_norm, own_norm;         /* without ffn_norm; with attn_norm_2 */
    double alibi, qkv_limit;         /* 0: left out of the file */
    const char *activation;          /* the same of NULL */
    int experts, experts_used;       /* 0: one MLP */
    bool oss;                        /* sinks, biases of routers and experts, and the MLP's norm under its other name */
    int window;                      /* 0: left out of the file */
    unsigned windowed;               /* the layers with the window, a bit each; 0: left out of the file */
    double attention_cap, logit_cap; /* 0: left out of the file, as the rest */
    double attention_scale, window_rope_base;
    bool yarn;                     /* over an original context of a quarter of the context */
    bool tied, freqs;              /* freqs: with rope_freqs.weight */
    int n_rot;                     /* 0: head_dim */
    double rope_base, rope_factor; /* 0: left out of the file */
    int type[4];                   /* of the matrices, in turn */
    int norm_type;
    uint64_t seed;
    /* Damage. */
    bool (*tensor)(const struct tiny *, wg_tensor *);    /* may change a tensor; false leaves it out. NULL: nothing */
    void (*meta)(const struct tiny *, wg_gguf_writer *); /* writes more keys */
    const char *skip_key, *poison; /* a key to leave out; a tensor that gets a NaN: element 5, or in blocks */
    int poison_at;                 /* the f16 at this byte of the first one */
    const char *zero[2];           /* tensors (f32) that are all zeros; NULL: none */
} tiny;

/* LayerNorm, an MLP without a gate, fused projections; biases of everything, or of nothing. */
__attribute__((unused)) static void tiny_layer_norm(tiny *t, bool biases)
{
    t->layer_norm = t->ungated = t->fused = true;
    t->norm_bias = t->mlp_bias = t->qkv_bias = t->output_bias = biases;
}

static uint64_t tiny_mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
}

/* About normal, variance 1: twelve uniforms would do; four are enough here. */
static float tiny_normal(uint64_t key, uint64_t i)
{
    const uint64_t u = tiny_mix(key + (i + 1) * 0x9E3779B97F4A7C15ull);
    double s = 0;
    for (int k = 0; k < 4; k++) s += (double)(u >> (16 * k) & 0xFFFF) / 65536.0 - 0.5;
    return (float)(s * 1.7320508075688772);
}

static wg_status tiny_fill(void *user, const wg_tensor *t, void *dst, wg_error *err)
{
    const tiny *m = (const tiny *)user;
    const uint64_t key = wg_hash64(WG_HASH_START ^ m->seed * 0x9E3779B97F4A7C15ull, t->name, strlen(t->name));
    const size_t n = (size_t)(t->dim[0] * t->dim[1] * t->dim[2]);
    float *x = (float *)wg_alloc(n, sizeof *x);
    if (!x) return wg_nomem(err, n * sizeof *x, "a test tensor");
    for (size_t i = 0; i < n; i++) {
        const float z = tiny_normal(key, i);
        x[i] = strstr(t->name, "rope_freqs")   ? 1.0f + (float)(i % 4)
               : strstr(t->name, ".bias")      ? 0.5f * z
               : t->dim[1] == 1                ? 1.0f + 0.2f * z
               : strstr(t->name, "token_embd") ? z
                                               : z / sqrtf((float)t->dim[0]) * (strstr(t->name, "attn_q.") ? 2.0f : 1.0f);
    }
    if (m->poison && strcmp(t->name, m->poison) == 0) x[5] = NAN;
    for (int k = 0; k < 2; k++)
        if (m->zero[k] && strcmp(t->name, m->zero[k]) == 0) memset(x, 0, n * sizeof *x);
    const int bad = wg_row_from_f32(t->type, x, dst, n);
    wg_free(x);
    const wg_type_info *type = wg_type_get(t->type);
    /* runs of random blocks share an offset, so products of them add up: smaller, or attention would see one key only */
    if (bad && type->computable) random_blocks(t->type, key, 0.25f / sqrtf((float)t->dim[0]), dst, n);
    else if (bad) memset(dst, 0, t->bytes); /* a type we do not read: only its header matters */
    if (m->poison && type->block > 1 && strcmp(t->name, m->poison) == 0) memcpy((char *)dst + m->poison_at, "\xff\x7f", 2);
    return WG_OK;
}

static void tiny_stack(const tiny *m, wg_gguf_writer *g, const char *name, int type, int64_t in, int64_t out, int64_t depth)
{
    const wg_type_info *info = wg_type_get(type);
    wg_tensor t = { .name = name,
                    .type = info->block > 1 && in % info->block ? WG_F16 : type,
                    .n_dims = depth > 1 ? 3
                              : out     ? 2
                                        : 1,
                    .dim = { in, out ? out : 1, depth, 1 } };
    if (!m->tensor || m->tensor(m, &t)) wg_gguf_add(g, &t, tiny_fill, (void *)(uintptr_t)m);
}

static void tiny_tensor(const tiny *m, wg_gguf_writer *g, const char *name, int type, int64_t in, int64_t out)
{
    tiny_stack(m, g, name, type, in, out, 1);
}

static const char *tiny_family(const tiny *m) { return m->family ? m->family : "llama"; }

/* The full key of a family's key; NULL: left out. */
static const char *tiny_key(const tiny *m, const char *key)
{
    static char full[96];
    snprintf(full, sizeof full, "%s.%s", tiny_family(m), key);
    return m->skip_key && strcmp(full, m->skip_key) == 0 ? NULL : full;
}

static void tiny_u32(const tiny *m, wg_gguf_writer *g, const char *key, int v)
{
    if (tiny_key(m, key)) wg_gguf_set_u32(g, tiny_key(m, key), (uint32_t)v);
}

static void tiny_f32(const tiny *m, wg_gguf_writer *g, const char *key, double v)
{
    if (tiny_key(m, key)) wg_gguf_set_f32(g, tiny_key(m, key), (float)v);
}

static void tiny_more_keys(const tiny *m, wg_gguf_writer *g)
{
    bool windowed[32];
    if (m->attention_cap != 0) tiny_f32(m, g, "attn_logit_softcapping", m->attention_cap);
    if (m->logit_cap != 0) tiny_f32(m, g, "final_logit_softcapping", m->logit_cap);
    if (m->attention_scale != 0) tiny_f32(m, g, "attention.scale", m->attention_scale);
    if (m->window_rope_base != 0) tiny_f32(m, g, "rope.freq_base_swa", m->window_rope_base);
    for (int i = 0; i < 32; i++) windowed[i] = m->windowed >> i & 1;
    if (m->windowed && tiny_key(m, "attention.sliding_window_pattern"))
        wg_gguf_set_bools(g, tiny_key(m, "attention.sliding_window_pattern"), windowed, (size_t)m->layers);
    if (m->alibi != 0) tiny_f32(m, g, "attention.max_alibi_bias", m->alibi);
    if (m->qkv_limit != 0) tiny_f32(m, g, "attention.clamp_kqv", m->qkv_limit);
    if (m->serial && tiny_key(m, "use_parallel_residual")) wg_gguf_set_bool(g, tiny_key(m, "use_parallel_residual"), false);
    if (m->activation) wg_gguf_set_string(g, "wager.activation", m->activation, strlen(m->activation));
    if (m->experts) tiny_u32(m, g, "expert_count", m->experts);
    if (m->experts) tiny_u32(m, g, "expert_used_count", m->experts_used);
    if (!m->yarn) return;
    tiny_u32(m, g, "rope.scaling.original_context_length", m->context / 4);
    if (tiny_key(m, "rope.scaling.type")) wg_gguf_set_string(g, tiny_key(m, "rope.scaling.type"), "yarn", 4);
}

static void tiny_keys(const tiny *m, wg_gguf_writer *g)
{
    if (!m->skip_key || strcmp("general.architecture", m->skip_key) != 0)
        wg_gguf_set_string(g, "general.architecture", tiny_family(m), strlen(tiny_family(m)));
    wg_gguf_set_string(g, "general.name", "tiny", 4);
    tiny_u32(m, g, "block_count", m->layers);
    tiny_u32(m, g, "embedding_length", m->dim);
    tiny_u32(m, g, "feed_forward_length", m->hidden);
    tiny_u32(m, g, "attention.head_count", m->heads);
    tiny_u32(m, g, "attention.head_count_kv", m->kv_heads);
    tiny_u32(m, g, "attention.key_length", m->head_dim);
    if (!m->positions && m->alibi == 0) tiny_u32(m, g, "rope.dimension_count", m->n_rot ? m->n_rot : m->head_dim);
    tiny_u32(m, g, "vocab_size", m->vocab);
    tiny_u32(m, g, "context_length", m->context);
    tiny_f32(m, g, m->layer_norm ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon", 1e-5);
    if (m->window != 0) tiny_u32(m, g, "attention.sliding_window", m->window);
    if (m->rope_base != 0) tiny_f32(m, g, "rope.freq_base", m->rope_base);
    if (m->rope_factor != 0) tiny_f32(m, g, "rope.scaling.factor", m->rope_factor);
    tiny_more_keys(m, g);
    if (m->meta) m->meta(m, g);
}

static wg_status tiny_write(const tiny *m, const char *path, wg_error *err)
{
    wg_gguf_writer *g;
    WG_TRY(wg_gguf_writer_open(&g, path, err));
    tiny_keys(m, g);
    const int64_t d = m->dim, q = (int64_t)m->heads * m->head_dim, kv = (int64_t)m->kv_heads * m->head_dim;
    const struct {
        const char *name;
        int64_t in, out;
        bool absent;
        bool stacked; /* one for each expert */
    } part[] = {
        { "attn_norm.weight", d, 0, false, false },
        { "attn_q.weight", d, q, m->fused, false },
        { "attn_k.weight", d, kv, m->fused, false },
        { "attn_v.weight", d, kv, m->fused, false },
        { "attn_qkv.weight", d, q + 2 * kv, !m->fused, false },
        { "attn_output.weight", q, d, false, false },
        { "attn_q.bias", q, 0, !m->qkv_bias || m->fused, false },
        { "attn_k.bias", kv, 0, !m->qkv_bias || m->fused, false },
        { "attn_v.bias", kv, 0, !m->qkv_bias || m->fused, false },
        { "attn_qkv.bias", q + 2 * kv, 0, !m->qkv_bias || !m->fused, false },
        { "attn_norm.bias", d, 0, !m->norm_bias, false },
        { "attn_norm_2.weight", d, 0, !m->own_norm, false },
        { "attn_norm_2.bias", d, 0, !m->own_norm || !m->norm_bias, false },
        { "ffn_norm.bias", d, 0, !m->norm_bias || m->one_norm, false },
        { "ffn_up.bias", m->hidden, 0, !m->mlp_bias, false },
        { "ffn_down.bias", d, 0, !m->mlp_bias, false },
        { "attn_output.bias", d, 0, !m->output_bias, false },
        { "attn_q_norm.weight", m->head_dim, 0, !m->head_norm, false },
        { "attn_k_norm.weight", m->head_dim, 0, !m->head_norm, false },
        { "post_attention_norm.weight", d, 0, !m->post_norm, false },
        { "ffn_norm.weight", d, 0, m->one_norm || m->oss, false },
        { "post_attention_norm.weight", d, 0, !m->oss, false },
        { "attn_sinks.weight", m->heads, 0, !m->oss, false },
        { "ffn_gate_inp.bias", m->experts, 0, !m->oss, false },
        { "post_ffw_norm.weight", d, 0, !m->post_norm, false },
        { "ffn_gate.weight", d, m->hidden, m->fused || m->experts, false },
        { "ffn_up.weight", d, m->fused && !m->ungated ? 2 * m->hidden : m->hidden, m->experts > 0, false },
        { "ffn_down.weight", m->hidden, d, m->experts > 0, false },
        { "ffn_gate_inp.weight", d, m->experts, !m->experts, false },
        { "ffn_gate_exps.weight", d, m->hidden, !m->experts, true },
        { "ffn_up_exps.weight", d, m->hidden, !m->experts, true },
        { "ffn_down_exps.weight", m->hidden, d, !m->experts, true },
        { "ffn_gate_exps.bias", m->hidden, m->experts, !m->oss, false },
        { "ffn_up_exps.bias", m->hidden, m->experts, !m->oss, false },
        { "ffn_down_exps.bias", d, m->experts, !m->oss, false },
    };
    int n = 0;
    tiny_tensor(m, g, "token_embd.weight", m->type[n++ % 4], d, m->vocab);
    for (int l = 0; l < m->layers; l++)
        for (size_t i = 0; i < sizeof part / sizeof part[0]; i++) {
            char name[64];
            if (part[i].absent) continue;
            snprintf(name, sizeof name, "blk.%d.%s", l, part[i].name);
            const bool table = part[i].out && strstr(name, ".bias");
            tiny_stack(m, g, name,
                       table         ? WG_F32
                       : part[i].out ? m->type[n++ % 4]
                                     : m->norm_type,
                       part[i].in, part[i].out, part[i].stacked ? m->experts : 1);
        }
    tiny_tensor(m, g, "output_norm.weight", m->norm_type, d, 0);
    if (m->norm_bias) tiny_tensor(m, g, "output_norm.bias", m->norm_type, d, 0);
    if (m->positions) tiny_tensor(m, g, "position_embd.weight", WG_F32, d, m->context);
    if (m->freqs) tiny_tensor(m, g, "rope_freqs.weight", WG_F32, (m->n_rot ? m->n_rot : m->head_dim) / 2, 0);
    if (!m->tied) tiny_tensor(m, g, "output.weight", m->type[n++ % 4], d, m->vocab);
    return wg_gguf_writer_finish(g, err);
}

/* Writes, opens, unlinks. `shown` is the path that messages will name (at least 64 bytes). */
static wg_status tiny_open(const tiny *m, wg_weights **out, char *shown, wg_error *err)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(shown, 64, "%.30s/wager-tiny-%d.gguf", tmp ? tmp : "/tmp", (int)getpid());
    WG_TRY(tiny_write(m, shown, err));
    const wg_status s = wg_weights_open(out, shown, err);
    unlink(shown);
    return s;
}

#endif
