/* SPDX-License-Identifier: MIT
 * See row_budget.h. */
#include "core/sched/row_budget.h"

#include <math.h>

#include "core/base/mem.h"

wg_status wg_row_budget_open(wg_row_budget *b, int sequences, int depth, wg_error *err)
{
    *b = (wg_row_budget){ .sequences = sequences, .depth = depth };
    const size_t n = (size_t)sequences, all = n * (size_t)depth;
    b->even = wg_calloc(all, sizeof *b->even);
    b->order = wg_calloc(all, sizeof *b->order);
    b->level = wg_calloc(all, sizeof *b->level);
    b->heap = wg_calloc(n, sizeof *b->heap);
    b->taken = wg_calloc(n, sizeof *b->taken);
    if (b->even && b->order && b->level && b->heap && b->taken) return WG_OK;
    wg_row_budget_close(b);
    return wg_nomem(err, all * sizeof(double) + 2 * (all + n) * sizeof(int), "the rows of a step");
}

void wg_row_budget_close(wg_row_budget *b)
{
    wg_free(b->even);
    wg_free(b->order);
    wg_free(b->level);
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
        b->level[tokens] = b->taken[i];
        b->order[tokens++] = i * b->depth + b->taken[i]++;
        if (b->taken[i] == most[i]) b->heap[0] = b->heap[--m.heap];
        sift_down(&m, 0);
    }
    return tokens;
}

static double step_cost(const wg_row_costs *c, int plain_rows, int drafted, int depth)
{
    const int rows = plain_rows + (c->width == 1 ? drafted : (int)ceil(drafted * c->width - 1e-9));
    return wg_row_costs_pass(c, rows) + depth * c->level + drafted * c->token + c->rest;
}

/* The choice that maximises tokens per time (price < 0), or tokens less time at a price. Plain decoding is among them, unless
 * there must be drafts. */
typedef struct choice {
    double value; /* what is maximised */
    int depth, tokens;
} choice;

static choice search(const wg_row_budget *b, const wg_row_costs *c, const double *survival, int all, int n, int other,
                     double price, bool drafts)
{
    const double plain = step_cost(c, other + n, 0, 0);
    choice best = { drafts ? -INFINITY : price < 0 ? n / plain : n - price * plain, 0, 0 };
    for (int d = 1; d <= b->depth; d++) {
        double yield = n;
        for (int i = 0, drafted = 0; i < all; i++) {
            if (b->level[i] >= d) continue;
            drafted++;
            yield += survival[b->order[i]];
            const double cost = step_cost(c, other + n, drafted, d);
            if (price < 0 ? yield <= best.value * cost : yield - price * cost <= best.value) continue;
            best = (choice){ price < 0 ? yield / cost : yield - price * cost, d, drafted };
        }
    }
    return best;
}

/* Into b->even: the slopes of the least concave curve above what the first 0, 1, .. tokens of a chain yield, less its fee. */
static void take_fees(const wg_row_budget *b, const double *survival, const double *fee, int n, double price)
{
    for (int i = 0; i < n; i++) {
        const double *s = survival + (size_t)i * (size_t)b->depth;
        double *even = b->even + (size_t)i * (size_t)b->depth;
        for (int from = 0, to; from < b->depth; from = to) {
            double sum = 0, slope = -INFINITY;
            for (int k = to = from; k < b->depth; k++) {
                sum += s[k] - (k == 0 ? price * fee[i] : 0);
                if (sum / (k - from + 1) > slope) slope = sum / (k - from + 1), to = k + 1;
            }
            for (int k = from; k < to; k++) even[k] = slope;
        }
    }
}

/* What lengths yield less than their shares of evened-out curves. */
static double evened(const wg_row_budget *b, const double *survival, const double *fee, const int *length, int n, double price)
{
    double less = 0;
    for (int i = 0; i < n; i++) {
        const size_t at = (size_t)i * (size_t)b->depth;
        for (int k = 0; k < length[i]; k++)
            less += b->even[at + (size_t)k] - survival[at + (size_t)k] + (k == 0 ? price * fee[i] : 0);
    }
    return less;
}

double wg_row_budget_share(const wg_row_budget *b, const wg_row_costs *costs, const wg_row_sequences *of, bool drafts,
                           int *length)
{
    const double *survival = of->survival, *fee = of->fee;
    const int n = of->n, other = of->other;
    bool fees = false;
    for (int i = 0; i < n && fee; i++) fees |= fee[i] > 0;
    int all = order_tokens(b, survival, of->most, n);
    choice best = search(b, costs, survival, all, n, 0, -1, false);
    const double price = best.value, plain = n - price * step_cost(costs, other + n, 0, 0);
    const double *worth = fees ? b->even : survival;
    if (fees) {
        take_fees(b, survival, fee, n, price);
        all = order_tokens(b, worth, of->most, n);
    }
    if (fees || other > 0 || drafts) best = search(b, costs, worth, all, n, other, price, drafts);
    else best.value = 0; /* tokens are worth their time, by the definition of the price */
    for (int i = 0; i < n; i++) length[i] = 0;
    for (int i = 0, left = best.tokens; left > 0; i++)
        if (b->level[i] < best.depth) length[b->order[i] / b->depth]++, left--;
    return best.value - plain - (fees ? evened(b, survival, fee, length, n, price) : 0);
}
