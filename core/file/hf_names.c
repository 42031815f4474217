/* SPDX-License-Identifier: MIT
 * Names of the tensors of Hugging Face folders, and what they are called in GGUF files. */
#include "core/file/hf_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of which models a name is: those whose outputs of attention and MLP are normed give one name another meaning. The others
 * tell names apart that mean the same in GGUF files, for writing. */
enum {
    POST_NORMS = 1,
    NO_POST_NORMS = 2,
    FUSED = 4,
    SPLIT = 8,
    SPARSE = 16,
    NOT_SPARSE = 32,
    OWN_NORM = 64,
    NO_OWN_NORM = 128,
    WRITING = 252,
    NORM_BIASES = 1 << 13
};

static const wg_hf_name usual_head_names[] = {
    { "model.embed_tokens.weight", "token_embd.weight", false, 0, NULL },
    { "model.norm.weight", "output_norm.weight", false, 0, NULL },
    { "lm_head.weight", "output.weight", false, 0, NULL },
    { "model.norm.bias", "output_norm.bias", false, 0, NULL },
}, usual_layer_names[] = {
    /* those of one type: they come first, as the first of several is written */
    { "post_self_attn_layernorm.weight", "post_attention_norm.weight", false, WG_HF_NAMES_GLM, NULL },
    { "post_mlp_layernorm.weight", "post_ffw_norm.weight", false, WG_HF_NAMES_GLM, NULL },
    { "mlp.gate_up_proj.weight", "ffn_up.weight", false, WG_HF_NAMES_GLM, NULL },
    { "self_attn.query_layernorm.weight", "attn_q_norm.weight", false, WG_HF_NAMES_HUNYUAN, NULL },
    { "self_attn.key_layernorm.weight", "attn_k_norm.weight", false, WG_HF_NAMES_HUNYUAN, NULL },
    { "post_attention_layernorm.weight", "post_attention_norm.weight", false, WG_HF_NAMES_SEED, NULL },
    { "mlp.c_fc.weight", "ffn_up.weight", false, WG_HF_NAMES_STARCODER, NULL },
    { "mlp.c_fc.bias", "ffn_up.bias", false, WG_HF_NAMES_STARCODER, NULL },
    { "mlp.c_proj.weight", "ffn_down.weight", false, WG_HF_NAMES_STARCODER, NULL },
    { "mlp.c_proj.bias", "ffn_down.bias", false, WG_HF_NAMES_STARCODER, NULL },
    { "self_attn.sinks", "attn_sinks.weight", false, WG_HF_NAMES_OSS, NULL },
    { "mlp.router.weight", "ffn_gate_inp.weight", false, WG_HF_NAMES_OSS, NULL },
    { "mlp.router.bias", "ffn_gate_inp.bias", false, WG_HF_NAMES_OSS, NULL },
    { "shared_mlp.input_linear.weight", "ffn_gate.weight", false, WG_HF_NAMES_GRANITE, "ffn_up.weight" },
    { "shared_mlp.output_linear.weight", "ffn_down.weight", false, WG_HF_NAMES_GRANITE, NULL },
    { "input_layernorm.weight", "attn_norm.weight", false, 0, NULL },
    { "input_layernorm.bias", "attn_norm.bias", false, NORM_BIASES, NULL },
    { "post_attention_layernorm.bias", "ffn_norm.bias", false, NORM_BIASES, NULL },
    { "mlp.gate_proj.bias", "ffn_gate.bias", false, 0, NULL },
    { "mlp.up_proj.bias", "ffn_up.bias", false, 0, NULL },
    { "mlp.down_proj.bias", "ffn_down.bias", false, 0, NULL },
    { "self_attn.q_proj.weight", "attn_q.weight", true, 0, NULL },
    { "self_attn.k_proj.weight", "attn_k.weight", true, 0, NULL },
    { "self_attn.v_proj.weight", "attn_v.weight", false, 0, NULL },
    { "self_attn.qkv_proj.weight", "attn_qkv.weight", false, FUSED, NULL },
    { "self_attn.o_proj.weight", "attn_output.weight", false, 0, NULL },
    { "self_attn.q_proj.bias", "attn_q.bias", true, 0, NULL },
    { "self_attn.k_proj.bias", "attn_k.bias", true, 0, NULL },
    { "self_attn.v_proj.bias", "attn_v.bias", false, 0, NULL },
    { "self_attn.o_proj.bias", "attn_output.bias", false, 0, NULL },
    { "self_attn.q_norm.weight", "attn_q_norm.weight", false, 0, NULL },
    { "self_attn.k_norm.weight", "attn_k_norm.weight", false, 0, NULL },
    { "post_attention_layernorm.weight", "ffn_norm.weight", false, NO_POST_NORMS, NULL },
    { "post_attention_layernorm.weight", "post_attention_norm.weight", false, POST_NORMS, NULL },
    { "pre_feedforward_layernorm.weight", "ffn_norm.weight", false, POST_NORMS, NULL },
    { "post_feedforward_layernorm.weight", "post_ffw_norm.weight", false, POST_NORMS, NULL },
    { "mlp.gate_proj.weight", "ffn_gate.weight", false, 0, NULL },
    { "mlp.up_proj.weight", "ffn_up.weight", false, SPLIT, NULL },
    { "mlp.gate_up_proj.weight", "ffn_up.weight", false, FUSED, NULL },
    { "mlp.down_proj.weight", "ffn_down.weight", false, 0, NULL },
    { "mlp.gate.weight", "ffn_gate_inp.weight", false, NOT_SPARSE, NULL },
    { "block_sparse_moe.gate.weight", "ffn_gate_inp.weight", false, SPARSE, NULL },
    { "self_attn.rotary_emb.inv_freq", NULL, false, 0, NULL }, /* old files hold what is computed */
};

