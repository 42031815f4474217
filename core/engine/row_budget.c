/* SPDX-License-Identifier: MIT
 * See row_budget.h. */
#include "core/engine/row_budget.h"

#include <math.h>

#include "core/base/mem.h"

wg_status wg_row_budget_open(wg_row_budget *b, int sequences, int depth, wg_error *err)
{
    *b = (wg_row_budget){ .sequences = sequences, .depth = depth };
    const size_t n = (size_t)sequences, all = n * (size_t)depth;
    b->order = wg_calloc(all, sizeof *b->order);
    b->heap = wg_calloc(n, sizeof *b->heap);
    b->taken = wg_calloc(n, sizeof *b->taken);
    if (b->order && b->heap && b->taken) return WG_OK;
    wg_row_budget_close(b);
    return wg_nomem(err, (all + 2 * n) * sizeof(int), "the rows of a step");
}

void wg_row_budget_close(wg_row_budget *b)
{
    wg_free(b->order);
    wg_free(b->heap);
    wg_free(b->taken);
    *b = (wg_row_budget){ .order = NULL };
}

double wg_row_costs_pass(const wg_row_costs *c, int rows)
{
    const double last = c->pass[c->rows - 1];
    return rows <= c->rows ? c->pass[rows - 1] : last * rows / c->rows;
}

/* The order of draft tokens: the next one of each sequence, in a heap by falling probability, then by sequence. */
typedef struct merge {
    const wg_row_budget *b;
    const double *survival;
    int heap;
} merge;

static double chance(const merge *m, int sequence) { return m->survival[sequence * m->b->depth + m->b->taken[sequence]]; }

static bool before(const merge *m, int x, int y)
{
    const double p = chance(m, x), q = chance(m, y);
    return p > q || (p == q && (m->b->taken[x] < m->b->taken[y] || (m->b->taken[x] == m->b->taken[y] && x < y)));
}

static void sift_down(const merge *m, int at)
{
    int *h = m->b->heap;
    for (int child; (child = 2 * at + 1) < m->heap; at = child) {
        if (child + 1 < m->heap && before(m, h[child + 1], h[child])) child++;
        if (!before(m, h[child], h[at])) return;
        const int swap = h[at];
        h[at] = h[child];
        h[child] = swap;
    }
}

/* Writes (sequence depth + j - 1) for each draft token; returns their number. */
static int order_tokens(const wg_row_budget *b, const double *survival, const int *most, int n)
{
    merge m = { b, survival, 0 };
    int tokens = 0;
    for (int i = 0; i < n; i++) {
        b->taken[i] = 0;
        if (most[i] > 0) b->heap[m.heap++] = i;
    }
    for (int at = m.heap / 2 - 1; at >= 0; at--) sift_down(&m, at);
    while (m.heap > 0) {
        const int i = b->heap[0];
        b->order[tokens++] = i * b->depth + b->taken[i]++;
        if (b->taken[i] == most[i]) b->heap[0] = b->heap[--m.heap];
        sift_down(&m, 0);
    }
    return tokens;
}

static double step_cost(const wg_row_costs *c, int plain_rows, int drafted, int depth)
{
    const int rows = plain_rows + (int)ceil(drafted * c->width - 1e-9);
    return wg_row_costs_pass(c, rows) + depth * c->level + drafted * c->token + c->rest;
}

double wg_row_budget_share(const wg_row_budget *b, const wg_row_costs *costs, const double *survival, const int *most, int n,
                           int other, int *length)
{
    const int all = order_tokens(b, survival, most, n);
    double best = n / step_cost(costs, other + n, 0, 0);
    int depth = 0, tokens = 0;
    for (int d = 1; d <= b->depth; d++) {
        double yield = n;
        for (int i = 0, drafted = 0; i < all; i++) {
            if (b->order[i] % b->depth >= d) continue;
            drafted++;
            yield += survival[b->order[i]];
            const double rate = yield / step_cost(costs, other + n, drafted, d);
            if (rate > best) best = rate, depth = d, tokens = drafted;
        }
    }
    for (int i = 0; i < n; i++) length[i] = 0;
    for (int i = 0; tokens > 0; i++)
        if (b->order[i] % b->depth < depth) length[b->order[i] / b->depth]++, tokens--;
    return best;
}
