/* SPDX-License-Identifier: MIT
 * The closed forms and the renewal chain (exact.h). test_exact compares them with an enumeration of the rules' code. */
#include "lab/exact.h"

#include <math.h>

#include "verify/verify.h"

const wg_exact_rule wg_exact_rules[WG_EXACT_FORMS] = {
    [WG_EXACT_MATCH] = { "match", "iid", 0 },
    [WG_EXACT_REJECTION] = { "rejection", "iid", 0 },
    [WG_EXACT_KSEQ] = { "kseq", "iid", 0 },
    [WG_EXACT_OPTIMAL] = { "optimal", "iid", 0 },
    [WG_EXACT_WITHOUT] = { "without_replacement", "without_replacement", 2 },
    [WG_EXACT_TOPK] = { "topk", "fixed", 0 },
    [WG_EXACT_COUPLED] = { "coupled", "coupled", 1 },
    [WG_EXACT_BLOCK] = { "block", "iid", 1 },
};

/* ---- one position ------------------------------------------------------------------------------------------------ */

static double min(double a, double b) { return a < b ? a : b; }

/* Rejection in rounds; r stays unnormalised, with its mass in a separate variable. */
static double rejection(int k, const double *p, const double *q, int n, double *r, int32_t y)
{
    double mass = 1, reached = 1, kept = 0;
    for (int x = 0; x < n; x++) r[x] = p[x];
    for (int i = 0; i < k && reached > 0; i++) {
        double b = 0, left = 0;
        for (int x = 0; x < n; x++) b += min(r[x] / mass, q[x]);
        kept += reached * min(r[y] / mass, q[y]);
        reached *= b < 1 ? 1 - b : 0;
        for (int x = 0; x < n; x++) {
            const double d = r[x] - mass * q[x];
            left += r[x] = d > 0 ? d : 0;
        }
        if (!(left > 0)) break;
        mass = left;
    }
    return kept / p[y];
}

/* At most two draws, the second without the first token: r_2 does not depend on which was rejected. */
static double without_replacement(int k, const double *p, const double *q, int n, int32_t y)
{
    const double first = min(p[y], q[y]) / p[y];
    double mass = 0, second = 0;
    if (k < 2) return first;
    for (int x = 0; x < n; x++) mass += p[x] > q[x] ? p[x] - q[x] : 0;
    if (!(mass > 0) || !(p[y] > q[y])) return first;
    const double r = (p[y] - q[y]) / mass;
    for (int x = 0; x < n; x++) {
        if (x == y || !(q[x] > p[x])) continue;
        second += (q[x] - p[x]) * (q[x] < 1 ? min(r, q[y] / (1 - q[x])) : 0);
    }
    return first + second / p[y];
}

static double some_pass(double b, int k) { return 1 - pow(1 - b, k); }

static double overlap(const double *p, const double *q, int n, double rho)
{
    double sum = 0;
    for (int x = 0; x < n; x++) sum += min(p[x] / rho, q[x]);
    return sum;
}

/* The smallest rho with A <= rho b, as the rule finds it. */
static double kseq(int k, const double *p, const double *q, int n, int32_t y)
{
    double lo = 1, hi = k, b = overlap(p, q, n, 1);
    if (k == 1 || some_pass(b, k) <= b) hi = 1;
    for (int i = 0; i < 30 && hi > 1; i++) {
        const double rho = (lo + hi) / 2, at = overlap(p, q, n, rho);
        if (some_pass(at, k) <= rho * at) hi = rho;
        else lo = rho;
    }
    b = overlap(p, q, n, hi);
    return b > 0 ? min(p[y] / hi, q[y]) * some_pass(b, k) / b / p[y] : 0;
}

static double optimal(int k, wg_rows *p, int prow, wg_rows *q, int qrow, int32_t y, wg_workspace *work)
{
    const double py = wg_rows_prob(p, prow, y);
    if (wg_rows_one_hot(p, prow) >= 0) return 1 - pow(1 - wg_rows_prob(q, qrow, y), k);
    if (k == 1 || wg_rows_one_hot(q, qrow) >= 0) return min(1, wg_rows_prob(q, qrow, y) / py);
    return min(1, wg_optimal_law(p, prow, q, qrow, k, y, work) / py);
}

/* Whether y is among the k most probable tokens, the smaller id first among equals. */
static bool is_top(int k, const double *q, int n, int32_t y)
{
    int before = 0;
    if (!(q[y] > 0)) return false;
    for (int x = 0; x < n; x++) before += q[x] > q[y] || (q[x] == q[y] && x < y);
    return before < k;
}

static double coupled(const double *p, const double *q, int n, int32_t y)
{
    double sum = 0;
    if (!(q[y] > 0)) return 0;
    for (int x = 0; x < n; x++) {
        const double a = p[x] / p[y], b = q[x] / q[y];
        sum += a > b ? a : b;
    }
    return 1 / sum / p[y];
}

double wg_exact_accept(wg_exact_form form, int k, wg_rows *p, int prow, wg_rows *q, int qrow, int32_t y, wg_workspace *work)
{
    const int V = p->vocab;
    if (form == WG_EXACT_OPTIMAL) return optimal(k, p, prow, q, qrow, y, work);
    const double py = wg_rows_prob(p, prow, y), qy = wg_rows_prob(q, qrow, y);
    if (form == WG_EXACT_MATCH) return 1 - pow(1 - qy, k);
    if (form == WG_EXACT_BLOCK) return qy / py;
    if (form == WG_EXACT_REJECTION && k == 1) return min(1, qy / py);
    const double *pv = wg_rows_dense(p, prow, wg_work_row(work, WG_WORK_ONE_HOT_P));
    const double *qv = wg_rows_dense(q, qrow, wg_work_row(work, WG_WORK_ONE_HOT_Q));
    switch (form) {
    case WG_EXACT_REJECTION: return rejection(k, pv, qv, V, wg_work_row(work, WG_WORK_REST), y);
    case WG_EXACT_KSEQ: return kseq(k, pv, qv, V, y);
    case WG_EXACT_WITHOUT: return without_replacement(k, pv, qv, V, y);
    case WG_EXACT_TOPK: return is_top(k, qv, V, y);
    default: return coupled(pv, qv, V, y);
    }
}

/* ---- the chain --------------------------------------------------------------------------------------------------- */

double wg_exact_rounds(bool block, const double *const *of, int depth, int n, double *rounds)
{
    rounds[n] = 0;
    for (int s = n - 1; s >= 0; s--) {
        double survives = 1, product = 1, r = 1, expected = 1;
        int l = 0; /* accepted tokens on which the recursion is conditioned; `survives`: their probability */
        for (; l < depth && s + l + 1 < n && survives > 0; l++) {
            const double value = of[l][s + l];
            double next = survives * value;
            if (block) {
                product *= value;
                r = value > 0 ? min(1, r / value) : 0;
                next = r * product;
            }
            if (next > survives) next = survives; /* rounding */
            expected += (survives - next) * rounds[s + l + 1];
            survives = next;
        }
        rounds[s] = expected + survives * rounds[s + l + 1 < n ? s + l + 1 : n];
    }
    return rounds[0];
}

double wg_exact_rounds_fixed(const int *kept, int depth, int n, double *rounds)
{
    rounds[n] = 0;
    for (int s = n - 1; s >= 0; s--) {
        const int a = kept[s] < depth ? kept[s] : depth, to = s + a + 1;
        rounds[s] = 1 + rounds[to < n ? to : n];
    }
    return rounds[0];
}
