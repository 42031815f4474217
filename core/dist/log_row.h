/* SPDX-License-Identifier: MIT
 * Log probabilities of tokens under a row of logits as it is: temperature 1, the whole vocabulary, no penalties. A function of the
 * row alone, so by the Prefix Law they are the same with and without speculation. */
#ifndef WG_CORE_DIST_LOG_ROW_H
#define WG_CORE_DIST_LOG_ROW_H

#include <stdint.h>

#include "kernels/ops.h"

enum { WG_LOG_ROW_TOP = 32 };

/* The most probable tokens of a row, the first `n` (at most WG_LOG_ROW_TOP) of them; ties: the lowest ids first. */
typedef struct wg_log_top {
    int n;
    int32_t *token;  /* (n) -1: the vocabulary has no more */
    double *logprob; /* (n) */
} wg_log_top;

/* The log probability of `token`; -infinity: it has none. weight: (vocab), scratch. top may be NULL. */
double wg_log_row(const wg_ops *ops, const float *logits, int vocab, int32_t token, double *weight, const wg_log_top *top);

#endif