/* GPT-2's, with or without "transformer." in front. Its matrices are stored by inputs: columns become rows. */
static const wg_hf_name gpt2_head_names[] = {
    { "wte.weight", "token_embd.weight", false, 0, NULL },
    { "ln_f.weight", "output_norm.weight", false, 0, NULL },
    { "lm_head.weight", "output.weight", false, 0, NULL },
    { "ln_f.bias", "output_norm.bias", false, 0, NULL },
    { "wpe.weight", "position_embd.weight", false, 0, NULL },
}, gpt2_layer_names[] = {
    { "ln_1.weight", "attn_norm.weight", false, 0, NULL },
    { "ln_1.bias", "attn_norm.bias", false, 0, NULL },
    { "attn.c_attn.weight", "attn_qkv.weight", false, 0, NULL },
    { "attn.c_attn.bias", "attn_qkv.bias", false, 0, NULL },
    { "attn.c_proj.weight", "attn_output.weight", false, 0, NULL },
    { "attn.c_proj.bias", "attn_output.bias", false, 0, NULL },
    { "ln_2.weight", "ffn_norm.weight", false, 0, NULL },
    { "ln_2.bias", "ffn_norm.bias", false, 0, NULL },
    { "mlp.c_fc.weight", "ffn_up.weight", false, 0, NULL },
    { "mlp.c_fc.bias", "ffn_up.bias", false, 0, NULL },
    { "mlp.c_proj.weight", "ffn_down.weight", false, 0, NULL },
    { "mlp.c_proj.bias", "ffn_down.bias", false, 0, NULL },
    { "attn.bias", NULL, false, 0, NULL }, /* masks, not weights */
    { "attn.masked_bias", NULL, false, 0, NULL },
};

