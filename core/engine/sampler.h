/* SPDX-License-Identifier: MIT
 * The sampler chain: logits -> a row of p or q (METHODS B14). Order: temperature, top-k, top-p, min-p. The same code makes p
 * and q. Softmax in double with our own exp and fixed-order sums, so that every machine takes the same decisions from the same
 * logits. */
#ifndef WG_CORE_ENGINE_SAMPLER_H
#define WG_CORE_ENGINE_SAMPLER_H

#include "core/base/option.h"
#include "core/engine/rows.h"
#include "kernels/ops.h"

typedef struct wg_sampling {
    double temperature; /* 0: greedy, a point row at the argmax */
    int top_k;          /* 0: all */
    double top_p;       /* 1: all. Keeps the smallest set of most probable tokens whose mass reaches top_p */
    double min_p;       /* 0: all. Drops tokens below min_p times the largest probability */
} wg_sampling;
extern const wg_option wg_sampling_options[];

typedef struct wg_sampler {
    wg_sampling sampling;
    const wg_ops *ops;
    int vocab;
    int32_t *order; /* (vocab) scratch for top-k, top-p, min-p */
    float *clean;   /* (vocab) logits whose NaN were replaced; used only when there are any */
} wg_sampler;

wg_status wg_sampler_open(wg_sampler *s, const wg_sampling *sampling, const wg_ops *ops, int vocab, wg_error *err);
void wg_sampler_close(wg_sampler *s);

/* logits (vocab) -> row `row` of out. Ties keep the lowest ids. NaN logits count as -inf; +inf, or no finite logit at all,
 * gives the point row at the lowest such id (0). */
void wg_sampler_row(wg_sampler *s, const float *logits, wg_rows *out, int row);

#endif
