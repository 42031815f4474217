/* SPDX-License-Identifier: MIT
 * Which tensor of a file goes where in a model: one row a tensor, or a part of one. Included by model.c alone. */
#ifndef WG_CORE_MODEL_PLACES_H
#define WG_CORE_MODEL_PLACES_H

#include "core/model/model_impl.h"

enum width { ONE, DIM, Q_DIM, KV_DIM, HEAD_DIM, HEADS, HIDDEN, VOCAB, HEAD_ROWS, EXPERTS, EACH_EXPERT, CONTEXT, WIDTHS };

typedef struct place {
    const char *name;
    size_t at;             /* of the wg_matrix in its struct, or of the wg_buf of a vector */
    enum width in, out;    /* out = ONE: a vector, kept as f32; EACH_EXPERT or CONTEXT: a table of f32 rows */
    unsigned trait;        /* of the models that have it; 0: all */
    unsigned unless;       /* of those that have it elsewhere */
    const enum width *all; /* a part of a tensor with rows of these widths, up to ONE; NULL: the whole tensor */
    int part;              /* which of them */
    bool each;             /* a matrix of each expert: `at` is that of a wg_stack */
} place;

static const enum width qkv_rows[] = { Q_DIM, KV_DIM, KV_DIM, ONE }, gate_rows[] = { HIDDEN, HIDDEN, ONE };
#define FUSED_QKV WG_TRAIT_FUSED_QKV
#define FUSED_GATE WG_TRAIT_FUSED_GATE
#define NORM_BIAS WG_TRAIT_NORM_BIAS
#define NO_PRE_NORM WG_TRAIT_NO_PRE_NORM

