/* SPDX-License-Identifier: MIT
 * The speed of training, compared with OpenBLAS (on a device cuBLAS) alone on products of the same sizes. */
#ifndef WG_EXPERIMENTS_BENCH_BENCH_TRAIN_H
#define WG_EXPERIMENTS_BENCH_BENCH_TRAIN_H

#include <stdbool.h>

#include "core/base/error.h"

/* model: a file, for its shape; length 0: its context; sequences: of a pass. Errors: those of opening; EUNSUPPORTED. */
typedef struct wg_bench_train_options {
    const char *model, *device; /* device: a name for wg_device_open; NULL: cpu */
    int threads, sequences, length, repeats;
    bool json;
} wg_bench_train_options;

/* Medians of repeats in which the arms alternate: the products of a pass forward and backward alone, each thread on its share
 * of the rows (a device: on all of them) with one call a product; the pass; an update by Muon. share: the pass's speed relative
 * to the products alone, counting only the multiply-adds of these products (no attention). step_share: the same for a step of
 * 12 sequences with its update, whose products (Newton-Schulz) do not count. */
wg_status wg_bench_train(const wg_bench_train_options *o, wg_error *err);

#endif
