/* SPDX-License-Identifier: MIT
 * Relaxed acceptance (TensorRT-LLM's for thinking phases). LOSSY: a child is kept when it is among the target's
 * `top` most probable tokens and has at least `factor` of the most probable one's probability; among several, the most
 * probable. `next` is drawn from p. */
#ifndef WG_KERNELS_RULE_RELAXED_H
#define WG_KERNELS_RULE_RELAXED_H

#include "kernels/rule/rule_passes.h"

/* The number of tokens before x, which has mass, in the order of p descending, ids ascending. */
WG_RULE int wg_relaxed_rank(const wg_rule_block *b, wg_dist p, int32_t x)
{
    const double px = wg_prob(p, x);
    const wg_tokens t = wg_tokens_of(b, p);
    int before = 0;
    if (wg_one_hot(p) >= 0) return 0;
    const double *of = wg_row_of_p(b, p);
    WG_FOR_TOKENS(t, i) before += of[i] > px || (of[i] == px && i < x);
    return wg_count(b, before);
}

WG_RULE int wg_relaxed_child(const wg_rule_block *b, wg_node_view *v, int top, double factor)
{
    const double enough = wg_prob(v->p, wg_argmax(b, v->p)) * factor;
    double most = 0;
    int best = -1;
    for (int child = v->first; child >= 0; child = wg_child(b, v->node, child)) {
        const int32_t x = b->tree->token[child];
        const double px = wg_prob(v->p, x);
        if (px <= most || px < enough || wg_relaxed_rank(b, v->p, x) >= top) continue;
        most = px;
        best = child;
    }
    return best < 0 ? wg_stop(b, v) : best;
}

WG_RULE void wg_verify_relaxed(const wg_rule_block *b, int top, double factor)
{
    wg_node_view v = wg_view(b, 0, 0);
    while (wg_advance(b, &v, v.first < 0 ? wg_stop(b, &v) : wg_relaxed_child(b, &v, top, factor)))
        ;
}

#endif
