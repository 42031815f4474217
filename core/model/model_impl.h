/* SPDX-License-Identifier: MIT
 * The struct of a model, shared by model.c (loading), scratch.c and forward.c (computing). Private to core/model. */
#ifndef WG_CORE_MODEL_MODEL_IMPL_H
#define WG_CORE_MODEL_MODEL_IMPL_H

#include "core/model/model.h"
#include "core/model/split.h"
#include "core/model/submodel.h"

/* Matrices of a layer's experts, and the addresses of their data, in device memory. */
typedef struct wg_stack {
    wg_matrix *each; /* (experts) */
    wg_buf data;     /* as many addresses */
} wg_stack;

typedef struct wg_layer {
    wg_buf attn_norm, ffn_norm;           /* (dim); NULL without, as: */
    wg_buf attn_post_norm, ffn_post_norm; /* (dim) of the outputs of attention and MLP; NULL without (wg_trait) */
    wg_buf attn_norm_bias, ffn_norm_bias, gate_bias, up_bias, down_bias; /* (dim) or (hidden); NULL without, as these: */
    wg_buf q_bias, k_bias, v_bias; /* (heads * head_dim), (kv_heads * head_dim); NULL without (wg_trait), as these: */
    wg_buf o_bias;                 /* (dim) */
    wg_buf q_norm, k_norm;         /* (head_dim) of every head, or of all at once */
    wg_matrix q;                   /* (heads * head_dim, dim) */
    wg_matrix k, v;                /* (kv_heads * head_dim, dim) */
    wg_matrix o;                   /* (dim, heads * head_dim) */
    wg_matrix gate, up;            /* (hidden, dim) */
    wg_matrix router;              /* (experts, dim), as those of the experts, in their place */
    wg_stack expert_gate, expert_up, expert_down;
    wg_buf sinks, router_bias;                  /* (heads), (experts); NULL without, as these: */
    wg_buf gate_biases, up_biases, down_biases; /* (experts, hidden), the same, (experts, dim) */
    wg_matrix down;                             /* (dim, hidden) */
} wg_layer;

struct wg_model {
    wg_lm lm; /* first: a wg_lm * of this class is a wg_model * */
    wg_device device;
    wg_arch arch;
    int kv_type, max_rows;
    int window;                               /* tokens that a row attends to in layers with a window; 0: all */
    bool all_windowed;                        /* these are all layers */
    size_t bytes, angles_bytes, expert_bytes; /* of all; of rotary angles; of experts */
    wg_lm_identity identity;
    int64_t experts_read;     /* by all passes, of all layers; 0 where the device does not count */
    wg_rank_part part;        /* what of its matrices this rank has; of one rank all */
    int head_rows;            /* of the whole head */
    struct wg_ranked *ranked; /* NULL: one rank */

    /* Rows of matrices, and heads, are those of this rank. */
    wg_matrix embed;                 /* (vocab, dim) */
    wg_matrix head;                  /* (vocab or n_head, dim); when tied and whole, the same memory as embed */
    wg_buf out_norm;                 /* (dim) */
    wg_buf out_norm_bias, positions; /* (dim); (context of the file, dim) learned positions; NULL without, as these: */
    wg_buf slopes, zeros;            /* (heads) of ALiBi; (dim) biases of a LayerNorm that has none */
    wg_buf growth;                   /* (context) factors of queries by position */
    wg_layer *layer;                 /* (layers of this rank) */
    wg_rope rope[3];                 /* of layers without and with a window; that turns nothing */
    wg_buf angles[2];                /* (context, n_rot/2, 2), what rope.cs points to; the second NULL when both are the same */

    /* Scratch of one pass, max_rows rows each. */
    wg_buf x, h;           /* (rows, dim) residual stream; normed input or a block's output */
    wg_buf q, att;         /* (rows, heads * head_dim) */
    wg_buf k, v;           /* (rows, kv_heads * head_dim) */
    wg_buf gate, up;       /* (rows, hidden) */
    wg_buf routed, chosen; /* (rows, experts) logits of routers; (rows, 2, experts_used) what they chose. NULL without, as: */
    wg_buf picked, mixed;  /* (rows, dim) inputs and outputs of an expert */
    wg_buf hidden_act;     /* prepared inputs of its last product */
    wg_buf grouped;        /* which rows have an expert */
    wg_buf act;            /* prepared activations of any stage */
    wg_buf room;           /* of attention */
    wg_row *seen;          /* the rows of a pass within the window; NULL without one */
    wg_row *asked, *asked_within; /* the rows with logits; as layers with a window see them, NULL without one */
    int32_t *asked_from;          /* their indices in the batch */
    const wg_row *within;         /* of the running pass: its rows as layers with a window see them; NULL: as the others */
    const wg_verify_spec *verify; /* of the running pass; NULL: it ends in logits */
};

/* The wg_lm of the transformer (forward.c). */
extern const wg_lm_class wg_model_lm_class;

/* Refuses a context in which a window of unknown layers would be seen. */
wg_status wg_model_check_window(const wg_weights *w, const wg_arch *a, int context, wg_error *err);

/* A cut student reads the embedding of its target, from the same memory: whether it has one that fits. */
wg_status wg_model_check_embedding(const wg_model *m, const wg_weights *w, const wg_matrix *embedding, wg_error *err);

/* Refuses a model without a file whose tensors are larger than the memory that is free. */
wg_status wg_model_check_room(const wg_weights *w, const wg_device *d, wg_error *err);

/* Sets the model's identity; `seen` has the digests of its tensors. */
void wg_model_identify(wg_model *m, const wg_weights *w, wg_sha256_state *seen);

/* The scratch of passes (scratch.c). ENOMEM: wg_model_close_scratch frees what there is. */
wg_status wg_model_open_scratch(wg_model *m, wg_error *err);
void wg_model_close_scratch(wg_model *m);

/* The rows as all layers, or those without a window, see them; m->within: as the others do, where both kinds are there. */
wg_batch wg_model_within(wg_model *m, const wg_batch *b);

/* Calls the stages of a pass; its device computes, launches or records them. */
void wg_model_stages(wg_model *m, const wg_layer_plan *plan, int space, const wg_batch *b, float *logits);

/* One pass under the plan, with keys and values in this space. As wg_lm_class.forward. */
wg_status wg_model_pass(wg_model *m, const wg_layer_plan *plan, int space, const wg_batch *b, float *logits, wg_error *err);

/* Storage in a cache, with the model's device ready for passes over it. */
wg_status wg_model_attach(wg_model *m, wg_kv *kv, int *space, wg_error *err);

/* Index of the first element of a tensor that is NaN or infinite (of a block: its scale), or -1. Split over the pool. */
int64_t wg_finite_check(wg_pool *pool, const wg_tensor *t);

#endif
