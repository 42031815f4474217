/* SPDX-License-Identifier: MIT
 * wager bench forward: the time of passes of n rows at a context, compared with the machine's roofline: a read-only stream
 * and products from cache, measured in the same run. */
#ifndef WG_EXPERIMENTS_BENCH_BENCH_FORWARD_H
#define WG_EXPERIMENTS_BENCH_BENCH_FORWARD_H

#include "core/setup/target.h"

typedef struct wg_forward_bench {
    const char *rows, *context; /* "1,8,16" */
    int kv_type;                /* type of the cache with which the target was opened */
    int repeats;                /* 1..101; medians are over these */
    bool stages, json;          /* stages: also the time of each stage */
} wg_forward_bench;

/* Prints a line for each number of rows. `recorded` in JSON: true if each timed pass replayed a recorded graph, false if one
 * was launched anew (more than 64 rows, /eager, or a failed recording), null for devices without graphs. EINVAL: numbers;
 * ENOMEM. */
wg_status wg_bench_forward(const wg_forward_bench *b, wg_target *t, wg_error *err);

#endif
