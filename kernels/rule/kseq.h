/* SPDX-License-Identifier: MIT
 * k-SEQ (SpecTr, Sun et al. 2023), for k independent siblings.
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
 * Fixed siblings are no draws: the rule for a set (topk.h) is optimal for them. */
#ifndef WG_KERNELS_RULE_KSEQ_H
#define WG_KERNELS_RULE_KSEQ_H

#include "kernels/rule/rounds.h"
#include "kernels/rule/topk.h"

WG_RULE double wg_kseq_m(double p, double q, double rho) { return p < rho * q ? p / rho : q; }

/* b = sum m, over the n tokens of a pair of rows (wg_row_pair: each side's; pair->p[i], pair->q[i]). */
WG_RULE double wg_kseq_overlap(const wg_rule_block *b, const wg_row_pair *pair, double rho)
{
    wg_mass mine = 0;
    WG_ADD_MASS(mine, pair->n, i, wg_kseq_m(pair->p[i], pair->q[i], rho));
    return wg_total(b, mine);
}

/* A = 1 - (1 - b)^k */
WG_RULE double wg_kseq_some_pass(double b, int k)
{
    double none = 1;
    for (int i = 0; i < k; i++) none *= 1 - b;
    return 1 - none;
}

WG_RULE double wg_kseq_smallest_rho(const wg_rule_block *b, const wg_row_pair *pair, int k)
{
    double lo = 1, hi = k;
    const double at_1 = wg_kseq_overlap(b, pair, 1);
    if (wg_kseq_some_pass(at_1, k) <= at_1) return 1;
    for (int i = 0; i < 30; i++) {
        const double rho = (lo + hi) / 2, at = wg_kseq_overlap(b, pair, rho);
        if (wg_kseq_some_pass(at, k) <= rho * at) hi = rho;
        else lo = rho;
    }
    return hi;
}

WG_RULE int wg_kseq_child(const wg_rule_block *b, wg_node_view *v)
{
    if (wg_law_is(b, WG_RULE_FIXED)) return wg_topk_child(b, v);
    int k = 0;
    for (int child = v->first; child >= 0; child = wg_child(b, v->node, child)) k++;
    if (k == 1) return wg_rounds_child(b, v, 1);
    const wg_row_pair pair = wg_row_pair_of(b, v->p, wg_q(b, v->first)); /* where p has mass; elsewhere every term is 0 */
    const double rho = wg_kseq_smallest_rho(b, &pair, k);
    for (int child = v->first; child >= 0; child = wg_child(b, v->node, child)) {
        const int32_t x = b->tree->token[child];
        if (wg_accepts(b, child, wg_prob(v->p, x), rho * wg_prob(wg_q(b, child), x))) return child;
    }
    const double overlap = wg_kseq_overlap(b, &pair, rho), share = overlap > 0 ? wg_kseq_some_pass(overlap, k) / overlap : 0;
    WG_FOR_PART(pair.n, i)
    {
        const double d = pair.p[i] - wg_kseq_m(pair.p[i], pair.q[i], rho) * share;
        b->rest[wg_row_pair_token(&pair, i)] = wg_positive(d);
    }
    WG_SYNC(b);
    return wg_stop_with(b, v, wg_sum(b, v->p, b->rest));
}

WG_RULE void wg_verify_kseq(const wg_rule_block *b)
{
    wg_node_view v = wg_view(b, 0, 0);
    while (wg_advance(b, &v, v.first < 0 ? wg_stop(b, &v) : wg_kseq_child(b, &v)))
        ;
}

#endif
