/* SPDX-License-Identifier: MIT
 * k-SEQ (SpecTr, Sun et al. 2023; METHODS B7), for k independent siblings.
 *
 * For rho in [1, k] let m(x) = min(q(x), p(x)/rho), b = sum m and A = 1 - (1 - b)^k. Accept the first x_i that passes a test of
 * probability min(1, p(x_i) / (rho q(x_i))) = m/q; when none passes, draw `next` from the residual p - m A/b.
 *
 * Theorem. A pass yields x with probability m(x)/b and some sibling passes with probability A, so accepted x has mass
 * m(x) A/b; the residual completes it to p. It is not negative when A <= rho b, because m <= p/rho: any such rho is lossless,
 * and the smallest accepts most (at least 1 - 1/e of the optimum; k = 1 gives rho = 1 and `rejection`). rho = k always will do
 * (Bernoulli). It is found by bisection to 2^-30; the upper end is used, so the bisection's error costs acceptance, not
 * exactness.
 *
 * FIXED siblings are no draws: the optimal rule for a set settles them. */
#include "kernels/mass.h"
#include "verify/rounds.h"
#include "verify/verify.h"
#include "verify/walk.h"

/* sum m, a mass. */
static double overlap(const double *p, const double *q, int n, double rho)
{
    wg_mass sum = 0;
    for (int i = 0; i < n;) {
        const int end = n - i < WG_MASS_PIECE ? n : i + WG_MASS_PIECE;
        uint64_t piece = 0;
        for (; i < end; i++) piece += wg_steps_of(p[i] < rho * q[i] ? p[i] / rho : q[i]);
        sum += piece;
    }
    return wg_mass_value(sum);
}

/* 1 - (1 - b)^k */
static double some_pass(double b, int k)
{
    double none = 1;
    for (int i = 0; i < k; i++) none *= 1 - b;
    return 1 - none;
}

static double smallest_rho(const double *p, const double *q, int n, int k)
{
    double lo = 1, hi = k;
    const double b = overlap(p, q, n, 1);
    if (some_pass(b, k) <= b) return 1;
    for (int i = 0; i < 30; i++) {
        const double rho = (lo + hi) / 2, at = overlap(p, q, n, rho);
        if (some_pass(at, k) <= rho * at) hi = rho;
        else lo = rho;
    }
    return hi;
}

static int settle(const void *opt, const wg_crossing *c, int32_t *next)
{
    const wg_tree *t = c->tree;
    const int V = c->p->vocab;
    if (t->law == WG_LAW_FIXED) return wg_settle_set(opt, c, next);
    int16_t child[WG_TREE_MAX];
    const int k = wg_crossing_children(c, child);
    if (k == 1) return wg_settle_rounds(c, 1, next);
    const wg_support s = wg_rows_support(c->p, c->prow); /* where p has mass; elsewhere nothing below has any */
    double *p = c->p->scratch, *q = p + V, *left = q + V;
    const double *all_p = wg_rows_dense(c->p, c->prow, p), *all_q = wg_rows_dense(c->q, t->qrow[child[0]], q);
    for (int i = 0; i < s.n; i++) { /* (in place where the row is a point: the support is the vocabulary then) */
        p[i] = all_p[wg_support_at(&s, i)];
        q[i] = all_q[wg_support_at(&s, i)];
    }
    const double rho = smallest_rho(p, q, s.n, k);
    for (int i = 0; i < k; i++) {
        const int32_t x = t->token[child[i]];
        if (wg_chance_ratio(c->chance, WG_DRAW_ACCEPT, child[i], wg_rows_prob(c->p, c->prow, x),
                            rho * wg_rows_prob(c->q, t->qrow[child[i]], x)))
            return child[i];
    }
    const double b = overlap(p, q, s.n, rho), share = b > 0 ? some_pass(b, k) / b : 0;
    for (int i = 0; i < s.n; i++) {
        const double kept = p[i] < rho * q[i] ? p[i] / rho : q[i], d = p[i] - kept * share;
        left[wg_support_at(&s, i)] = d > 0 ? d : 0;
    }
    *next = wg_next_of(c, left, wg_rows_sum(c->p, c->prow, left));
    return -1;
}

static void accept(const void *opt, const wg_tree *tree, const wg_rows *p, const wg_rows *q, const wg_chance *chance,
                   wg_path *out)
{
    wg_walk(settle, opt, tree, p, q, chance, out);
}

const wg_verifier_class wg_verifier_kseq = {
    .name = "kseq",
    .doc = "k independent siblings judged by one threshold: within 1 - 1/e of the optimum (SpecTr)",
    .test_options = (const char *const[]){ "", NULL },
    .laws = WG_LAW_FIXED | WG_LAW_IID,
    .lossless = true,
    .accept = accept,
    .reads_q = true,
    .device = WG_RULE_KSEQ,
};
