/* SPDX-License-Identifier: MIT
 * The operations of training with their gradients, for f32 and f64 from one text (ops_text.h): the network (net.c) is written
 * once over this table, and finite differences check it in double.
 *
 * Embedding, RMSNorm, RoPE, causal attention over packed documents, SwiGLU, cross-entropy; AdamW and the momentum of Muon.
 *
 * A function takes a job and the items [lo, hi) of it, which any thread may do: items write different outputs, and every sum
 * runs in one order that depends on neither the threads nor the vector width. Arrays are row-major, of the table's element type
 * unless another is named. A gradient of a weight is added to what is there. */
#ifndef WG_DRAFT_TRAIN_TRAIN_OPS_H
#define WG_DRAFT_TRAIN_TRAIN_OPS_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/pool.h"
#include "draft/train/blas.h"

/* Rows of x are rows of w. Forward: items are rows. Back: dw[token] += dx, items are columns. */
typedef struct wg_embed_job {
    const int32_t *token; /* (rows) */
    const void *w;        /* (vocab, dim) */
    void *x, *dw;         /* (rows, dim); (vocab, dim) */
    const void *dx;
    int rows, dim;
} wg_embed_job;

/* y = x r w, r = 1 / sqrt(mean(x^2) + eps) kept for the gradient. Back: dx += ..., items are rows; for the weight they are
 * columns. */
typedef struct wg_norm_job {
    const void *x, *w, *dy; /* (rows, dim), (dim), (rows, dim) */
    void *y, *r;            /* (rows, dim), (rows) */
    void *dx, *dw;
    int rows, dim;
    double eps;
} wg_norm_job;

/* In place; `back` turns the other way, which is the gradient. Items are rows. */
typedef struct wg_turn_job {
    void *x;                 /* (rows, heads * hd) */
    const void *cs;          /* (positions, n_rot / 2, 2) cos and sin */
    const int32_t *position; /* (rows) */
    int heads, hd, n_rot;
    bool adjacent, back;
} wg_turn_job;

/* o = softmax(scale q k^T) v; a row sees the rows from start[row] to itself. Rows are sequences of `length` each. Items are
 * pairs of sequence and key head, `back` too: dq, dk and dv are overwritten. */
typedef struct wg_attention_job {
    const void *q, *k, *v, *dy; /* (rows, heads * hd), (rows, kv_heads * hd) twice, as q */
    void *y, *lse;              /* as q; (heads, rows) log of the sum of exponentials */
    void *dq, *dk, *dv;
    const int32_t *start; /* (rows) in the sequence: the first row of the row's document */
    void *work;           /* (threads, wg_attention_work) */
    int sequences, length, heads, kv_heads, hd;
    double scale;
} wg_attention_job;
enum { WG_ATTENTION_BLOCK = 64 }; /* query rows of a block */
static inline size_t wg_attention_work(int length) { return 2 * (size_t)WG_ATTENTION_BLOCK * (size_t)length; } /* elements */

/* y = silu(gate) up. Back: dgate and dup, which may be the memory of gate and up. Items are elements / WG_SPAN. */
typedef struct wg_gate_job {
    const void *gate, *up, *dy;
    void *y, *dgate, *dup;
    size_t n;
} wg_gate_job;
enum { WG_SPAN = 4096 };
static inline int wg_spans(size_t n) { return (int)((n + WG_SPAN - 1) / WG_SPAN); }

/* Sums over the rows of a part that have a loss. alpha: the sum of acceptance probabilities, where the loss knows them. */
typedef struct wg_loss_part {
    double loss, alpha;
    int rows;
} wg_loss_part;

/* A row of a distance between p and q = softmax(inverse z), n tokens. */
typedef struct wg_row_sums {
    double top, sum;       /* the largest logit; sum of exp(inverse (z - top)) */
    double mass, dot;      /* sums of p; of p inverse (z - top) */
    double overlap, below; /* sums of min(p, q); of q where q < p */
} wg_row_sums;
typedef struct wg_row_gradient {
    const void *p, *more; /* more: NULL is zeros */
    void *q;              /* becomes the gradient: */
    int n;
    double all, of_p; /* q (all + [q < p] of_q + [c q < p] of_cq + more) + p of_p */
    double of_q, of_cq, c;
} wg_row_gradient;

/* log(q / d), d = max(of_p p + of_q q, least), log q = inverse (z - top) - log_sum. more += weight log(q / d). */
typedef struct wg_row_ratio {
    const void *z, *p, *q;
    void *more;
    int n;
    double inverse, top, log_sum;
    double of_p, of_q, least, weight; /* least: a normal number of the element type */
    double by_q, by_p;                /* out: sums of q log(q / d), of p log d */
} wg_row_ratio;

/* sum[span] = sum of squares, in double. Items are spans. */
typedef struct wg_square_job {
    const void *x;
    double *sum;
    size_t n;
} wg_square_job;

/* AdamW (Loshchilov and Hutter 2019) with gradients times `clip`. correct1, correct2: 1 - beta^step. Items are spans. */
typedef struct wg_adamw_job {
    void *w, *m, *v;
    const void *g;
    size_t n;
    double lr, beta1, beta2, eps, decay, clip, correct1, correct2;
} wg_adamw_job;

/* Nesterov's momentum of Muon: m = mu m + (1 - mu) g; u = mu m + (1 - mu) g. Items are spans. */
typedef struct wg_momentum_job {
    void *m, *u;
    const void *g;
    size_t n;
    double mu, clip;
} wg_momentum_job;

typedef void wg_part_fn(const void *job, int thread, int lo, int hi);

typedef struct wg_train_ops {
    const char *name;
    size_t size; /* bytes of an element */
    void (*gemm)(const wg_gemm *g);
    wg_part_fn *embed, *embed_back, *norm, *norm_back, *norm_weight_back, *turn, *attention, *attention_back, *gate, *gate_back,
        *square, *adamw, *momentum;
    /* -log softmax(z)[target] and its gradient softmax(z) - [v = target]; rows with target -1 have none. dz may be z. */
    void (*cross_entropy)(const int32_t *target, int rows, int vocab, const void *z, void *dz, wg_loss_part *sum);
    /* Rows of distances. measure fills q. scaled: sums of q where c q < p, and of p elsewhere. */
    void (*row_measure)(const void *z, const void *p, void *q, int n, double inverse, wg_row_sums *out);
    void (*row_scaled)(const void *p, const void *q, int n, double c, double out[2]);
    void (*row_ratio)(wg_row_ratio *r);
    void (*row_gradient)(const wg_row_gradient *g);
} wg_train_ops;

extern const wg_train_ops wg_ops_f64, wg_ops_f32_ref, wg_ops_f32_avx2, wg_ops_f32_avx512; /* those of x86 on x86 only */
/* f32, for the instruction set of this processor (kernels/cpu.h); the same bits on all of them. */
const wg_train_ops *wg_ops_f32(void);

/* Runs fn over [0, items) on the pool, in shares of multiples of `grain`. */
void wg_over(wg_pool *pool, wg_part_fn *fn, const void *job, int items, int grain);

/* Several products at once, divided into tiles that depend on their sizes alone. */
void wg_products(wg_pool *pool, const wg_train_ops *op, const wg_gemm *g, int n);

#endif
