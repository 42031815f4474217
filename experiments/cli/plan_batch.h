/* SPDX-License-Identifier: MIT
 * The best draft for each batch size, and the same as a table for vLLM. */
#ifndef WG_EXPERIMENTS_CLI_PLAN_BATCH_H
#define WG_EXPERIMENTS_CLI_PLAN_BATCH_H

#include "core/base/error.h"

enum { WG_PLAN_BATCHES = 64 };

/* Parses the sizes of --batch: "4", or "1..64". EINVAL. */
wg_status wg_plan_batches(const char *text, int *first, int *last, wg_error *err);

/* The best draft for `batch` sequences, and the best chain. Lengths of 0 mean plain decoding, with speed-up 1. */
typedef struct wg_batch_choice {
    int batch, tokens, levels, chain; /* tokens, levels: size of the best draft; chain: length of the best chain */
    bool tree;                        /* the best draft is a tree */
    double tau, speedup, lo, hi;      /* of the best draft */
    double chain_speedup;
    double plain, drafted; /* tokens per second of all sequences: plain, and with the best draft */
} wg_batch_choice;

/* Prints c (n), ascending by batch: as a table; as JSON lines; as vLLM's speculative config, with a range for equal chains. */
void wg_plan_batch_print(const wg_batch_choice *c, int n);
void wg_plan_batch_json(const wg_batch_choice *c, int n);
void wg_plan_batch_vllm(const wg_batch_choice *c, int n, const char *draft);

#endif
