/* SPDX-License-Identifier: MIT
 * A set of children, one uniform for a node (SGLang's tree_speculative_sampling_target_only at thresholds 1; EAGLE-2's
 * evaluate_posterior has the same law in rounds). Walk along the distinct children adding up p; go to the first at
 * which the sum passes the uniform; past all of them, `next` is drawn from p without them.
 *
 * Theorem. Given the tree, the emitted token is x with probability p(x): a child by its own share of the uniform, another by
 * (1 - p(C)) p(x) / (1 - p(C)). q is not used, so this holds for any law of the siblings that has not seen this step's ACCEPT
 * draws. Acceptance is p(C), the optimum for a set that is a function of the prefix; for sampled siblings `rejection` and its
 * kin accept more. Duplicates count once (counting them twice is the classic bias, methods.md, Arithmetic). */
#ifndef WG_KERNELS_RULE_TOPK_H
#define WG_KERNELS_RULE_TOPK_H

#include "kernels/rule/rule_passes.h"

WG_RULE int wg_topk_child(const wg_rule_block *b, wg_node_view *v)
{
    double *weight = b->state->weight, rest = 1;
    int k = 0;
    WG_SYNC(b);
    for (int child = v->first; child >= 0; child = wg_child(b, v->node, child), k++) {
        const int32_t x = b->tree->token[child];
        const double w = wg_child_of_token(b, v->node, x) == child ? wg_prob(v->p, x) : 0;
        if (WG_LEADER(b)) weight[k] = w;
        rest -= w;
    }
    if (WG_LEADER(b)) weight[k] = wg_positive(rest);
    WG_SYNC(b);
    const int kept = wg_pick(b, v->node, weight, k + 1);
    if (kept < k && weight[kept] > 0) return wg_nth_child(b, v->node, kept);
    if (wg_one_hot(v->p) >= 0) return wg_stop(b, v); /* no child is its token */
    const wg_tokens t = wg_tokens_of(b, v->p);
    const double *p = wg_row_of_p(b, v->p);
    WG_FOR_TOKENS(t, x) b->rest[x] = p[x];
    WG_SYNC(b);
    for (int child = v->first; child >= 0 && WG_LEADER(b); child = wg_child(b, v->node, child))
        b->rest[b->tree->token[child]] = 0;
    WG_SYNC(b);
    return wg_stop_with(b, v, wg_sum(b, v->p, b->rest));
}

WG_RULE void wg_verify_topk(const wg_rule_block *b)
{
    wg_node_view v = wg_view(b, 0, 0);
    while (wg_advance(b, &v, v.first < 0 ? wg_stop(b, &v) : wg_topk_child(b, &v)))
        ;
}

#endif
