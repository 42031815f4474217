/* SPDX-License-Identifier: MIT
 * Log-probabilities of tokens, as completion services report them: ln softmax of the model's logits, before biases, masks,
 * penalties, temperature and truncation. They are a function of the logits alone, so by the Prefix Law those of a token have
 * the same bits with any draft and without one. */
#ifndef WG_CORE_DIST_LOGPROB_H
#define WG_CORE_DIST_LOGPROB_H

#include <stdint.h>

#include "kernels/ops.h"

enum { WG_LOGPROBS_MAX = 32 };

typedef struct wg_logprob {
    int32_t token;
    double logprob; /* -inf: none at all */
} wg_logprob;

/* out[0]: the given token; out[1 .. k]: the k most probable tokens, the largest first and ties by lowest id, the given one
 * included if it is among them. 0 <= k <= WG_LOGPROBS_MAX; beyond the vocabulary token is -1. weight: (vocab) working
 * memory. */
void wg_logprobs(const wg_ops *ops, const float *logits, int vocab, int32_t token, int k, double *weight, wg_logprob *out);

#endif
