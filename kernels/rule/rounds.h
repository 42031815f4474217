/* SPDX-License-Identifier: MIT
 * Rejection sampling in rounds, one sibling after the other: `rejection` (speculative sampling: Leviathan et al. 2023, Chen
 * et al. 2023; on trees SpecInfer, Miao et al. 2024), `without_replacement` (recursive speculative
 * decoding, Jeon et al. 2024; Sequoia, Chen et al. 2024) and `lenience` (methods.md, Lossy rules).
 *
 * A rejected sibling leaves the residual distribution r_(i+1) = norm((r_i - q_i)+).
 *
 * At a node let r_1 = p, and q_i the law of the ith child given those before it: fixed: the one-hot law at it; iid: q;
 * without replacement: q without the earlier siblings, normalised. Accept x_i with probability min(1, r_i(x_i) / (l
 * q_i(x_i))) and go there; else r_{i+1} = norm((r_i - l q_i)+). When no child is left, draw `next` from the last r. l is 1
 * except for lenience.
 *
 * Theorem (l = 1). If each x_i ~ q_i given the prefix and the siblings before it, and the decisions are independent of these
 * draws, the emitted text has exactly the law of p: accepted x has mass min(r_i, q_i), which r_{i+1} completes to r_i; by
 * induction over siblings, then over depth. A child that is a function of the prefix (law fixed) is a draw from the one-hot
 * law at it: it is accepted with probability r(x), and a rejection removes x from r. One child: the optimal token-wise rule.
 *
 * r and q_i are kept unnormalised with their masses beside them, so no test divides by a mass that may be tiny:
 * accept when u * l q_i(x) * mass(r) < r(x) * mass(q_i). Where q has no mass left for another sibling a drafter must
 * stop; a sibling that it proposes nevertheless is rejected and subtracts nothing. */
#ifndef WG_KERNELS_RULE_ROUNDS_H
#define WG_KERNELS_RULE_ROUNDS_H

#include "kernels/rule/rule_passes.h"
#include "kernels/rule/rule_kinds.h"

/* (r - less q_i)+ into b->rest; old: r, and drawn: q_i in b->drawn, or NULL: its row of q. Returns the mass of
 * the result if there is another child, else 1 if the mass is positive, else 0. */
WG_RULE double wg_rounds_left(const wg_rule_block *b, const wg_node_view *v, const double *old, const double *drawn,
                              double less, int child)
{
    const wg_tokens t = wg_tokens_of(b, v->p);
    const int32_t token = b->tree->token[child];
    bool any = false;
    WG_SYNC(b);
    if (wg_law_is(b, WG_RULE_FIXED)) {
        WG_FOR_TOKENS(t, x)
        {
            const double d = x == token ? old[x] - less : old[x];
            any |= d > 0;
            b->rest[x] = wg_positive(d);
        }
    } else {
        const wg_probs q = drawn ? wg_probs_of(drawn) : wg_whole_q(b, wg_q(b, child));
        WG_FOR_TOKENS(t, x)
        {
            const double d = old[x] - less * q[x];
            any |= d > 0;
            b->rest[x] = wg_positive(d);
        }
    }
    WG_SYNC(b);
    return wg_child(b, v->node, child) < 0 ? (double)wg_any(b, any) : wg_sum(b, v->p, b->rest);
}

WG_RULE int wg_rounds_child(const wg_rule_block *b, wg_node_view *v, double lenience)
{
    const bool fixed = wg_law_is(b, WG_RULE_FIXED);
    const double *r = NULL; /* NULL: p */
    double mass = 1;        /* of r */
    for (int child = v->first; child >= 0; child = wg_child(b, v->node, child)) {
        const int32_t x = b->tree->token[child];
        const double px = wg_prob(v->p, x), rx = r && px > 0 ? r[x] : px;
        const double *drawn = wg_law_is(b, WG_RULE_WITHOUT_REPLACEMENT) && child != v->first ? b->drawn : NULL;
        if (drawn) wg_q_without(b, wg_q(b, child), v->node, child);
        const double drawable = drawn ? wg_sum(b, wg_q(b, child), drawn) : 1;
        const double qx = fixed ? 1 : drawn ? drawn[x] : wg_prob(wg_q(b, child), x);
        if (wg_accepts(b, child, rx * drawable, mass * lenience * qx)) return child;
        if (wg_one_hot(v->p) >= 0) continue; /* the residual of a one-hot p whose token the sibling misses is p */
        mass = wg_rounds_left(b, v, r ? r : wg_row_of_p(b, v->p), drawn, drawable > 0 ? mass * lenience / drawable : 0, child);
        r = b->rest;
    }
    return r ? wg_stop_with(b, v, mass) : wg_stop(b, v);
}

WG_RULE void wg_verify_rounds(const wg_rule_block *b, double lenience)
{
    wg_node_view v = wg_view(b, 0, 0);
    while (wg_advance(b, &v, v.first < 0 ? wg_stop(b, &v) : wg_rounds_child(b, &v, lenience)))
        ;
}

#endif