static const wg_hf_name neox_head_names[] = {
    { "embed_in.weight", "token_embd.weight", false, 0, NULL },
    { "final_layer_norm.weight", "output_norm.weight", false, 0, NULL },
    { "embed_out.weight", "output.weight", false, 0, NULL },
    { "final_layer_norm.bias", "output_norm.bias", false, 0, NULL },
    { "lm_head.weight", "output.weight", false, 0, NULL }, /* its newer name */
}, neox_layer_names[] = {
    { "input_layernorm.weight", "attn_norm.weight", false, 0, NULL },
    { "input_layernorm.bias", "attn_norm.bias", false, 0, NULL },
    { "post_attention_layernorm.weight", "ffn_norm.weight", false, 0, NULL },
    { "post_attention_layernorm.bias", "ffn_norm.bias", false, 0, NULL },
    { "attention.query_key_value.weight", "attn_qkv.weight", false, 0, NULL },
    { "attention.query_key_value.bias", "attn_qkv.bias", false, 0, NULL },
    { "attention.dense.weight", "attn_output.weight", false, 0, NULL },
    { "attention.dense.bias", "attn_output.bias", false, 0, NULL },
    { "mlp.dense_h_to_4h.weight", "ffn_up.weight", false, 0, NULL },
    { "mlp.dense_h_to_4h.bias", "ffn_up.bias", false, 0, NULL },
    { "mlp.dense_4h_to_h.weight", "ffn_down.weight", false, 0, NULL },
    { "mlp.dense_4h_to_h.bias", "ffn_down.bias", false, 0, NULL },
    { "attention.bias", NULL, false, 0, NULL }, /* masks and what is computed, not weights */
    { "attention.masked_bias", NULL, false, 0, NULL },
    { "attention.rotary_emb.inv_freq", NULL, false, 0, NULL },
};

/* The MLP's norm is called attn_norm in GGUF files, where attention has another. */
static const wg_hf_name falcon_head_names[] = {
    { "word_embeddings.weight", "token_embd.weight", false, 0, NULL },
    { "ln_f.weight", "output_norm.weight", false, 0, NULL },
    { "lm_head.weight", "output.weight", false, 0, NULL },
    { "ln_f.bias", "output_norm.bias", false, 0, NULL },
}, falcon_layer_names[] = {
    { "input_layernorm.weight", "attn_norm.weight", false, NO_OWN_NORM, NULL },
    { "input_layernorm.bias", "attn_norm.bias", false, NO_OWN_NORM, NULL },
    { "ln_mlp.weight", "attn_norm.weight", false, OWN_NORM, NULL },
    { "ln_mlp.bias", "attn_norm.bias", false, OWN_NORM, NULL },
    { "ln_attn.weight", "attn_norm_2.weight", false, 0, NULL },
    { "ln_attn.bias", "attn_norm_2.bias", false, 0, NULL },
    { "post_attention_layernorm.weight", "ffn_norm.weight", false, 0, NULL },
    { "post_attention_layernorm.bias", "ffn_norm.bias", false, 0, NULL },
    { "self_attention.query_key_value.weight", "attn_qkv.weight", false, 0, NULL },
    { "self_attention.query_key_value.bias", "attn_qkv.bias", false, 0, NULL },
    { "self_attention.dense.weight", "attn_output.weight", false, 0, NULL },
    { "self_attention.dense.bias", "attn_output.bias", false, 0, NULL },
    { "mlp.dense_h_to_4h.weight", "ffn_up.weight", false, 0, NULL },
    { "mlp.dense_h_to_4h.bias", "ffn_up.bias", false, 0, NULL },
    { "mlp.dense_4h_to_h.weight", "ffn_down.weight", false, 0, NULL },
    { "mlp.dense_4h_to_h.bias", "ffn_down.bias", false, 0, NULL },
};

static const wg_hf_name mpt_head_names[] = {
    { "wte.weight", "token_embd.weight", false, 0, NULL },
    { "norm_f.weight", "output_norm.weight", false, 0, NULL },
    { "lm_head.weight", "output.weight", false, 0, NULL },
}, mpt_layer_names[] = {
    { "norm_1.weight", "attn_norm.weight", false, 0, NULL },
    { "norm_2.weight", "ffn_norm.weight", false, 0, NULL },
    { "attn.Wqkv.weight", "attn_qkv.weight", false, 0, NULL },
    { "attn.out_proj.weight", "attn_output.weight", false, 0, NULL },
    { "ffn.up_proj.weight", "ffn_up.weight", false, 0, NULL },
    { "ffn.down_proj.weight", "ffn_down.weight", false, 0, NULL },
};

