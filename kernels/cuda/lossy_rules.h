/* SPDX-License-Identifier: MIT
 * The rules that keep what the target finds likely enough, on the device: verify/relaxed.c and verify/typical.c, whose words
 * these are. Included by settle.cu. */
#ifndef WG_KERNELS_CUDA_LOSSY_RULES_H
#define WG_KERNELS_CUDA_LOSSY_RULES_H

#include "kernels/cuda/rule_block.h"
#include "kernels/exp.h"
#include "kernels/ln.h"

/* ---- relaxed */

/* Tokens before x in the order of p descending, ids ascending. */
WG_DEVICE int better_than(const court *c, dist p, int x)
{
    int mine = 0;
    if (p.point >= 0) return x == p.point ? 0 : c->vocab;
    for (int i = (int)threadIdx.x; i < c->vocab; i += WG_BLOCK) mine += p.of[i] > p.of[x] || (p.of[i] == p.of[x] && i < x);
    return wg_block_count(c->b, mine);
}

WG_DEVICE int settle_relaxed(const court *c, const wg_rule *rule, int node, int depth, int *next)
{
    const wg_rule_tree *t = c->t;
    const dist p = row_p(c, node);
    const double enough = p[p.point >= 0 ? p.point : wg_block_argmax(c->b, p.of, c->vocab)] * rule->factor;
    double most = 0;
    int best = -1;
    for (int child = node; (child = child_after(t, node, child)) >= 0;) {
        const double px = p[t->token[child]];
        if (px <= most || px < enough || better_than(c, p, t->token[child]) >= rule->top) continue;
        most = px;
        best = child;
    }
    if (best < 0) *next = pick_next(c, node, depth);
    return best;
}

/* ---- typical */

struct surprise {
    const double *p;
    WG_DEVICE_MEMBER double operator()(int i) { return p[i] > 0 ? p[i] * -wg_log64_of(p[i]) : 0; }
};

WG_DEVICE double threshold(const court *c, const wg_rule *rule, int node)
{
    const dist p = row_p(c, node);
    surprise of = { p.of };
    const double entropy = p.point >= 0 ? 0 : wg_mass_value(wg_block_mass(c->b, c->vocab, of));
    const double unsure = rule->delta * wg_exp64_of(-entropy);
    return unsure < rule->epsilon ? unsure : rule->epsilon;
}

/* claim: the product of p on the path to a node, -1: not kept; a: its threshold. */
WG_DEVICE void settle_typical(const court *c, const wg_rule *rule)
{
    settle_room *s = c->s;
    const wg_rule_tree *t = c->t;
    double bar = threshold(c, rule, 0);
    int best = 0, depth = 0;
    if (threadIdx.x == 0) {
        s->claim[0] = 1;
        s->a[0] = bar;
    }
    __syncthreads();
    for (int i = 1; i < t->n; i++) {
        const int parent = t->parent[i];
        const double px = row_p(c, parent)[t->token[i]];
        const double likely = s->claim[parent] >= 0 && px > s->a[parent] ? s->claim[parent] * px : -1;
        bar = likely >= 0 && child_after(t, i, i) >= 0 ? threshold(c, rule, i) : 0;
        if (threadIdx.x == 0) {
            s->claim[i] = likely;
            s->a[i] = bar;
        }
        __syncthreads();
        const int deep = depth_of(t, i);
        if (likely < 0 || deep < depth || (deep == depth && !(likely > s->claim[best]))) continue;
        best = i;
        depth = deep;
    }
    give_path(c, best, pick_next(c, best, depth));
}

#endif
