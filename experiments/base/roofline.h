/* SPDX-License-Identifier: MIT
 * The roofline of a machine, against which forward passes are held: bytes of a read-only stream, and products whose operands
 * are in the cache. Both on all threads of a pool, with the very kernels that a forward pass uses. */
#ifndef WG_EXPERIMENTS_BASE_ROOFLINE_H
#define WG_EXPERIMENTS_BASE_ROOFLINE_H

#include "core/base/pool.h"
#include "core/file/weights.h"
#include "kernels/ops.h"

typedef struct wg_machine_bench {
    wg_pool *pool;
    const wg_ops *ops;
    int type;     /* of the weights of the products */
    char *stream; /* (bytes) */
    int bytes;
    void *weights, *act; /* a matrix that fits the L2 of each thread, and its input */
    float *y;            /* (threads, rows, n) */
    char *found;         /* (threads, a cache line each): keeps the loads */
    int *times;          /* (threads): products of the last reading */
} wg_machine_bench;

enum { WG_MACHINE_STREAM = 256 << 20 }; /* larger than most caches */

/* bytes: of the stream, more than 0 and up to WG_MACHINE_STREAM, rounded up to whole cache lines. */
wg_status wg_machine_bench_open(wg_machine_bench *m, wg_pool *pool, const wg_ops *ops, int type, int bytes, wg_error *err);
void wg_machine_bench_close(wg_machine_bench *m); /* half-open is fine */

double wg_machine_stream(wg_machine_bench *m);   /* bytes per second, one reading */
double wg_machine_products(wg_machine_bench *m); /* multiply-adds per second, a few milliseconds */

/* The type that most of a file's bytes are in: whose products to hold a model against. */
int wg_machine_type(const wg_weights *w);

#endif
