/* SPDX-License-Identifier: MIT
 * Log-probabilities (logprob.h). The sum is the sampler's (integers, exact in any order; wager's own exp), the logarithm
 * wager's own. */
#include "core/dist/logprob.h"

#include <math.h>

#include "kernels/ln.h"

/* Keeps the k first tokens in order (logit descending, id ascending) in out[], which has n of them. */
static int insert(wg_logprob *out, int n, int k, int32_t token, double x)
{
    int at = n < k ? n : k - 1;
    if (n == k && !(x > out[k - 1].logprob)) return n;
    for (; at > 0 && x > out[at - 1].logprob; at--) out[at] = out[at - 1];
    out[at] = (wg_logprob){ token, x };
    return n < k ? n + 1 : n;
}

/* A logit of +inf has all the mass; NaN has none. */
static double logprob_of(float x, float max, double log_sum)
{
    if (x == max) return isinf(max) ? 0 : -log_sum;
    return x < max && !isinf(max) ? (double)x - (double)max - log_sum : -INFINITY;
}

void wg_logprobs(const wg_ops *ops, const float *logits, int vocab, int32_t token, int k, double *weight, wg_logprob *out)
{
    const int32_t best = ops->argmax(logits, vocab);
    const float max = best >= 0 ? logits[best] : -INFINITY;
    wg_band none = { .low = INFINITY, .high = INFINITY };
    const double log_sum = isinf(max) ? 0 : wg_log64_of(wg_mass_value(ops->weigh64(logits, vocab, max, 1, weight, &none)));
    wg_logprob *top = out + 1;
    int n = 0;
    for (int32_t i = 0; i < vocab && k > 0; i++)
        if (logits[i] == logits[i]) n = insert(top, n, k, i, (double)logits[i]);
    for (int i = 0; i < n; i++) top[i].logprob = logprob_of(logits[top[i].token], max, log_sum);
    for (; n < k; n++) top[n] = (wg_logprob){ -1, -INFINITY };
    out[0] = (wg_logprob){ token, logprob_of(logits[token], max, log_sum) };
}
