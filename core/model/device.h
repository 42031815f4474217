/* SPDX-License-Identifier: MIT
 * A device: memory and the operations of forward.c on whole batches. One table per kind; forward.c is written once over it.
 * The CPU device splits each operation over its pool and calls kernels/ops.h; sums are never split. */
#ifndef WG_CORE_MODEL_DEVICE_H
#define WG_CORE_MODEL_DEVICE_H

#include "core/base/pool.h"
#include "core/model/batch.h"
#include "kernels/ops.h"

typedef struct wg_device wg_device;

/* A buffer of floats and a packed matrix in device memory. On the CPU they are plain pointers. */
typedef float *wg_buf;

/* Rotary angles of every position: cos, sin pairs; (positions, n_rot/2, 2). */
typedef struct wg_rope {
    int n_rot;
    bool adjacent;
    const float *cs;
} wg_rope;

typedef struct wg_device_class {
    const char *name;
    /* Packs rows of the file, in parallel. */
    wg_status (*matrix)(wg_device *d, int type, int n, int k, const void *rows, wg_matrix *out, wg_error *err);
    void (*matrix_free)(wg_device *d, wg_matrix *m);
    wg_buf (*alloc)(wg_device *d, size_t floats);           /* NULL when out of memory */
    void (*free)(wg_device *d, wg_buf b);

    /* Stages of the forward pass; shapes as in kernels/ops.h, `rows` rows each. They cannot fail. */
    void (*embed)(wg_device *d, const wg_matrix *table, const wg_row *row, int rows, float *x, int dim);
    void (*rmsnorm)(wg_device *d, const float *x, const float *weight, int dim, float eps, float *y, int rows);
    void (*prepare)(wg_device *d, int type, const float *x, int rows, int k, void *act);
    /* Several matrices, one prepared input. */
    void (*matmul)(wg_device *d, const wg_matrix *const *w, float *const *y, int n_matrices, const void *act, int rows);
    void (*rope_store)(wg_device *d, const wg_rope *rope, float *q, float *k, const float *v, const wg_row *row, int rows,
                       int space, int layer, int heads, int kv_heads, int hd);
    void (*attention)(wg_device *d, const float *q, const wg_row *row, int rows, int space, int layer, int heads, int kv_heads,
                      int hd, float *out);
    void (*swiglu)(wg_device *d, const float *gate, const float *up, float *y, int n, int rows);
    void (*add)(wg_device *d, float *x, const float *y, int n, int rows);
    /* Row i of y is row from[i] of x. */
    void (*gather)(wg_device *d, const float *x, const int32_t *from, int n, float *y, int rows);
} wg_device_class;

struct wg_device {
    const wg_device_class *class;
    const wg_ops *ops;
    wg_pool *pool; /* borrowed */
    double small;  /* multiply-adds of a stage that is not worth a fork-join: it stays on the calling thread */
};

/* The CPU device at the level the processor (and WG_CPU) allow; `pool` is borrowed and may be NULL (one thread). */
wg_status wg_device_cpu(wg_device *out, wg_pool *pool, wg_error *err);

#endif
