/* SPDX-License-Identifier: MIT
 * The operations of training, as jobs: what the host (draft/train/ops_text.h) and a device (kernels/cuda/train.cu) both do.
 *
 * Embedding, RMSNorm, RoPE, causal attention over packed documents, SwiGLU, cross-entropy; AdamW and Muon.
 *
 * Arrays are row-major, of the element type of who does the job unless another is named; on a device all of them lie in its
 * memory. A gradient of a weight is added to what is there. Items are what threads of the host share: they write different
 * outputs, and every sum runs in one order that depends on neither the threads nor the vector width. */
#ifndef WG_KERNELS_TRAIN_H
#define WG_KERNELS_TRAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/hd.h"

/* Operations, by the job that they take. */
typedef enum wg_train_part {
    WG_OP_EMBED, /* wg_embed_job */
    WG_OP_EMBED_BACK,
    WG_OP_NORM, /* wg_norm_job */
    WG_OP_NORM_BACK,
    WG_OP_NORM_WEIGHT_BACK,
    WG_OP_TURN,      /* wg_turn_job */
    WG_OP_ATTENTION, /* wg_attention_job */
    WG_OP_ATTENTION_BACK,
    WG_OP_PATH, /* wg_path_job; with its gradient and WG_OP_ADD on the host alone */
    WG_OP_PATH_BACK,
    WG_OP_ADD,  /* wg_add_job */
    WG_OP_GATE, /* wg_gate_job */
    WG_OP_GATE_BACK,
    WG_OP_CROSS_ENTROPY, /* wg_entropy_job */
    WG_OP_KEEP,          /* wg_keep_job */
    WG_OP_SQUARE,        /* wg_square_job */
    WG_OP_ADAMW,         /* wg_adamw_job */
    WG_OP_MOMENTUM,      /* wg_momentum_job */
    WG_OP_DIRECTION,     /* wg_muon_job */
    WG_OP_DESCENT,
    WG_TRAIN_PARTS
} wg_train_part;

/* c (m, n) = alpha op(a) op(b) + beta c, row-major; op(x) is x, or with ta, tb its transpose. Rows are lda, ldb, ldc apart.
 * beta 0: c is not read. */
typedef struct wg_gemm {
    bool ta, tb;
    int m, n, k;
    double alpha, beta;
    const void *a, *b;
    void *c;
    int lda, ldb, ldc;
} wg_gemm;

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
    int rows, heads, hd, n_rot;
    bool adjacent, back;
} wg_turn_job;

/* o = softmax(scale q k^T) v; a row sees the rows from start[row] to itself. Rows are sequences of `length` each. Items are
 * pairs of sequence and key head, `back` too: dq, dk and dv are overwritten. On the host alone: a row sees those up to the
 * `shift`th before it, without any it has lse -inf and y 0; with `adds` dk and dv are added to. */
typedef struct wg_attention_job {
    const void *q, *k, *v, *dy; /* (rows, heads * hd), (rows, kv_heads * hd) twice, as q */
    void *y, *lse;              /* as q; (heads, rows) log of the sum of exponentials */
    void *dq, *dk, *dv;
    const int32_t *start; /* (rows) in the sequence: the first row of the row's document */
    void *work;           /* (threads, wg_attention_work); of a device: wg_attention_work of every pair */
    int sequences, length, heads, kv_heads, hd;
    double scale;
    int shift;
    bool adds;
} wg_attention_job;
enum { WG_ATTENTION_BLOCK = 64 }; /* query rows of a block */
WG_HD static inline size_t wg_attention_work(int length)
{
    return 2 * (size_t)WG_ATTENTION_BLOCK * (size_t)length;
} /* elements */

/* Adds the drafted path of each row, itself last, to its attention over the text: to y and lse of an attention job with shift
 * `steps`. Row i sees row i - steps + t of k[t - 1] and v[t - 1], t = 1 .. steps; if i - steps is before start[i], where no
 * draft begins, only t = steps. Back, with y and lse of both together: dq, dk and dv are added to. Items are pairs of sequence
 * and key head. */
enum { WG_PATH_STEPS = 8 };
typedef struct wg_path_job {
    const void *q, *k[WG_PATH_STEPS], *v[WG_PATH_STEPS], *dy; /* shapes of wg_attention_job */
    void *y, *lse;
    void *dq, *dk[WG_PATH_STEPS], *dv[WG_PATH_STEPS];
    const int32_t *start;
    int steps, sequences, length, heads, kv_heads, hd;
    double scale;
} wg_path_job;

/* x += y. Items are spans. */
typedef struct wg_add_job {
    void *x;
    const void *y;
    size_t n;
} wg_add_job;

/* y = silu(gate) up. Back: dgate and dup, which may be the memory of gate and up. Items are elements / WG_SPAN. */
typedef struct wg_gate_job {
    const void *gate, *up, *dy;
    void *y, *dgate, *dup;
    size_t n;
} wg_gate_job;
enum { WG_SPAN = 4096 };
static inline int wg_spans(size_t n) { return (int)((n + WG_SPAN - 1) / WG_SPAN); }

/* loss = -log softmax(z)[target], and its gradient dz = softmax(z) - [v = target]; rows with target -1 have neither: zeros. dz
 * may be z. Items are rows. */
typedef struct wg_entropy_job {
    const int32_t *target; /* (rows) */
    const void *z;         /* (rows, vocab) */
    void *dz, *loss;       /* (rows, vocab), (rows) */
    int rows, vocab;
} wg_entropy_job;

/* x = 0 where `kept` is 0. Items are spans. */
typedef struct wg_keep_job {
    void *x;
    const uint8_t *kept; /* (n) */
    size_t n;
} wg_keep_job;

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

/* A matrix (rows, columns) under Muon, `turned` where it has more rows than columns, so that x (m, n) has m <= n. Direction:
 * x = u / |u|, transposed when turned; one item. Descent: w = w keep - step x, x transposed again; items are rows of w. Where u
 * is zero there is no direction: x is zero and w stays. */
typedef struct wg_muon_job {
    const void *u;
    void *w, *x;
    double *square; /* the sum of squares of u, from the direction to the descent; on a device its wg_spans parts behind it */
    int rows, columns;
    bool turned;
    double keep, step;
} wg_muon_job;

#endif
