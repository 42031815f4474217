/* SPDX-License-Identifier: MIT
 * wager bench kernels: the operations that dominate a pass, each alone, on this machine's kernel variant: products with each
 * weight type, the preparation of their inputs, and attention over each cache type. */
#ifndef WG_EXPERIMENTS_BENCH_BENCH_KERNELS_H
#define WG_EXPERIMENTS_BENCH_BENCH_KERNELS_H

#include <stdbool.h>

#include "core/base/error.h"

typedef struct wg_kernels_bench {
    const char *op;   /* "matmul", "prepare", "attention"; NULL: all */
    const char *type; /* type of weights or cache; NULL: all */
    const char *rows; /* "1,8,16" */
    int context;      /* keys of attention, at least 1 */
    int megabytes;    /* size of the weights; it must exceed the processor's caches */
    int threads;      /* 0: all cores */
    int repeats;      /* 1..WG_BENCH_REPEATS; medians are over these */
    bool pin, json;
} wg_kernels_bench;

/* Prints a line for each (op, type, rows). EINVAL: numbers, an unknown op or type; ENOMEM. */
wg_status wg_bench_kernels(const wg_kernels_bench *b, wg_error *err);

#endif
