/* SPDX-License-Identifier: MIT
 * Typical acceptance (Medusa, Cai et al. 2024). LOSSY: a draft token is accepted when its probability exceeds
 * an entropy-dependent threshold, p(x) > min(epsilon, delta exp(-H(p))). The longest accepted path wins, among equals the
 * one with the larger product of p, then the first; `next` is drawn from p there. No bound on the distance from p is
 * claimed. */
#ifndef WG_KERNELS_RULE_TYPICAL_H
#define WG_KERNELS_RULE_TYPICAL_H

#include "kernels/exp.h"
#include "kernels/ln.h"
#include "kernels/rule/rule_passes.h"

/* H(p) = -sum p log p, in nats: a mass, as -p log p is at most 1/e. */
WG_RULE double wg_typical_entropy(const wg_rule_block *b, wg_dist p)
{
    if (wg_one_hot(p) >= 0) return 0;
    const wg_tokens t = wg_tokens_of(b, p);
    const double *of = wg_row_of_p(b, p);
    wg_mass mine = 0;
    WG_FOR_TOKENS(t, i) if (of[i] > 0) mine += wg_steps_of(of[i] * -wg_log64_of(of[i]));
    return wg_total(b, mine);
}

WG_RULE double wg_typical_threshold(const wg_rule_block *b, int node, double epsilon, double delta)
{
    const double unsure = delta * wg_exp64_of(-wg_typical_entropy(b, wg_p(b, node)));
    return unsure < epsilon ? unsure : epsilon;
}

WG_RULE void wg_verify_typical(const wg_rule_block *b, double epsilon, double delta)
{
    double *likely = b->state->joint_ratio; /* product of p on the path; -1: not accepted */
    double *threshold = b->state->a;
    int best = 0, depth = 0;
    for (int i = 0; i < b->tree->n; i++) {
        const int parent = b->tree->parent[i];
        const double px = i ? wg_prob(wg_p(b, parent), b->tree->token[i]) : 1;
        const double product = !i ? 1 : likely[parent] >= 0 && px > threshold[parent] ? likely[parent] * px : -1;
        const bool asked = product >= 0 && (!i || wg_child(b, i, i) >= 0);
        const double bar = asked ? wg_typical_threshold(b, i, epsilon, delta) : 0;
        if (WG_LEADER(b)) {
            likely[i] = product;
            threshold[i] = bar;
        }
        WG_SYNC(b);
        const int deep = product >= 0 ? wg_walk_depth(b->tree->parent, i) : -1;
        if (deep < depth || (deep == depth && !(product > likely[best]))) continue;
        best = i;
        depth = deep;
    }
    wg_path_to(b, best, depth, wg_next_p(b, wg_p(b, best), depth));
}

#endif
