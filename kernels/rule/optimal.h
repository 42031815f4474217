/* SPDX-License-Identifier: MIT
 * Optimal selection among k independent siblings: accepts with probability alpha* (core/dist/optimal_acceptance.h), which no
 * lossless rule exceeds at a node. Like the importance-weighted rule of Khisti et al. 2025 it selects one draw and verifies
 * that draw by single-draft rejection; the selection here is exact for every k and costs one sort (methods.md, Optimal
 * selection).
 *
 * Select one of the siblings so that its law s serves p best (selection.h). Accept the selected x with probability min(1,
 * p(x)/s(x)); else draw `next` from norm((p - s)+). Both decisions are drawn as one.
 *
 * Theorem. Lossless, because it is rejection of a draw from s, with acceptance sum min(p, s) = alpha* by the choice of s.
 * One child: `rejection`. A fixed set is verified by topk's rule, which is optimal for it. Over several levels this is the
 * best of the rules that verify node by node; rules that look ahead (block, traversal, multipath) may keep more. */
#ifndef WG_KERNELS_RULE_OPTIMAL_H
#define WG_KERNELS_RULE_OPTIMAL_H

#include "kernels/rule/rounds.h"
#include "kernels/rule/selection.h"
#include "kernels/rule/topk.h"

/* One draw is its own selection: its law is q, and nothing needs to be sorted. The decision has the same address as for more
 * draws. */
WG_RULE int wg_optimal_one(const wg_rule_block *b, wg_node_view *v)
{
    const int child = v->first;
    const int32_t x = b->tree->token[child];
    const double p = wg_prob(v->p, x), q = wg_prob(wg_q(b, child), x), kept = !(q > 0) ? 0 : p < q ? p / q : 1;
    double *weight = b->state->weight;
    WG_SYNC(b);
    if (WG_LEADER(b)) {
        weight[0] = kept;
        weight[1] = 1 - kept;
    }
    WG_SYNC(b);
    if (wg_pick(b, v->node, weight, 2) == 0 && kept > 0) return child;
    return wg_stop_with(b, v, wg_rounds_left(b, v, wg_row_of_p(b, v->p), NULL, 1, child));
}

WG_RULE int wg_optimal_child(const wg_rule_block *b, wg_node_view *v)
{
    wg_rule_state *state = b->state;
    double *weight = state->weight;
    int k = 0;
    if (wg_law_is(b, WG_RULE_FIXED)) return wg_topk_child(b, v);
    if (wg_one_hot(v->p) >= 0) {
        v->next = wg_one_hot(v->p);
        return wg_child_of_token(b, v->node, v->next);
    }
    if (wg_child(b, v->node, v->first) < 0) return wg_optimal_one(b, v);
    WG_SYNC(b);
    for (int child = v->first; child >= 0; child = wg_child(b, v->node, child), k++)
        if (WG_LEADER(b)) state->draws[k] = child;
    const wg_selection s = wg_selection_open(b, v->p, wg_q(b, v->first), k, 1);
    const int n = wg_selection_among(b, &s, v->p);
    if (WG_LEADER(b)) {
        double rejected = 1;
        for (int i = 0; i < n; i++) {
            const wg_drawn *d = &state->drawn[i];
            const double p = wg_prob(v->p, b->tree->token[d->node]), law = wg_selection_law(&s, d->rank);
            weight[i] = p < law ? d->chance * (p / law) : d->chance;
            rejected -= weight[i];
        }
        weight[n] = wg_positive(rejected);
    }
    WG_SYNC(b);
    const int kept = wg_pick(b, v->node, weight, n + 1);
    if (kept < n && weight[kept] > 0) return state->drawn[kept].node;
    return wg_stop_with(b, v, wg_selection_left(b, &s, v->p));
}

WG_RULE void wg_verify_optimal(const wg_rule_block *b)
{
    wg_node_view v = wg_view(b, 0, 0);
    while (wg_advance(b, &v, v.first < 0 ? wg_stop(b, &v) : wg_optimal_child(b, &v)))
        ;
}

#endif