const wg_hf_expert_name wg_hf_expert_names[WG_HF_EXPERT_NAMES] = {
    { "mlp", "gate_proj", "ffn_gate_exps", NOT_SPARSE }, { "mlp", "up_proj", "ffn_up_exps", NOT_SPARSE },
    { "mlp", "down_proj", "ffn_down_exps", NOT_SPARSE }, { "block_sparse_moe", "w1", "ffn_gate_exps", SPARSE },
    { "block_sparse_moe", "w3", "ffn_up_exps", SPARSE }, { "block_sparse_moe", "w2", "ffn_down_exps", SPARSE },
};

/* Whether a name is one of this model's. */
static bool belongs(const wg_hf_config *c, unsigned only, bool writing)
{
    const unsigned is = (c->post_norms ? POST_NORMS : NO_POST_NORMS) | (c->fused ? FUSED : SPLIT) |
                        (c->sparse_names ? SPARSE : NOT_SPARSE) | (c->own_norm ? OWN_NORM : NO_OWN_NORM) | c->names |
                        (c->norm_bias ? NORM_BIASES : 0) | (writing ? 0 : WRITING);
    return (only & ~is) == 0;
}

#define LIST(of) sizeof of / sizeof of[0]
#define NAMES(of)                                                                                                              \
    .head = of##_head_names, .in_layer = of##_layer_names, .heads = LIST(of##_head_names), .in_layers = LIST(of##_layer_names)

wg_hf_dialect wg_hf_dialect_of(const wg_hf_config *c)
{
    static const wg_hf_dialect of[WG_HF_STYLES] = {
        [WG_HF_USUAL] = { .before = "", .layer = "model.layers.%d.", NAMES(usual) },
        [WG_HF_GPT2] = { .before = "transformer.", .layer = "h.%d.", NAMES(gpt2) },
        [WG_HF_NEOX] = { .before = "gpt_neox.", .layer = "layers.%d.", NAMES(neox) },
        [WG_HF_FALCON] = { .before = "transformer.", .layer = "h.%d.", NAMES(falcon) },
        [WG_HF_MPT] = { .before = "transformer.", .layer = "blocks.%d.", NAMES(mpt) },
    };
    return of[c->style];
}

const char *wg_hf_plain_name(const wg_hf_dialect *in, const char *name)
{
    const size_t n = strlen(in->before);
    return strncmp(name, in->before, n) == 0 ? name + n : name;
}

/* The layer of a name, and what stands behind it; NULL: the name is not that of a layer's tensor. */
static const char *layer_of(const wg_hf_dialect *in, const char *name, int layers, int *layer)
{
    char exact[WG_HF_NAME];
    const char *number = strpbrk(name, "0123456789");
    *layer = number ? atoi(number) : -1;
    if (*layer < 0 || *layer >= layers) return NULL;
    const int n = snprintf(exact, sizeof exact, in->layer, *layer);
    return strncmp(name, exact, (size_t)n) == 0 ? name + n : NULL;
}

const wg_hf_name *wg_hf_find_name(const wg_hf_config *c, const char *hf, char to[WG_HF_NAME])
{
    int layer;
    const wg_hf_dialect in = wg_hf_dialect_of(c);
    *to = '\0';
    hf = wg_hf_plain_name(&in, hf);
    for (size_t i = 0; i < in.heads; i++)
        if (strcmp(hf, in.head[i].hf) == 0) {
            if (!c->tied || strcmp(in.head[i].gguf, "output.weight") != 0) /* a tied head is the embedding */
                snprintf(to, WG_HF_NAME, "%s", in.head[i].gguf);
            return &in.head[i];
        }
    const char *rest = layer_of(&in, hf, c->layers, &layer);
    for (size_t i = 0; rest && i < in.in_layers; i++) {
        const wg_hf_name *name = &in.in_layer[i];
        if (strcmp(rest, name->hf) != 0 || !belongs(c, name->only, false)) continue;
        if (name->gguf) snprintf(to, WG_HF_NAME, "blk.%d.%s", layer, name->gguf);
        return name;
    }
    return NULL;
}

