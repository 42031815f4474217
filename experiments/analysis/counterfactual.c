/* SPDX-License-Identifier: MIT
 * alpha of rows of p and changed rows of q. */
#include "experiments/analysis/counterfactual.h"

#include <math.h>

double wg_alpha(const double *p, const double *q, int vocab)
{
    double sum = 0;
    for (int i = 0; i < vocab; i++) sum += p[i] < q[i] ? p[i] : q[i];
    return sum;
}

double wg_variation(const double *p, const double *q, int vocab)
{
    double sum = 0;
    for (int i = 0; i < vocab; i++) sum += fabs(p[i] - q[i]);
    return sum / 2;
}

/* alpha of p and row / sum. */
static double alpha_of(const double *p, double *row, int vocab, double sum)
{
    if (!(sum > 0)) return 0;
    for (int i = 0; i < vocab; i++) row[i] /= sum;
    return wg_alpha(p, row, vocab);
}

double wg_alpha_at_temperature(const double *p, const double *q, int vocab, double factor, double *row)
{
    double sum = 0;
    for (int i = 0; i < vocab; i++) sum += row[i] = q[i] > 0 ? pow(q[i], 1 / factor) : 0;
    return alpha_of(p, row, vocab, sum);
}

static bool before(const double *q, int32_t a, int32_t b) { return q[a] > q[b] || (q[a] == q[b] && a < b); }

/* A heap of tokens with the most probable on top: the nucleus is small, the vocabulary is not. */
static void sink(const double *q, int32_t *heap, int n, int i)
{
    const int32_t id = heap[i];
    for (int child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && before(q, heap[child + 1], heap[child])) child++;
        if (!before(q, heap[child], id)) break;
        heap[i] = heap[child];
    }
    heap[i] = id;
}

double wg_alpha_in_nucleus(const double *p, const double *q, int vocab, double top_p, double *row, int32_t *order)
{
    double mass = 0;
    int n = vocab;
    for (int i = 0; i < vocab; i++) {
        order[i] = i;
        row[i] = 0;
    }
    for (int i = n / 2 - 1; i >= 0; i--) sink(q, order, n, i);
    while (n > 0 && mass < top_p) {
        const int32_t top = order[0];
        mass += row[top] = q[top];
        order[0] = order[--n];
        if (n) sink(q, order, n, 0);
    }
    return alpha_of(p, row, vocab, mass);
}

double wg_alpha_of_vocabulary(const double *p, const double *q, int vocab, const int32_t *rank, int n, double *row)
{
    double sum = 0;
    for (int i = 0; i < vocab; i++) sum += row[i] = rank[i] < n ? q[i] : 0;
    return alpha_of(p, row, vocab, sum);
}
