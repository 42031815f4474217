/* SPDX-License-Identifier: MIT
 * The sampler chain. One order rules it: logit descending, id ascending. Top-k, top-p and min-p each keep a prefix of that
 * order, so what survives is the shortest of the three prefixes and its last token describes it. The prefix is found by popping
 * a heap of candidates; two bounds, both exact, keep the candidates few:
 *   top-k: with tokens in k groups or more, no token below every group's largest logit is among the k largest;
 *   top-p: tokens lighter than (1 - top_p) * sum / vocab weigh less than 1 - top_p together (halved for rounding).
 * Sums run in that order, sequentially, so every machine keeps the same tokens. */
#include "core/engine/sampler.h"

#include <float.h>
#include <math.h>
#include <stddef.h>

#include "core/base/mem.h"

const wg_option wg_sampling_options[] = {
    WG_OPTION_FLOAT(wg_sampling, temperature, 0, 0, 100, "of the softmax; 0: greedy"),
    WG_OPTION_INT(wg_sampling, top_k, 0, 0, 1000000000, "keep the k most probable tokens; 0: all"),
    WG_OPTION_FLOAT(wg_sampling, top_p, 1, 0, 1, "keep the smallest set of most probable tokens with this mass; 1: all"),
    WG_OPTION_FLOAT(wg_sampling, min_p, 0, 0, 1, "drop tokens below this times the largest probability; 0: none"),
    WG_OPTION_END,
};

wg_status wg_sampler_open(wg_sampler *s, const wg_sampling *sampling, const wg_ops *ops, int vocab, wg_error *err)
{
    const wg_sampling *o = sampling;
    if (!(o->temperature >= 0 && o->temperature <= 100 && o->top_k >= 0 && o->top_p >= 0 && o->top_p <= 1 && o->min_p >= 0 &&
          o->min_p <= 1))
        return wg_fail(err, WG_EINVAL, "sampling: temperature %g, top_k %d, top_p %g, min_p %g: expected 0..100, 0.., 0..1 and "
                       "0..1", o->temperature, o->top_k, o->top_p, o->min_p);
    *s = (wg_sampler){ .sampling = *sampling, .ops = ops, .vocab = vocab };
    s->order = wg_alloc((size_t)vocab, sizeof *s->order);
    s->clean = wg_alloc((size_t)vocab, sizeof *s->clean);
    if (s->order && s->clean) return WG_OK;
    wg_sampler_close(s);
    return wg_nomem(err, (size_t)vocab * 8, "the sampler");
}

void wg_sampler_close(wg_sampler *s)
{
    wg_free(s->order);
    wg_free(s->clean);
    *s = (wg_sampler){ 0 };
}

/* ---- the order */

static inline bool before(const float *x, int32_t a, int32_t b) { return x[a] > x[b] || (x[a] == x[b] && a < b); }

/* Lets heap[i] sink among heap[0..n), the first in order on top. */
static void sink(const float *x, int32_t *heap, int n, int i)
{
    const int32_t id = heap[i];
    for (int child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && before(x, heap[child + 1], heap[child])) child++;
        if (!before(x, heap[child], id)) break;
        heap[i] = heap[child];
    }
    heap[i] = id;
}

/* The mth token in order, m = 0, 1, ...: from the heap's top to its place behind the heap. */
static int32_t pop(const float *x, int32_t *heap, int n, int m)
{
    const int32_t top = heap[0];
    heap[0] = heap[n - 1 - m];
    heap[n - 1 - m] = top;
    sink(x, heap, n - 1 - m, 0);
    return top;
}

/* A logit that the kth largest reaches: the least of at least k groups' maxima. Sixteen groups are interleaved. */
static float kth_bound(const float *x, int n, int k)
{
    enum { LANES = 16 };
    if (k > n / (2 * LANES)) return -INFINITY;
    const int blocks = (k + LANES - 1) / LANES, rows = n / LANES / blocks;
    float bound = INFINITY;
    for (int b = 0; b < blocks; b++) {
        float max[LANES];
        for (int j = 0; j < LANES; j++) max[j] = -INFINITY;
        for (int r = 0; r < rows; r++, x += LANES)
            for (int j = 0; j < LANES; j++) max[j] = x[j] > max[j] ? x[j] : max[j];
        for (int j = 0; j < LANES; j++) bound = max[j] < bound ? max[j] : bound;
    }
    return bound;
}

/* The kept prefix: returns its length, its last token and its weight. p: weights with p[argmax] == 1 and this sum. */
static int prefix(const wg_sampler *s, const float *x, const double *p, double sum, int32_t *last, double *weight)
{
    const wg_sampling *o = &s->sampling;
    /* (Nearer to 1 the rounding of the sums would show.) */
    const double spare = o->top_p < 1 - 1e-6 ? (1 - o->top_p) * sum / s->vocab / 2 : 0;
    const double light = o->top_k ? 0 : o->min_p > spare ? o->min_p : spare, floor = light > DBL_MIN ? light : DBL_MIN;
    const float bound = o->top_k ? kth_bound(x, s->vocab, o->top_k) : -INFINITY;
    int32_t *heap = s->order;
    int n = 0, popped = 0, kept = 0;
    for (int32_t i = 0; i < s->vocab; i++)
        if (p[i] >= floor && x[i] >= bound) heap[n++] = i;
    for (int i = n / 2 - 1; i >= 0; i--) sink(x, heap, n, i);
    if (o->top_k) /* its mass is what top-p takes a part of */
        for (sum = 0; popped < n && popped < o->top_k; popped++) sum += p[pop(x, heap, n, popped)];
    const int most = o->top_k ? popped : n;
    const double enough = o->top_p < 1 ? o->top_p * sum : INFINITY;
    *weight = 0;
    while (kept < most && (kept == 0 || *weight < enough)) {
        const int32_t id = kept < popped ? heap[n - 1 - kept] : pop(x, heap, n, kept);
        if (kept > 0 && p[id] < o->min_p) break;
        *weight += p[id];
        *last = id;
        kept++;
    }
    return kept;
}

/* x without NaN: itself, or a copy where they are -inf. */
static const float *cleaned(const wg_sampler *s, const float *x)
{
    int nan = 0;
    for (int i = 0; i < s->vocab; i++) nan |= x[i] != x[i];
    if (!nan) return x;
    for (int i = 0; i < s->vocab; i++) s->clean[i] = x[i] != x[i] ? -INFINITY : x[i];
    return s->clean;
}

void wg_sampler_row(wg_sampler *s, const float *logits, wg_rows *out, int row)
{
    const wg_sampling *o = &s->sampling;
    const double inverse = 1 / o->temperature;
    const int best = s->ops->argmax(logits, s->vocab);
    out->point[row] = best >= 0 && logits[best] > -INFINITY ? best : 0;
    if (!isfinite(inverse) || best < 0 || isinf(logits[best]) || o->top_k == 1) return;

    const float *x = cleaned(s, logits);
    double *p = wg_rows_at(out, row), weight = s->ops->softmax64(x, s->vocab, inverse, p);
    if (o->top_k == 0 && o->top_p >= 1 && o->min_p <= 0) {
        const double scale = 1 / weight;
        for (int i = 0; i < s->vocab; i++) p[i] *= scale;
        out->point[row] = -1;
        return;
    }
    int32_t last = best;
    if (prefix(s, x, p, weight, &last, &weight) == 1) return; /* the point row stands */
    const double scale = 1 / weight;
    const float edge = x[last];
    for (int32_t i = 0; i < s->vocab; i++) p[i] = x[i] > edge || (x[i] == edge && i <= last) ? p[i] * scale : 0;
    out->point[row] = -1;
}
