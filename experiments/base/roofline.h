/* SPDX-License-Identifier: MIT
 * The roofline of a machine, with which forward passes are compared: the bandwidth of a read-only stream, and the rate of
 * products whose operands are in the cache. Both use all threads of a pool and the kernels of a forward pass. */
#ifndef WG_EXPERIMENTS_BASE_ROOFLINE_H
#define WG_EXPERIMENTS_BASE_ROOFLINE_H

#include "core/base/pool.h"
#include "core/file/weights.h"
#include "kernels/ops.h"

typedef struct wg_machine_bench {
    wg_pool *pool;
    const wg_ops *ops;
    int type;     /* weight type of the products */
    char *stream; /* (bytes) */
    int bytes;
    void *weights, *act; /* a matrix that fits the L2 of each thread, and its input */
    float *y;            /* (threads, rows, n) */
    char *found;         /* (threads, a cache line each): keeps the loads from being optimised away */
    int *times;          /* (threads) products of the last measurement */
} wg_machine_bench;

enum { WG_MACHINE_STREAM = 256 << 20 }; /* larger than most caches */

/* bytes: size of the stream, 1 .. WG_MACHINE_STREAM, rounded up to whole cache lines. */
wg_status wg_machine_bench_open(wg_machine_bench *m, wg_pool *pool, const wg_ops *ops, int type, int bytes, wg_error *err);
void wg_machine_bench_close(wg_machine_bench *m); /* half-open is fine */

double wg_machine_stream(wg_machine_bench *m);   /* bytes per second, one pass over the stream */
double wg_machine_products(wg_machine_bench *m); /* multiply-adds per second; takes a few milliseconds */

/* The weight type of most of a file's bytes: the type whose products a model is compared with. */
int wg_machine_type(const wg_weights *w);

#endif
