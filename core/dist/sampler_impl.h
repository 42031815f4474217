/* SPDX-License-Identifier: MIT
 * Shared by the files of the sampler: the order of tokens (logit descending, id ascending) as a heap, and the chain whose
 * stages are not in the default order. */
#ifndef WG_CORE_DIST_SAMPLER_IMPL_H
#define WG_CORE_DIST_SAMPLER_IMPL_H

#include <math.h>

#include "core/dist/sampler.h"

static inline bool wg_before(const float *x, int32_t a, int32_t b) { return x[a] > x[b] || (x[a] == x[b] && a < b); }

/* Lets heap[i] sink among heap[0..n), the first in order on top. */
static inline void wg_sink(const float *x, int32_t *heap, int n, int i)
{
    const int32_t id = heap[i];
    for (int child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && wg_before(x, heap[child + 1], heap[child])) child++;
        if (!wg_before(x, heap[child], id)) break;
        heap[i] = heap[child];
    }
    heap[i] = id;
}

/* The mth token in order, m = 0, 1, ...: from the heap's top to its place behind the heap. */
static inline int32_t wg_pop(const float *x, int32_t *heap, int n, int m)
{
    const int32_t top = heap[0];
    heap[0] = heap[n - 1 - m];
    heap[n - 1 - m] = top;
    wg_sink(x, heap, n - 1 - m, 0);
    return top;
}

/* Where a prefix of the order ends: its last token. */
typedef struct wg_edge {
    float logit;
    int32_t id;
} wg_edge;

/* Unnormalised weights of n logits, the largest of which is known; their mass. */
static inline wg_mass wg_weights_of(const wg_sampler *s, const float *x, int n, float max, double inverse, double *w)
{
    wg_band none = { .low = INFINITY, .high = INFINITY };
    return s->ops->weigh64(x, n, max, inverse, w, &none);
}

/* Unnormalised weights of a row with this largest logit, as weigh64 makes them (w NULL: nowhere), and their mass. True: top-p
 * ends at *e and keeps the mass *kept (nucleus.c); false: not found. */
bool wg_nucleus_weigh(const wg_sampler *s, const float *x, float max, double inverse, double *w, wg_mass *all, wg_mass *kept,
                      wg_edge *e);

/* Fills stage[] from an order's text; EINVAL unless every stage is named once. *usual: it is WG_SAMPLING_ORDER. */
wg_status wg_sampler_stages(const char *order, wg_stage stage[WG_STAGES], bool *usual, wg_error *err);

/* A row by the stages in their order, whatever it is. prefix: NULL for no penalties. */
void wg_sampler_chain(wg_sampler *s, const float *logits, const wg_prefix *prefix, wg_rows *out, int row);

#endif
