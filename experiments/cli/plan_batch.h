/* SPDX-License-Identifier: MIT
 * The best draft at each number of sequences of a step, and the same as a table that vLLM reads. */
#ifndef WG_EXPERIMENTS_CLI_PLAN_BATCH_H
#define WG_EXPERIMENTS_CLI_PLAN_BATCH_H

#include "core/base/error.h"

enum { WG_PLAN_BATCHES = 64 };

/* The sizes of --batch: "4", or "1..64". EINVAL. */
wg_status wg_plan_batches(const char *text, int *first, int *last, wg_error *err);

/* The best draft of `batch` sequences, and the best chain. Lengths 0: plain decoding, with speed-up 1. */
typedef struct wg_batch_choice {
    int batch, tokens, levels, chain; /* tokens, levels: of the best draft; chain: the length of the best chain */
    bool tree;                        /* the best draft is one */
    double tau, speedup, lo, hi;      /* of the best draft */
    double chain_speedup;
    double plain, drafted; /* tokens per second of all sequences: plainly, with the best draft */
} wg_batch_choice;

/* c: (n) by ascending batch. For people; a JSON object a line; the speculative config of vLLM, whose ranges are of equal
 * chains. */
void wg_plan_batch_print(const wg_batch_choice *c, int n);
void wg_plan_batch_json(const wg_batch_choice *c, int n);
void wg_plan_batch_vllm(const wg_batch_choice *c, int n, const char *draft);

#endif
