/* SPDX-License-Identifier: MIT
 * The operations of training with their gradients (kernels/train.h) as tables: f32 and f64 on the host from one text
 * (ops_text.h), so that finite differences in double check the code that trains the network (net.c); and f32 on a CUDA device
 * (device_ops.c). Code written over a table runs on all of them.
 *
 * A host table also has operations on rows of losses. */
#ifndef WG_DRAFT_TRAIN_TRAIN_OPS_H
#define WG_DRAFT_TRAIN_TRAIN_OPS_H

#include "core/base/pool.h"
#include "kernels/train.h"

/* Sums over those rows of a part that have a loss. alpha: the sum of acceptance probabilities, if the loss computes them. */
typedef struct wg_loss_part {
    double loss, alpha;
    int rows;
} wg_loss_part;

/* Measurements of a row of n tokens, for distances between p and q = softmax(inverse z). */
typedef struct wg_row_sums {
    double top, sum;       /* the largest logit; sum of exp(inverse (z - top)) */
    double mass, dot;      /* sum of p; sum of p inverse (z - top) */
    double overlap, below; /* sum of min(p, q); sum of q where q < p */
} wg_row_sums;
typedef struct wg_row_gradient {
    const void *p, *more; /* more NULL: zeros */
    void *q;              /* replaced by the gradient: */
    int n;
    double all, of_p; /* q (all + [q < p] of_q + [c q < p] of_cq + more) + p of_p */
    double of_q, of_cq, c;
} wg_row_gradient;

/* Adds weight log(q / d) to more; d = max(of_p p + of_q q, least), log q = inverse (z - top) - log_sum. */
typedef struct wg_row_ratio {
    const void *z, *p, *q;
    void *more;
    int n;
    double inverse, top, log_sum;
    double of_p, of_q, least, weight; /* least: a normal number of the element type */
    double by_q, by_p;                /* results: sums of q log(q / d) and of p log d */
} wg_row_ratio;

typedef void wg_part_fn(const void *job, int thread, int lo, int hi); /* the items [lo, hi) of a job */

typedef struct wg_train_ops {
    const char *name;
    size_t size;        /* bytes of an element */
    struct wg_gpu *gpu; /* the device; NULL: the host, which alone sets the members below */
    void (*gemm)(const wg_gemm *g);
    wg_part_fn *part[WG_TRAIN_PARTS];
    /* Rows of distances. row_measure fills q. row_scaled: sums of q where c q < p, and of p elsewhere. */
    void (*row_measure)(const void *z, const void *p, void *q, int n, double inverse, wg_row_sums *out);
    void (*row_scaled)(const void *p, const void *q, int n, double c, double out[2]);
    void (*row_ratio)(wg_row_ratio *r);
    void (*row_gradient)(const wg_row_gradient *g);
} wg_train_ops;

extern const wg_train_ops wg_ops_f64, wg_ops_f32_ref, wg_ops_f32_avx2, wg_ops_f32_avx512; /* the AVX tables exist on x86 only */
/* The f32 table for this processor's instruction set (kernels/cpu.h); all of them give the same bits. */
const wg_train_ops *wg_ops_f32(void);

/* Does all items of a job: on the host in shares of multiples of `grain` on the pool (NULL: the calling thread), on a device in
 * order after earlier jobs. Only one thread may use a device. */
void wg_ops_run(wg_pool *pool, const wg_train_ops *op, wg_train_part which, const void *job, int items, int grain);

/* Computes n products; the host divides them into tiles that depend on their sizes alone. */
void wg_products(wg_pool *pool, const wg_train_ops *op, const wg_gemm *g, int n);

/* ---- memory of a table (device_ops.c): the host's, or the device's, where only put and get reach it */

struct wg_device;
/* The f32 table of an open device, which it borrows: the host's with OpenBLAS, or CUDA's with cuBLAS. It loads the library.
 * EUNSUPPORTED: the library is missing; the message says how to get it. EINVAL: training does not support the device's mode. */
wg_status wg_train_ops_of(wg_train_ops *out, struct wg_device *d, wg_error *err);

size_t wg_ops_available(const wg_train_ops *op);          /* bytes */
void *wg_ops_alloc(const wg_train_ops *op, size_t bytes); /* zeros; NULL: out of memory */
void wg_ops_free(const wg_train_ops *op, void *p);        /* NULL is fine */
void wg_ops_clear(const wg_train_ops *op, void *p, size_t bytes);
void wg_ops_copy(const wg_train_ops *op, void *to, const void *from, size_t bytes);
void wg_ops_put(const wg_train_ops *op, void *to, const void *from, size_t bytes); /* to device memory; nothing if to == from */
void wg_ops_get(const wg_train_ops *op, void *to, const void *from, size_t bytes);
/* Waits for all jobs. EIO: the device failed, so results since the last call are void. */
wg_status wg_ops_wait(const wg_train_ops *op, wg_error *err);

/* ---- matrix products of the host by OpenBLAS (blas.c), which is loaded when training first needs it: the program neither
 * links it nor starts its threads. A product runs on the calling thread alone; callers divide work into tiles that do not
 * depend on the number of threads, so results do not depend on it either. */

/* Loads the library; later calls cost nothing. Not thread-safe. EUNSUPPORTED: it is not installed; the message says how to
 * install it. */
wg_status wg_blas_open(wg_error *err);
const char *wg_blas_about(void); /* name, version and core, "OpenBLAS 0.3.21 SkylakeX"; "" before it is loaded */

void wg_gemm_f32(const wg_gemm *g);
void wg_gemm_f64(const wg_gemm *g);

#endif
