/* SPDX-License-Identifier: MIT
 * wager bench verify: the cost of a step between the target's logits and the next root, without a model. */
#ifndef WG_EXPERIMENTS_BENCH_BENCH_VERIFY_H
#define WG_EXPERIMENTS_BENCH_BENCH_VERIFY_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/error.h"

typedef struct wg_verify_bench {
    int vocab, rows, repeats;  /* rows: rows of a chain, its root included */
    const char *rule;          /* a rule's name, or "all" */
    double temperature, top_p; /* of the sampled runs */
    uint64_t seed;
    bool json;
} wg_verify_bench;

/* Prints one line for each rule and kind of row: CPU time of this thread, medians. EINVAL: no such rule. */
wg_status wg_bench_verify(const wg_verify_bench *b, wg_error *err);

#endif
