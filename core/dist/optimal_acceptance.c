/* SPDX-License-Identifier: MIT
 * The order of ratios and the optimum. Sums run in that order, so every machine has their bits. */
#include "core/dist/optimal_acceptance.h"

#include <math.h>
#include <string.h>

/* ---- the order: a stable radix sort of the ratios' bits (they are not negative, so their bits ascend with them) */

enum { DIGIT = 11, BUCKETS = 1 << DIGIT, DIGITS = 6, FEW = 48 };

static inline unsigned digit_of(double ratio, int digit)
{
    uint64_t bits;
    memcpy(&bits, &ratio, sizeof bits);
    return (unsigned)(bits >> digit * DIGIT) & (BUCKETS - 1);
}

/* One digit, from a to b; false: all were equal, and nothing was moved. */
static bool sort_digit(const wg_ratio_test *a, wg_ratio_test *b, int n, int digit)
{
    int start[BUCKETS] = { 0 };
    for (int i = 0; i < n; i++) start[digit_of(a[i].ratio, digit)]++;
    if (start[digit_of(a[0].ratio, digit)] == n) return false;
    for (int d = 0, sum = 0; d < BUCKETS; d++) {
        const int count = start[d];
        start[d] = sum;
        sum += count;
    }
    for (int i = 0; i < n; i++) b[start[digit_of(a[i].ratio, digit)]++] = a[i];
    return true;
}

/* The same order for a few. */
static void sort_few(wg_ratio_test *a, int n)
{
    for (int i = 1; i < n; i++) {
        const wg_ratio_test x = a[i];
        int j = i;
        for (; j > 0 && a[j - 1].ratio > x.ratio; j--) a[j] = a[j - 1];
        a[j] = x;
    }
}

int wg_ratios_order(wg_rows *p, int prow, wg_rows *q, int qrow, wg_workspace *w, const wg_ratio_test **out)
{
    wg_ratio_test *a = (wg_ratio_test *)(void *)wg_work_row(w, WG_WORK_ORDER);
    wg_ratio_test *b = (wg_ratio_test *)(void *)wg_work_row(w, WG_WORK_SORT);
    const double *pv = wg_rows_dense(p, prow, wg_work_row(w, WG_WORK_ONE_HOT_P));
    const double *qv = wg_rows_dense(q, qrow, wg_work_row(w, WG_WORK_ONE_HOT_Q));
    const wg_support drawable = wg_rows_support(q, qrow);
    int n = 0;
    for (int k = 0; k < drawable.n; k++) {
        const int32_t x = wg_support_at(&drawable, k);
        if (qv[x] > 0) a[n++] = (wg_ratio_test){ wg_ratio_of(pv[x], qv[x]), x };
    }
    *out = a;
    if (n <= FEW) {
        sort_few(a, n);
        return n;
    }
    for (int digit = 0; digit < DIGITS; digit++)
        if (sort_digit(a, b, n, digit)) {
            wg_ratio_test *other = a;
            a = b;
            b = other;
        }
    if (a != *out) memcpy(b, a, (size_t)n * sizeof *a); /* then b is the result's buffer */
    return n;
}

/* ---- the optimum */

double wg_optimal_iid(wg_rows *p, int prow, wg_rows *q, int qrow, int k, wg_workspace *w)
{
    if (k <= 1 || wg_rows_one_hot(q, qrow) >= 0) return wg_rows_overlap(p, prow, q, qrow);
    if (wg_rows_one_hot(p, prow) >= 0) return 1 - pow(1 - wg_rows_prob(q, qrow, p->point[prow]), k);
    const wg_ratio_test *order;
    const int n = wg_ratios_order(p, prow, q, qrow, w, &order);
    double worst = 0, ps = 0, qs = 0;
    for (int i = 0; i < n; i++) {
        ps += wg_rows_prob(p, prow, order[i].token);
        qs += wg_rows_prob(q, qrow, order[i].token);
        const double excess = pow(qs < 1 ? qs : 1, k) - ps;
        if (excess > worst) worst = excess;
    }
    return 1 - worst;
}

/* 1 - q(x), without cancellation for the one token that may have most of the mass */
static double others(wg_rows *q, int qrow, const wg_ratio_test *order, int n, int32_t x)
{
    const double qx = wg_rows_prob(q, qrow, x);
    double sum = 0;
    if (qx < 0.5) return 1 - qx;
    for (int i = 0; i < n; i++) sum += order[i].token == x ? 0 : wg_rows_prob(q, qrow, order[i].token);
    return sum;
}

