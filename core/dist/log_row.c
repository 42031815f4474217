/* SPDX-License-Identifier: MIT
 * See log_row.h: log p(x) = (logit x - max) - log sum, the sum being softmax64's. */
#include "core/dist/log_row.h"

#include <math.h>

#include "kernels/ln.h"

/* Keeps the n best in order: insertion, which most tokens of a vocabulary do not reach. */
static int find_top(const float *logits, int vocab, int most, int32_t *best)
{
    int n = 0;
    for (int32_t x = 0; x < vocab; x++) {
        if (!(logits[x] > -INFINITY) || (n == most && !(logits[x] > logits[best[n - 1]]))) continue; /* NaN counts as -inf */
        int at = n < most ? n++ : n - 1;
        for (; at > 0 && logits[x] > logits[best[at - 1]]; at--) best[at] = best[at - 1];
        best[at] = x;
    }
    return n;
}

/* A row and its sum; all_at: the token with all the mass, of logits that are not finite (as the sampler has it), or -1. */
typedef struct row {
    const float *logits;
    double max, log_sum;
    int32_t all_at;
} row;

static double log_of(const row *r, int32_t token)
{
    if (r->all_at >= 0) return token == r->all_at ? 0 : -INFINITY;
    return r->logits[token] > -INFINITY ? (double)r->logits[token] - r->max - r->log_sum : -INFINITY;
}

double wg_log_row(const wg_ops *ops, const float *logits, int vocab, int32_t token, double *weight, const wg_log_top *top)
{
    int32_t best[WG_LOG_ROW_TOP];
    const int most = top && top->n < WG_LOG_ROW_TOP ? top->n : top ? WG_LOG_ROW_TOP : 0;
    const int32_t peak = ops->argmax(logits, vocab);
    const double max = peak >= 0 ? (double)logits[peak] : NAN,
                 sum = isfinite(max) ? ops->softmax64(logits, vocab, 1, weight) : 0;
    const row r = { logits, max, isfinite(sum) && sum > 0 ? wg_log64_of(sum) : 0, isfinite(sum) && sum > 0 ? -1 : peak };
    const int found = most > 0 ? find_top(logits, vocab, most, best) : 0;
    for (int i = 0; top && i < top->n; i++) {
        top->token[i] = i < found ? best[i] : -1;
        top->logprob[i] = i < found ? log_of(&r, best[i]) : -INFINITY;
    }
    return log_of(&r, token);
}