wg_hf_change wg_hf_change_of(const wg_hf_config *c, const wg_hf_name *as, int n_dims)
{
    return (wg_hf_change){ .heads = c->adjacent && as->permuted ? strstr(as->hf, "q_proj") ? c->heads : c->kv_heads : 0,
                           .plus_one = c->norms_less_one && strstr(as->hf, "norm.weight"),
                           .turned = c->style == WG_HF_GPT2 && n_dims == 2 && strstr(as->hf, ".c_"),
                           .grouped = c->grouped && as->gguf && strstr(as->gguf, "attn_qkv") };
}

int64_t wg_hf_grouped_row(const wg_hf_config *c, int64_t r)
{
    const int64_t width = c->head_dim, heads = c->heads, kv = c->kv_heads, queries = heads / kv;
    const int64_t h = r / width, k = h < heads ? 0 : 1 + (h - heads) / kv; /* a query, a key, a value */
    const int64_t group = k ? (h - heads) % kv : h / queries, in = k ? queries + k - 1 : h % queries;
    return (group * (queries + 2) + in) * width + r % width;
}

/* ---- the other way round */

/* The layer of a name of a GGUF file, and what stands behind it; NULL: it is none of a layer's. */
static const char *gguf_layer(const wg_hf_config *c, const char *gguf, int *layer)
{
    int n = 0;
    if (sscanf(gguf, "blk.%4d.%n", layer, &n) != 1 || n == 0 || *layer < 0 || *layer >= c->layers) return NULL;
    return gguf + n;
}

const wg_hf_name *wg_hf_name_of(const wg_hf_config *c, const char *gguf, char to[WG_HF_FULL_NAME])
{
    int layer;
    const wg_hf_dialect in = wg_hf_dialect_of(c);
    for (size_t i = 0; i < in.heads; i++)
        if (in.head[i].gguf && strcmp(gguf, in.head[i].gguf) == 0) {
            /* the head does not have what stands in front of all others */
            snprintf(to, WG_HF_FULL_NAME, "%s%s", i == WG_HF_HEAD_NAME ? "" : in.before, in.head[i].hf);
            return &in.head[i];
        }
    const char *rest = gguf_layer(c, gguf, &layer);
    for (size_t i = 0; rest && i < in.in_layers; i++) {
        const wg_hf_name *name = &in.in_layer[i];
        if (!name->gguf || strcmp(rest, name->gguf) != 0 || !belongs(c, name->only, true)) continue;
        const int n = snprintf(to, WG_HF_FULL_NAME, "%s", in.before);
        const int k = snprintf(to + n, (size_t)(WG_HF_FULL_NAME - n), in.layer, layer);
        snprintf(to + n + k, (size_t)(WG_HF_FULL_NAME - n - k), "%s", name->hf);
        return name;
    }
    return NULL;
}

bool wg_hf_expert_of(const wg_hf_config *c, const char *gguf, int expert, char to[WG_HF_FULL_NAME])
{
    int layer;
    char exact[WG_HF_NAME];
    const char *rest = gguf_layer(c, gguf, &layer);
    for (int k = 0; rest && k < WG_HF_EXPERT_NAMES; k++) {
        const wg_hf_expert_name *e = &wg_hf_expert_names[k];
        snprintf(exact, sizeof exact, "%s.weight", e->gguf);
        if (strcmp(rest, exact) != 0 || !belongs(c, e->only, true)) continue;
        snprintf(to, WG_HF_FULL_NAME, WG_HF_EXPERT, layer, e->before, expert, e->after);
        return true;
    }
    return false;
}