/* clang-format off */
static const place layer_places[] = {
    { "attn_norm.weight", offsetof(wg_layer, attn_norm), DIM, ONE, 0, WG_TRAIT_OWN_NORM | NO_PRE_NORM, NULL, 0, false },
    { "attn_norm_2.weight", offsetof(wg_layer, attn_norm), DIM, ONE, WG_TRAIT_OWN_NORM, 0, NULL, 0, false },
    { "attn_norm.weight", offsetof(wg_layer, ffn_norm), DIM, ONE, WG_TRAIT_ONE_NORM, 0, NULL, 0, false },
    { "attn_q.weight", offsetof(wg_layer, q), DIM, Q_DIM, 0, FUSED_QKV, NULL, 0, false },
    { "attn_k.weight", offsetof(wg_layer, k), DIM, KV_DIM, 0, FUSED_QKV, NULL, 0, false },
    { "attn_v.weight", offsetof(wg_layer, v), DIM, KV_DIM, 0, FUSED_QKV, NULL, 0, false },
    { "attn_qkv.weight", offsetof(wg_layer, q), DIM, Q_DIM, FUSED_QKV, 0, qkv_rows, 0, false },
    { "attn_qkv.weight", offsetof(wg_layer, k), DIM, KV_DIM, FUSED_QKV, 0, qkv_rows, 1, false },
    { "attn_qkv.weight", offsetof(wg_layer, v), DIM, KV_DIM, FUSED_QKV, 0, qkv_rows, 2, false },
    { "attn_qkv.bias", offsetof(wg_layer, q_bias), Q_DIM, ONE, FUSED_QKV | WG_TRAIT_QKV_BIAS, 0, qkv_rows, 0, false },
    { "attn_qkv.bias", offsetof(wg_layer, k_bias), KV_DIM, ONE, FUSED_QKV | WG_TRAIT_QKV_BIAS, 0, qkv_rows, 1, false },
    { "attn_qkv.bias", offsetof(wg_layer, v_bias), KV_DIM, ONE, FUSED_QKV | WG_TRAIT_QKV_BIAS, 0, qkv_rows, 2, false },
    { "attn_norm.bias", offsetof(wg_layer, attn_norm_bias), DIM, ONE, NORM_BIAS, WG_TRAIT_OWN_NORM, NULL, 0, false },
    { "attn_norm_2.bias", offsetof(wg_layer, attn_norm_bias), DIM, ONE, NORM_BIAS | WG_TRAIT_OWN_NORM, 0, NULL, 0, false },
    { "attn_norm.bias", offsetof(wg_layer, ffn_norm_bias), DIM, ONE, NORM_BIAS | WG_TRAIT_ONE_NORM, 0, NULL, 0, false },
    { "ffn_norm.bias", offsetof(wg_layer, ffn_norm_bias), DIM, ONE, NORM_BIAS, WG_TRAIT_ONE_NORM, NULL, 0, false },
    { "ffn_gate.bias", offsetof(wg_layer, gate_bias), HIDDEN, ONE, WG_TRAIT_MLP_BIAS, WG_TRAIT_UNGATED, NULL, 0, false },
    { "ffn_up.bias", offsetof(wg_layer, up_bias), HIDDEN, ONE, WG_TRAIT_MLP_BIAS, 0, NULL, 0, false },
    { "ffn_down.bias", offsetof(wg_layer, down_bias), DIM, ONE, WG_TRAIT_MLP_BIAS, 0, NULL, 0, false },
    { "attn_output.weight", offsetof(wg_layer, o), Q_DIM, DIM, 0, 0, NULL, 0, false },
    { "attn_q.bias", offsetof(wg_layer, q_bias), Q_DIM, ONE, WG_TRAIT_QKV_BIAS, FUSED_QKV, NULL, 0, false },
    { "attn_k.bias", offsetof(wg_layer, k_bias), KV_DIM, ONE, WG_TRAIT_QKV_BIAS, FUSED_QKV, NULL, 0, false },
    { "attn_v.bias", offsetof(wg_layer, v_bias), KV_DIM, ONE, WG_TRAIT_QKV_BIAS, FUSED_QKV, NULL, 0, false },
    { "attn_q_norm.weight", offsetof(wg_layer, q_norm), HEAD_DIM, ONE, WG_TRAIT_HEAD_NORM, WG_TRAIT_ROW_NORM, NULL, 0, false },
    { "attn_k_norm.weight", offsetof(wg_layer, k_norm), HEAD_DIM, ONE, WG_TRAIT_HEAD_NORM, WG_TRAIT_ROW_NORM, NULL, 0, false },
    { "attn_q_norm.weight", offsetof(wg_layer, q_norm), Q_DIM, ONE, WG_TRAIT_ROW_NORM, 0, NULL, 0, false },
    { "attn_k_norm.weight", offsetof(wg_layer, k_norm), KV_DIM, ONE, WG_TRAIT_ROW_NORM, 0, NULL, 0, false },
    { "attn_output.bias", offsetof(wg_layer, o_bias), DIM, ONE, WG_TRAIT_OUTPUT_BIAS, 0, NULL, 0, false },
    { "post_attention_norm.weight", offsetof(wg_layer, attn_post_norm), DIM, ONE, WG_TRAIT_POST_NORM, 0, NULL, 0, false },
    { "post_ffw_norm.weight", offsetof(wg_layer, ffn_post_norm), DIM, ONE, WG_TRAIT_POST_NORM, 0, NULL, 0, false },
    { "ffn_norm.weight", offsetof(wg_layer, ffn_norm), DIM, ONE, 0, WG_TRAIT_ONE_NORM | NO_PRE_NORM | WG_TRAIT_POST_NAME,
      NULL, 0, false },
    { "post_attention_norm.weight", offsetof(wg_layer, ffn_norm), DIM, ONE, WG_TRAIT_POST_NAME, 0, NULL, 0, false },
    { "ffn_gate.weight", offsetof(wg_layer, gate), DIM, HIDDEN, 0, FUSED_GATE | WG_TRAIT_EXPERTS | WG_TRAIT_UNGATED, NULL, 0,
      false },
    { "ffn_up.weight", offsetof(wg_layer, up), DIM, HIDDEN, 0, FUSED_GATE | WG_TRAIT_EXPERTS, NULL, 0, false },
    { "ffn_up.weight", offsetof(wg_layer, gate), DIM, HIDDEN, FUSED_GATE, 0, gate_rows, 0, false },
    { "ffn_up.weight", offsetof(wg_layer, up), DIM, HIDDEN, FUSED_GATE, 0, gate_rows, 1, false },
    { "ffn_gate_inp.weight", offsetof(wg_layer, router), DIM, EXPERTS, WG_TRAIT_EXPERTS, 0, NULL, 0, false },
    { "attn_sinks.weight", offsetof(wg_layer, sinks), HEADS, ONE, WG_TRAIT_SINKS, 0, NULL, 0, false },
    { "ffn_gate_inp.bias", offsetof(wg_layer, router_bias), EXPERTS, ONE, WG_TRAIT_EXPERT_BIAS, 0, NULL, 0, false },
    { "ffn_gate_exps.bias", offsetof(wg_layer, gate_biases), HIDDEN, EACH_EXPERT, WG_TRAIT_EXPERT_BIAS, 0, NULL, 0, false },
    { "ffn_up_exps.bias", offsetof(wg_layer, up_biases), HIDDEN, EACH_EXPERT, WG_TRAIT_EXPERT_BIAS, 0, NULL, 0, false },
    { "ffn_down_exps.bias", offsetof(wg_layer, down_biases), DIM, EACH_EXPERT, WG_TRAIT_EXPERT_BIAS, 0, NULL, 0, false },
    { "ffn_gate_exps.weight", offsetof(wg_layer, expert_gate), DIM, HIDDEN, WG_TRAIT_EXPERTS, 0, NULL, 0, true },
    { "ffn_up_exps.weight", offsetof(wg_layer, expert_up), DIM, HIDDEN, WG_TRAIT_EXPERTS, 0, NULL, 0, true },
    { "ffn_down_exps.weight", offsetof(wg_layer, expert_down), HIDDEN, DIM, WG_TRAIT_EXPERTS, 0, NULL, 0, true },
    { "ffn_down.weight", offsetof(wg_layer, down), HIDDEN, DIM, 0, WG_TRAIT_EXPERTS, NULL, 0, false },
};

enum { EMBEDDING }; /* its place in the list */
static const place model_places[] = {
    { "token_embd.weight", offsetof(wg_model, embed), DIM, VOCAB, 0, 0, NULL, 0, false },
    { "output_norm.weight", offsetof(wg_model, out_norm), DIM, ONE, 0, 0, NULL, 0, false },
    { "output_norm.bias", offsetof(wg_model, out_norm_bias), DIM, ONE, NORM_BIAS, 0, NULL, 0, false },
    { "position_embd.weight", offsetof(wg_model, positions), DIM, CONTEXT, WG_TRAIT_POSITIONS, 0, NULL, 0, false },
    { "output.weight", offsetof(wg_model, head), DIM, HEAD_ROWS, 0, 0, NULL, 0, false }, /* absent when tied */
};
/* clang-format on */

enum {
    LAYER_PLACES = (int)(sizeof layer_places / sizeof layer_places[0]),
    MODEL_PLACES = (int)(sizeof model_places / sizeof model_places[0]),
    NAME = 64,
};

/* Optional: divisors of the rotary frequencies; of longrope, for contexts in use beyond the original one, and up to it. */
#define ROPE_FREQS "rope_freqs.weight"
#define ROPE_LONG "rope_factors_long.weight"
#define ROPE_SHORT "rope_factors_short.weight"

#endif
