/* SPDX-License-Identifier: MIT
 * The operations of training with their gradients (kernels/train.h) as tables: f32 and f64 on the host from one text
 * (ops_text.h), so that finite differences check in double what the network (net.c) is trained with; and f32 on a CUDA device
 * (device_ops.c). What is written over a table runs on all of them.
 *
 * Also rows of losses, on the host alone. */
#ifndef WG_DRAFT_TRAIN_TRAIN_OPS_H
#define WG_DRAFT_TRAIN_TRAIN_OPS_H

#include "core/base/pool.h"
#include "draft/train/blas.h"
#include "kernels/train.h"

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

typedef void wg_part_fn(const void *job, int thread, int lo, int hi); /* the items [lo, hi) of a job */

typedef struct wg_train_ops {
    const char *name;
    size_t size;        /* bytes of an element */
    struct wg_gpu *gpu; /* the device; NULL: the host, which alone has what follows */
    void (*gemm)(const wg_gemm *g);
    wg_part_fn *part[WG_TRAIN_PARTS];
    /* Rows of distances. measure fills q. scaled: sums of q where c q < p, and of p elsewhere. */
    void (*row_measure)(const void *z, const void *p, void *q, int n, double inverse, wg_row_sums *out);
    void (*row_scaled)(const void *p, const void *q, int n, double c, double out[2]);
    void (*row_ratio)(wg_row_ratio *r);
    void (*row_gradient)(const wg_row_gradient *g);
} wg_train_ops;

extern const wg_train_ops wg_ops_f64, wg_ops_f32_ref, wg_ops_f32_avx2, wg_ops_f32_avx512; /* those of x86 on x86 only */
/* f32, for the instruction set of this processor (kernels/cpu.h); the same bits on all of them. */
const wg_train_ops *wg_ops_f32(void);

/* Does all items of a job: on the host in shares of multiples of `grain` on the pool, NULL being the calling thread; on a
 * device in order with what was asked of it before. A device is one thread's. */
void wg_over(wg_pool *pool, const wg_train_ops *op, wg_train_part which, const void *job, int items, int grain);

/* Several products at once, on the host divided into tiles that depend on their sizes alone. */
void wg_products(wg_pool *pool, const wg_train_ops *op, const wg_gemm *g, int n);

/* ---- memory of a table (device_ops.c): the host's, or the device's, where only put and get reach it */

struct wg_device;
/* The table of a device that wg_device_open has opened, which it borrows: that of the host's f32 with OpenBLAS, or f32 on CUDA
 * with cuBLAS; the library is looked for. EUNSUPPORTED: it is not there, and how to get it. EINVAL: a mode of the device that
 * training does not know. */
wg_status wg_train_ops_of(wg_train_ops *out, struct wg_device *d, wg_error *err);

size_t wg_ops_available(const wg_train_ops *op);          /* bytes */
void *wg_ops_alloc(const wg_train_ops *op, size_t bytes); /* zeros; NULL: out of memory */
void wg_ops_free(const wg_train_ops *op, void *p);        /* NULL is fine */
void wg_ops_clear(const wg_train_ops *op, void *p, size_t bytes);
void wg_ops_copy(const wg_train_ops *op, void *to, const void *from, size_t bytes);
void wg_ops_put(const wg_train_ops *op, void *to, const void *from, size_t bytes); /* nothing where to == from, as get */
void wg_ops_get(const wg_train_ops *op, void *to, const void *from, size_t bytes);
/* Waits for all of it. EIO: the device failed, and how; what was computed since the last call means nothing. */
wg_status wg_ops_wait(const wg_train_ops *op, wg_error *err);

#endif