/* Pr(the first two are both among order[0..i]) = q(S) A - B with A = sum q/(1-q), B = sum q^2/(1-q) over S. */
static double two_without_replacement(wg_rows *p, int prow, wg_rows *q, int qrow, const wg_ratio_test *order, int n)
{
    double worst = 0, ps = 0, qs = 0, a = 0, b = 0;
    for (int i = 0; i < n; i++) {
        const double qx = wg_rows_prob(q, qrow, order[i].token);
        const double odds = qx / others(q, qrow, order, n, order[i].token);
        ps += wg_rows_prob(p, prow, order[i].token);
        qs += qx;
        a += odds;
        b += qx * odds;
        const double excess = (i == n - 1 ? 1 : qs * a - b) - ps; /* the second draw is always one of the n */
        if (excess > worst) worst = excess;
    }
    return 1 - worst;
}

enum { MOST = 16 }; /* siblings of the integral */

/* Token x arrives at an Exp(q(x)) time; the first k to arrive are the siblings. All are in S when k of S have arrived by the
 * first outsider's time, which is Exp(1 - q(S)): an integral over t = e^s, whose trapezoidal sums converge like exp(-9.8/h).
 * For one t, the counts of arrivals (0 .. k-1, or k and more) are updated token by token. */
static double more_without_replacement(wg_rows *p, int prow, wg_rows *q, int qrow, const wg_ratio_test *order, int n, int k,
                                       wg_workspace *w)
{
    const double h = 1.0 / 3;
    /* q outside the prefix 0..i; Pr(all siblings in it) */
    double *outside = wg_work_row(w, WG_WORK_REST), *inside = wg_work_row(w, WG_WORK_DRAWN);
    double rest = 0, least = 1;
    for (int i = n - 1; i >= 0; i--) {
        outside[i] = rest;
        inside[i] = 0;
        if (rest > 1e-60 && rest < least) least = rest;
        rest += wg_rows_prob(q, qrow, order[i].token);
    }
    for (double s = -14; s < log(40 / least); s += h) {
        const double t = exp(s);
        double arrived[MOST + 1] = { 1 }; /* [j]: probability that j of the prefix have arrived by t; [k]: k or more */
        for (int i = 0; i < n; i++) {
            const double here = -expm1(-wg_rows_prob(q, qrow, order[i].token) * t);
            arrived[k] += arrived[k - 1] * here;
            for (int j = k - 1; j > 0; j--) arrived[j] += (arrived[j - 1] - arrived[j]) * here;
            arrived[0] -= arrived[0] * here;
            inside[i] += h * outside[i] * t * exp(-outside[i] * t) * arrived[k];
        }
    }
    double worst = 0, ps = 0;
    for (int i = 0; i < n; i++) {
        ps += wg_rows_prob(p, prow, order[i].token);
        const double excess = (outside[i] > 1e-60 ? inside[i] : i + 1 >= k) - ps;
        if (excess > worst) worst = excess;
    }
    return 1 - worst;
}

double wg_optimal_without_replacement(wg_rows *p, int prow, wg_rows *q, int qrow, int k, wg_workspace *w)
{
    if (k <= 1 || wg_rows_one_hot(q, qrow) >= 0) return wg_rows_overlap(p, prow, q, qrow);
    const wg_ratio_test *order;
    const int n = wg_ratios_order(p, prow, q, qrow, w, &order);
    if (k >= n) { /* everything that q can draw is drawn */
        double all = 0;
        for (int i = 0; i < n; i++) all += wg_rows_prob(p, prow, order[i].token);
        return all < 1 ? all : 1;
    }
    if (k == 2) return two_without_replacement(p, prow, q, qrow, order, n);
    return more_without_replacement(p, prow, q, qrow, order, n, k < MOST ? k : MOST, w);
}

double wg_optimal_alpha(const wg_tree *t, int node, wg_rows *p, wg_rows *q, wg_workspace *w)
{
    const int prow = t->row + node, first = wg_tree_child(t, node, node);
    int k = 0;
    double set = 0;
    for (int child = first; child >= 0; child = wg_tree_child(t, node, child), k++)
        if (wg_tree_find(t, node, t->token[child]) == child) set += wg_rows_prob(p, prow, t->token[child]);
    if (k == 0) return -1;
    if (t->law == WG_LAW_FIXED) return set < 1 ? set : 1;
    if (t->qrow[first] < 0) return -1;
    if (t->law == WG_LAW_IID) return wg_optimal_iid(p, prow, q, t->qrow[first], k, w);
    return wg_optimal_without_replacement(p, prow, q, t->qrow[first], k, w);
}
