/* SPDX-License-Identifier: MIT
 * Block verification of a chain (Sun et al. 2024, "Block Verification Accelerates Speculative Decoding"; METHODS B8).
 *
 * r_0 = 1, r_i = min(1, r_{i-1} p_i(x_i) / q_i(x_i)); with Z_i = sum_x (r_i p_{i+1}(x) - q_{i+1}(x))+ let
 * h_i = Z_i / (Z_i + 1 - r_i) for 0 < i < n and h_n = r_n. Accept the longest prefix x_1..x_k for which an independent test of
 * probability h_k succeeds (k = 0 always does), whatever the tests of shorter prefixes would say; then `next` is drawn from
 * norm((r_k p_{k+1} - q_{k+1})+), or from p_{n+1} when k = n.
 *
 * Theorem. The text has the law of p, and no rule that looks at the draft's own path emits more tokens in expectation. In
 * particular it keeps at least as many as `rejection`, which stops at the first failed test; stopping there while using h, or
 * using rejection's residual, is biased. One token: `rejection`. Temperature 0: `greedy`.
 *
 * The tests run from the longest prefix down, so only those that matter are drawn; and as h_k <= r_k, those that a bound on r_k
 * shows to fail need no row. A FIXED token is a draw from its point. */
#include "verify/block.h"

#include "kernels/mass.h"
#include "verify/verify.h"
#include "verify/walk.h"

/* (r p - q)+ after node i against the row its child was drawn from; into out when that is not NULL, where p
 * may have mass. Returns its mass. */
static double excess(const wg_tree *t, int i, double r, const wg_rows *p, const wg_rows *q, double *out)
{
    const int prow = t->row + i;
    if (t->law != WG_LAW_FIXED) return wg_rows_excess(p, prow, r, q, t->qrow[i + 1], out);
    const wg_support s = wg_rows_support(p, prow);
    const double *pv = wg_rows_dense(p, prow, p->scratch);
    wg_mass mass = 0;
    for (int k = 0; k < s.n; k++) {
        const int32_t x = wg_support_at(&s, k);
        const double d = x == t->token[i + 1] ? r * pv[x] - 1 : r * pv[x], part = d > 0 ? d : 0;
        if (out) out[x] = part;
        mass += wg_steps_of(part);
    }
    return wg_mass_value(mass);
}

/* p/q of a node times r, at most 1. */
static double times_ratio(double r, double p, double q)
{
    const double rp = r * p;
    return rp >= q ? rp > 0 : rp / q;
}

static double drawn_with(const wg_tree *t, const wg_rows *q, int i)
{
    return t->law == WG_LAW_FIXED ? 1 : wg_rows_prob(q, t->qrow[i], t->token[i]);
}

void wg_block_accept(const void *opt, const wg_tree *tree, const wg_rows *p, const wg_rows *q, const wg_chance *chance,
                     wg_path *out)
{
    (void)opt;
    const int n = tree->n - 1;
    double r[WG_TREE_MAX] = { 1 }, most[WG_TREE_MAX] = { 1 };
    int known = 0; /* r[0..known] are there */
    for (int i = 1; i <= n; i++) {
        const double m = times_ratio(most[i - 1], wg_rows_most(p, tree->row + i - 1, tree->token[i]), drawn_with(tree, q, i));
        most[i] = m < 1 ? m : 1;
    }
    int k = n;
    double mass = 0;
    for (; k > 0; k--) {
        if (wg_chance_fails(chance, WG_DRAW_ACCEPT, k, most[k])) continue; /* h_k <= r_k <= most[k] */
        for (; known < k; known++)
            r[known + 1] = times_ratio(r[known], wg_rows_prob(p, tree->row + known, tree->token[known + 1]),
                                       drawn_with(tree, q, known + 1));
        if (k < n) mass = excess(tree, k, r[k], p, q, NULL);
        const double num = k < n ? mass : r[n], den = k < n ? mass + (1 - r[k]) : 1;
        /* r = 1 and no excess: p = q from here on, to rounding; the longer prefix should have been kept. */
        if ((k < n && mass <= 0 && r[k] >= 1) || wg_chance_ratio(chance, WG_DRAW_ACCEPT, k, num, den)) break;
    }
    for (int i = 0; i <= k; i++) out->node[i] = (int16_t)i;
    out->n = k + 1;
    const wg_chance at = wg_chance_at(chance, k);
    const wg_crossing c = { tree, p, q, chance, &at, k, tree->row + k };
    if (k == n) out->next = wg_next(&c);
    else out->next = wg_next_of(&c, p->scratch, excess(tree, k, r[k], p, q, p->scratch));
}

const wg_verifier_class wg_verifier_block = {
    .name = "block",
    .doc = "accept a chain's prefix by its joint probability: never fewer tokens than rejection",
    .test_options = (const char *const[]){ "", NULL },
    .laws = WG_LAW_FIXED | WG_LAW_IID | WG_LAW_WITHOUT_REPLACEMENT,
    .chains = true,
    .lossless = true,
    .accept = wg_block_accept,
    .reads_q = true,
    .device = WG_RULE_BLOCK,
};
