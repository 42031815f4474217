/* SPDX-License-Identifier: MIT
 * A head in memory, and the parts of a pass that all kinds of heads have. Private to draft/head. */
#ifndef WG_DRAFT_HEAD_HEAD_IMPL_H
#define WG_DRAFT_HEAD_HEAD_IMPL_H

#include "core/model/rotary.h"
#include "draft/head/head.h"

typedef struct wg_head_layer {
    wg_matrix q, k, v, o, gate, up, down;
    wg_matrix attention_mix, mlp_mix; /* of DFlash 2: what kernels a row has, and (2, taps, dim) those of all rows: */
    wg_buf attention_kernel, mlp_kernel;
    wg_buf input_norm, hidden_norm, post_norm, q_norm, k_norm, q_bias, k_bias, v_bias, o_bias;
} wg_head_layer;

struct wg_head {
    wg_lm lm; /* first: a wg_lm * of this class is a wg_head * */
    wg_device device;
    wg_head_spec spec;
    int kv_type, states, rows; /* states: the space of features, of kinds that have one; rows: most of a pass */
    wg_draft_vocab words;
    wg_matrix fc, own_embed, own_out;
    wg_matrix markov_in, markov_out, markov_gate; /* of DSpark: W1, W2, and gate_proj or joint_proj; of DFlash 2: A, B, H */
    const wg_matrix *embed, *out;                 /* its own, or the target's */
    wg_head_layer layer[WG_HEAD_LAYERS];
    wg_buf input_norm, fc_norm, fc_bias, hidden_norm, norm, angles;
    wg_buf markov_bias, confidence, confidence_bias;
    wg_buf mask; /* of P-EAGLE: the taps of tokens that are not known, and when the head is open their feature */
    wg_rope rope;
    size_t act_bytes;
    /* of a pass: (rows, dim) embeddings, features, residual stream, normed input; (rows, 2 dim) the first layer's input */
    wg_buf e, g, x, h, u, q, k, v, att, gate, up, act, room;
    wg_buf kernels; /* of DFlash 2: (rows, 2, taps, groups) */
    wg_buf link, linked,
        shift;     /* of DSpark and DFlash 2: inputs and outputs of its products, what a row of logits changes by */
    wg_row *seen;  /* (rows) as a layer sees them that does not see what the batch says: a window, no later rows */
    int32_t *from; /* (rows) those with logits */
};

/* Rows of dim floats: norm(x) in `room`, or x itself where there is no norm. */
const float *wg_head_normed(wg_head *h, const float *x, const float *weight, int dim, float *room, int rows);
/* y = norm(x) of rows of dim floats. */
void wg_head_norm(wg_head *h, const float *x, const float *weight, int dim, float *y, int rows);
void wg_head_product(wg_head *h, const wg_matrix *w, const float *x, float *y, int rows); /* y = W x */

/* A layer of attention over rows of a batch. `row`: what they see, which may be other than the batch says. */
wg_attention_rows wg_head_attention(const wg_head *h, int layer, const wg_row *row, int rows);
/* Keys and values of u, and x += W_o attention. u: (rows) the normed input of the layer. */
void wg_head_attend(wg_head *h, const wg_attention_rows *at, const float *u, float *x);
/* The first half of it: queries (at->heads 0: none), keys and values of u, the latter two into the cache. */
void wg_head_store(wg_head *h, const wg_attention_rows *at, const float *u);
void wg_head_mlp(wg_head *h, int layer, float *x, int rows); /* x += MLP(norm(x)) */
/* Logits of the rows that ask for them, in the order of the batch, of x (rows, dim) after the last norm. */
void wg_head_logits(wg_head *h, const wg_batch *b, const float *x, float *logits);

/* Of DFlash 2 (block_head.c), no-ops of others. `in` replaces the normed rows x of a sublayer by its inputs, and keeps their
 * kernels; `out` does the same to its outputs y. */
void wg_head_convolve_in(wg_head *h, const wg_matrix *mix, const float *base, float *x, int rows);
void wg_head_convolve_out(const wg_head *h, const float *base, float *y, int rows);

/* The pass of a block (block_head.c). */
wg_status wg_block_head_forward(wg_lm *lm, const wg_batch *b, float *logits, wg_error *err);
void wg_block_head_read(wg_head *h, wg_kv_seq *kv, int first, const float *taps, int rows);

extern const wg_lm_class wg_head_class, wg_block_head_class;

/* Reads the tensors of the file, rotary angles and the scratch of a pass (head_load.c). After a failure wg_head_close. */
wg_status wg_head_load(wg_head *h, const wg_head_file *f, const wg_env *env, int type, wg_error *err);

#endif
