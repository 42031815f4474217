/* SPDX-License-Identifier: MIT
 * Block verification of a chain (Sun et al. 2024, "Block Verification Accelerates Speculative Decoding").
 *
 * r_0 = 1, r_i = min(1, r_{i-1} p_i(x_i) / q_i(x_i)); with Z_i = sum_x (r_i p_{i+1}(x) - q_{i+1}(x))+ let h_i = Z_i / (Z_i +
 * 1 - r_i) for 0 < i < n and h_n = r_n. Accept the longest prefix x_1..x_k for which an independent test of probability h_k
 * succeeds (k = 0 always does), whatever the results of the tests of shorter prefixes; then draw `next` from norm((r_k
 * p_{k+1} - q_{k+1})+), or from p_{n+1} when k = n.
 *
 * Theorem. The text has the law of p, and no rule that looks at the draft's own path emits more tokens in expectation. In
 * particular it keeps at least as many as `rejection`, which stops at the first failed test; stopping there while using h,
 * or using rejection's residual, is biased. One token: `rejection`. Temperature 0: `greedy`.
 *
 * The tests run from the longest prefix down, so only decisive tests are drawn. As h_k <= r_k, a test that fails under a
 * bound on r_k needs no row. A fixed token is a draw from a one-hot row. */
#ifndef WG_KERNELS_RULE_BLOCK_H
#define WG_KERNELS_RULE_BLOCK_H

#include "kernels/rule/rule_passes.h"
#include "kernels/rule/rule_kinds.h"

/* The test of h_k, and of h_n where `whole`; left: Z_k. */
WG_RULE bool wg_block_keeps(const wg_rule_block *b, int index, bool whole, double r, double left)
{
    if (whole) return wg_accepts(b, index, r, 1);
    /* r = 1 and nothing left: p = q from here on, to rounding; the longer prefix should have been kept. */
    return (left <= 0 && r >= 1) || wg_accepts(b, index, left, left + (1 - r));
}

/* Z after node i, whose child was drawn from its q; keep: (r p - q)+ goes to b->rest. */
WG_RULE double wg_block_left(const wg_rule_block *b, int i, double r, bool keep)
{
    if (!wg_law_is(b, WG_RULE_FIXED)) return wg_excess(b, wg_p(b, i), r, wg_q(b, i + 1), keep);
    const int32_t token = b->tree->token[i + 1];
    const wg_tokens t = wg_tokens_of(b, wg_p(b, i));
    const wg_probs p = wg_whole_p(b, wg_p(b, i));
    wg_mass mine = 0;
    WG_FOR_TOKENS(t, x)
    {
        const double part = wg_positive(x == token ? r * p[x] - 1 : r * p[x]);
        if (keep) b->rest[x] = part;
        mine += wg_steps_of(part);
    }
    return wg_total(b, mine);
}

WG_RULE double wg_block_drawn_with(const wg_rule_block *b, int i)
{
    return wg_law_is(b, WG_RULE_FIXED) ? 1 : wg_prob(wg_q(b, i), b->tree->token[i]);
}

/* r_1 .. r_n by bounds on p. */
WG_RULE void wg_block_bounds(const wg_rule_block *b, double *r)
{
    r[0] = 1;
    for (int i = 1; i < b->tree->n; i++) {
        const double most = wg_bound(wg_p(b, i - 1), b->tree->token[i]);
        r[i] = wg_joint_ratio(r[i - 1] * most, wg_block_drawn_with(b, i));
        if (!(r[i] < 1)) r[i] = 1;
    }
}

WG_RULE void wg_verify_block(const wg_rule_block *b)
{
    const int n = b->tree->n - 1;
    double *r = b->state->joint_ratio;
    int exact = WG_BOUNDS_EXACT ? n : 0, k = n; /* r[0 .. exact] are no bounds */
    if (WG_LEADER(b)) wg_block_bounds(b, r);
    WG_SYNC(b);
    for (; k > 0; k--) {
        if (wg_fails(b, k, r[k])) continue; /* h_k <= r_k */
        for (; exact < k; exact++) {
            const double p = wg_prob(wg_p(b, exact), b->tree->token[exact + 1]);
            r[exact + 1] = wg_joint_ratio(r[exact] * p, wg_block_drawn_with(b, exact + 1));
        }
        if (wg_block_keeps(b, k, k == n, r[k], k < n ? wg_block_left(b, k, r[k], false) : 0)) break;
    }
    const wg_dist p = wg_p(b, k);
    double left = 0;
    if (k < n) left = wg_block_left(b, k, r[k], true);
    WG_SYNC(b);
    wg_path_to(b, k, k, k == n ? wg_next_p(b, p, k) : wg_next_of(b, p, k, left));
}

#endif
