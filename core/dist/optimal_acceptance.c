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

/* The same order for few ratios. */
static void sort_few(wg_ratio_test *a, int n)
{
    for (int i = 1; i < n; i++) {
        const wg_ratio_test x = a[i];
        int j = i;
        for (; j > 0 && a[j - 1].ratio > x.ratio; j--) a[j] = a[j - 1];
        a[j] = x;
    }
}

void wg_ratios_sort(wg_workspace *w, int n)
{
    wg_ratio_test *const sorted = (wg_ratio_test *)(void *)wg_work_row(w, WG_WORK_ORDER);
    wg_ratio_test *a = sorted, *b = (wg_ratio_test *)(void *)wg_work_row(w, WG_WORK_SORT);
    if (n <= FEW) {
        sort_few(a, n);
        return;
    }
    for (int digit = 0; digit < DIGITS; digit++)
        if (sort_digit(a, b, n, digit)) {
            wg_ratio_test *other = a;
            a = b;
            b = other;
        }
    if (a != sorted) memcpy(sorted, a, (size_t)n * sizeof *a);
}

int wg_ratios_order(wg_rows *p, int prow, wg_rows *q, int qrow, wg_workspace *w, const wg_ratio_test **out)
{
    wg_ratio_test *a = (wg_ratio_test *)(void *)wg_work_row(w, WG_WORK_ORDER);
    const double *pv = wg_rows_dense(p, prow, wg_work_row(w, WG_WORK_ONE_HOT_P));
    const double *qv = wg_rows_dense(q, qrow, wg_work_row(w, WG_WORK_ONE_HOT_Q));
    const wg_support drawable = wg_rows_support(q, qrow);
    int n = 0;
    for (int k = 0; k < drawable.n; k++) {
        const int32_t x = wg_support_at(&drawable, k);
        if (qv[x] > 0) a[n++] = (wg_ratio_test){ wg_ratio_of(pv[x], qv[x]), x };
    }
    *out = a;
    wg_ratios_sort(w, n);
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

/* The law of the number of tokens that have arrived by a time: p[j], the probability of j, for lo <= j <= hi, and p[k] of k or
 * more; dp[j], its derivative in the logarithm of the time. Outside lo..hi both are below NEGLIGIBLE and taken as 0. */
typedef struct arrivals {
    int k, lo, hi;
    double p[WG_TREE_MAX + 1], dp[WG_TREE_MAX + 1];
} arrivals;

static const double NEGLIGIBLE = 1e-24, TAIL = 1e-17;

/* Adds a token that has arrived with probability `here`, whose derivative is `change`. */
static inline void arrive(arrivals *a, double here, double change)
{
    const int k = a->k;
    if (a->hi < k && a->p[a->hi] * here > NEGLIGIBLE) a->hi++; /* whose numbers are 0 */
    if (a->hi == k && a->lo < k) {
        a->dp[k] += a->dp[k - 1] * here + a->p[k - 1] * change;
        a->p[k] += a->p[k - 1] * here;
    }
    for (int j = a->hi < k ? a->hi : k - 1; j > a->lo; j--) {
        a->dp[j] += (a->dp[j - 1] - a->dp[j]) * here + (a->p[j - 1] - a->p[j]) * change;
        a->p[j] += (a->p[j - 1] - a->p[j]) * here;
    }
    if (a->lo == k) return;
    a->dp[a->lo] -= a->dp[a->lo] * here + a->p[a->lo] * change;
    a->p[a->lo] -= a->p[a->lo] * here;
    while (a->lo < a->hi && a->p[a->lo] < NEGLIGIBLE && fabs(a->dp[a->lo]) < NEGLIGIBLE) a->lo++;
}

/* Adds one point of the integral, of weight h, to inside[i] of every prefix. Which: < 0 when almost surely fewer than k tokens
 * have arrived by then, > 0 when almost surely k have. */
static int add_point(double s, double h, int k, const double *qv, const double *outside, double *inside, int n)
{
    const double t = exp(s);
    arrivals a = { .k = k, .p = { 1 } };
    double fewer = 0;
    for (int i = 0; i < n; i++) {
        const double here = -expm1(-qv[i] * t);
        arrive(&a, here, qv[i] * t * (1 - here));
        if (a.hi == k) inside[i] += h * a.dp[k] * exp(-outside[i] * t);
    }
    for (int j = a.lo; j <= a.hi && j < k; j++) fewer += a.p[j];
    return a.hi < k || a.p[k] < TAIL ? -1 : fewer < TAIL;
}

/* The logarithm of a time by which about k tokens have arrived in the mean; k < n. */
static double log_time_of(int k, const double *qv, int n)
{
    double lo = -40, hi = 705;
    while (hi - lo > 0.25) {
        const double s = (lo + hi) / 2, t = exp(s);
        double sum = 0;
        for (int i = 0; i < n; i++) sum -= expm1(-qv[i] * t);
        *(sum < k ? &lo : &hi) = s;
    }
    return lo;
}

/* Token x arrives at an Exp(q(x)) time; the first k to arrive are the siblings. All are in S when no outsider has arrived by
 * the time T of the kth arrival in S: Pr = E[exp(-(1 - q(S)) T)], an integral over s = log T, whose density is that of a number
 * of independent arrivals (updated token by token, with its derivative). Trapezoidal sums of step h err by the Fourier
 * transform of the integrand at 2 pi / h: like |Gamma(k + 2 pi i / h)| / Gamma(k) for the kth of many arrivals, below 1e-11 for
 * these steps. They run over the times between which the kth token of all arrives but for a probability of TAIL: k in S have
 * then arrived or an outsider has. */
static double more_without_replacement(wg_rows *p, int prow, wg_rows *q, int qrow, const wg_ratio_test *order, int n, int k,
                                       wg_workspace *w)
{
    wg_assert(k < WG_TREE_MAX);
    const double h = fmin(0.25, 0.55 / sqrt(k));
    /* q in the order; q outside the prefix 0..i; Pr(all siblings in it) */
    double *qv = wg_work_row(w, WG_WORK_ONE_HOT_P), *outside = wg_work_row(w, WG_WORK_REST),
           *inside = wg_work_row(w, WG_WORK_DRAWN);
    double rest = 0, worst = 0, ps = 0;
    for (int i = n - 1; i >= 0; i--) {
        qv[i] = wg_rows_prob(q, qrow, order[i].token);
        outside[i] = rest;
        inside[i] = 0;
        rest += qv[i];
    }
    const double middle = log_time_of(k, qv, n);
    for (double s = middle; s < 708 && add_point(s, h, k, qv, outside, inside, n) <= 0;) s += h;
    for (double s = middle - h; s > -708 && add_point(s, h, k, qv, outside, inside, n) >= 0;) s -= h;
    if (!(fabs(inside[n - 1] - 1) < 1e-9)) return NAN; /* the law of T: its sum is 1 */
    for (int i = 0; i < n; i++) {
        ps += wg_rows_prob(p, prow, order[i].token);
        const double excess = inside[i] - ps;
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
    return more_without_replacement(p, prow, q, qrow, order, n, k, w);
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
    if (t->qrow[first] < 0) return NAN;
    if (t->law == WG_LAW_IID) return wg_optimal_iid(p, prow, q, t->qrow[first], k, w);
    return wg_optimal_without_replacement(p, prow, q, t->qrow[first], k, w);
}
