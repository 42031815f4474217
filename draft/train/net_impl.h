/* SPDX-License-Identifier: MIT
 * The struct of a network, shared by net_memory.c (its memory) and net.c (its passes). */
#ifndef WG_DRAFT_TRAIN_NET_IMPL_H
#define WG_DRAFT_TRAIN_NET_IMPL_H

#include "draft/train/net.h"

enum { WG_NET_LOGIT_ROWS = 512, WG_NET_ALIGNED = 16 }; /* rows whose logits exist at once; alignment of tensors in elements */

/* Activations of a layer: (rows, ...) each. */
typedef struct wg_net_layer {
    void *x, *h, *r;             /* (dim) input and its norm; (1) the norm's factor */
    void *q, *k, *v, *att, *lse; /* (heads hd), (kv_heads hd) twice, (heads hd), (heads) */
    void *mid, *h2, *r2;         /* (dim) after attention, and its norm; (1) the norm's factor */
    void *gate, *up, *act;       /* (hidden) */
} wg_net_layer;

/* A step of a head. */
typedef struct wg_net_step {
    wg_net_layer l;         /* x: the feature before each row, h: its norm */
    void *x, *state, *r;    /* (rows, dim) what the layer gives, and its norm: the next step's feature; (rows) its factor */
    void *dstate, *dk, *dv; /* gradients */
} wg_net_step;

struct wg_net {
    const wg_train_ops *op; /* all arrays lie in its memory */
    wg_pool *pool;
    wg_arch arch;
    int sequences, length, rows, tensors;
    wg_net_ends ends;
    wg_net_tensor *tensor;    /* embedding, those of each layer, output norm, head unless tied */
    wg_net_tensor kept;       /* the rows of the head that are kept, if not all are; they lie in `kept_w` */
    size_t elements, trained; /* of all weights; of those that are not frozen, which come first */
    void *w, *g, *kept_w;     /* (elements), (trained), (kept, dim) */
    int32_t *ids;             /* (4, rows) tokens, targets, starts, positions of a pass; on a device only */
    void *cs;                 /* (context, n_rot) */
    wg_net_layer *layer;      /* (layers) */
    void *x, *h, *r;          /* (rows, dim) output of the last layer, its norm; (rows) the norm's factor */
    void *dx, *dh;            /* (rows, dim) gradients of the residual stream and of a norm's output */
    void *dq, *dk, *dv, *datt, *dgate, *dup, *dact; /* gradients, shaped as in wg_net_layer */
    void *z, *dz;                                   /* (logit rows, outputs) */
    void *row_loss;                                 /* (rows of logits) */
    void *work;                                     /* workspace of attention */
    void *memory;                                   /* owns all of the above but w and g */
    wg_loss_part *part;                             /* (parts of logit rows) */
    /* of a head; x, h and r are then embeddings, their norm and its factor */
    wg_net_step *step;                 /* (steps) */
    void *taps, *tap_norm, *tap_r;     /* (taps, rows, dim) hidden states, and normed; (taps, rows) factors */
    void *feature, *dfeature;          /* (rows, dim) made of them */
    void *embed_q, *embed_k, *embed_v; /* (rows, ...) the embedding's part of queries, keys and values; then their gradients */
    int32_t *first, *turned, *drafts;  /* (rows) the first row that a row sees, and its position; (logit rows) tokens */
    /* In host memory: */
    void *host;      /* (elements) the weights; w itself for a host table */
    void *host_loss; /* (rows) row_loss; of a head NULL */
    float *host_z;   /* (2, logit rows, outputs) z and dz of plugged-in losses, on a device */
};

static inline int wg_net_logit_rows(int length) { return length < WG_NET_LOGIT_ROWS ? length : WG_NET_LOGIT_ROWS; }

/* The second half of layer i: next = mid + MLP(norm(mid)); and its gradient, from dx to dx. (net.c) */
void wg_net_mlp(wg_net *n, const wg_net_layer *l, int i, void *next);
void wg_net_mlp_back(wg_net *n, const wg_net_layer *l, int i);

/* Computes a plugged-in loss of rows of logits [first, first + count) in parts of `part` rows; their gradients go to dz. */
void wg_net_plugged_loss(wg_net *n, const wg_train_loss *loss, int first, int count, int part, wg_loss_part *sum);

/* Of a head (net_head.c): the functions of net.h. */
void wg_net_head_forward(wg_net *n, const wg_train_rows *rows);
void wg_net_head_logits(wg_net *n, int first, int rows, void *z);
wg_loss_part wg_net_head_loss(wg_net *n, const wg_train_rows *rows, const wg_train_loss *loss, double scale, bool back);

#endif
