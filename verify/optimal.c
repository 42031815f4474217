/* SPDX-License-Identifier: MIT
 * Optimal selection among k independent siblings: accepts with probability alpha* (core/dist/optimal_acceptance.h), which no lossless
 * rule exceeds at a node. Like the importance-weighted rule of Khisti et al. 2025 it selects one draw and then settles that by
 * single-draft rejection; the selection here is exact for every k and costs one sort (METHODS B10).
 *
 * Select one of the siblings so that its law s serves p best (selection.h: which s, and how). Accept the selected x with
 * probability min(1, p(x)/s(x)); else `next` is drawn from norm((p - s)+). Both decisions are drawn as one.
 *
 * Theorem. Lossless, because it is rejection of a draw from s, with acceptance sum min(p, s) = alpha* by the choice of s. One
 * child: `rejection`. A FIXED set is settled by topk's rule, which is optimal for it. Over several levels this is the best of
 * the rules that settle node by node; rules that look ahead (block, traversal, multipath) may still keep more. */
#include "verify/selection.h"
#include "verify/verify.h"
#include "verify/walk.h"

/* One draw is its own selection: its law is q, and nothing needs to be sorted. The decision is drawn where it is for more. */
static int settle_one(const wg_crossing *c, int child, int32_t *next)
{
    const int qrow = c->tree->qrow[child];
    const int32_t x = c->tree->token[child];
    const double p = wg_rows_prob(c->p, c->prow, x), q = wg_rows_prob(c->q, qrow, x);
    const double kept = !(q > 0) ? 0 : p < q ? p / q : 1, weight[2] = { kept, 1 - kept };
    if (wg_chance_pick(c->chance, WG_DRAW_ACCEPT, c->node, weight, 2) == 0 && kept > 0) return child;
    *next = wg_rows_pick_residual(c->p, c->prow, c->q, qrow, c->at, WG_DRAW_NEXT, 0);
    return -1;
}

static int settle(const void *opt, const wg_crossing *c, int32_t *next)
{
    const wg_tree *t = c->tree;
    if (t->law == WG_LAW_FIXED) return wg_settle_set(opt, c, next);
    if (wg_rows_point(c->p, c->prow) >= 0) {
        *next = c->p->point[c->prow];
        return wg_tree_find(t, c->node, *next);
    }
    int16_t child[WG_TREE_MAX];
    double weight[WG_TREE_MAX] = { 0 }, rejected = 1;
    wg_drawn drawn[WG_TREE_MAX];
    wg_selection s;
    const int k = wg_crossing_children(c, child);
    if (k == 1) return settle_one(c, child[0], next);
    wg_selection_open(&s, c->p, c->prow, c->q, t->qrow[child[0]], k, 1);
    const int n = wg_selection_among(&s, t, child, c->p, c->prow, drawn);
    for (int i = 0; i < n; i++) {
        const double p = wg_rows_prob(c->p, c->prow, t->token[drawn[i].node]), law = wg_selection_law(&s, drawn[i].rank);
        weight[i] = p < law ? drawn[i].chance * (p / law) : drawn[i].chance;
        rejected -= weight[i];
    }
    weight[n] = rejected > 0 ? rejected : 0;
    const int kept = wg_chance_pick(c->chance, WG_DRAW_ACCEPT, c->node, weight, n + 1);
    if (kept < n && weight[kept] > 0) return drawn[kept].node;
    const double mass = wg_selection_excess(&s, c->p, c->prow);
    *next = wg_next_of(c, c->p->scratch, mass);
    return -1;
}

static void accept(const void *opt, const wg_tree *tree, const wg_rows *p, const wg_rows *q, const wg_chance *chance,
                   wg_path *out)
{
    wg_walk(settle, opt, tree, p, q, chance, out);
}

const wg_verifier_class wg_verifier_optimal = {
    .name = "optimal",
    .doc = "the most that k independent siblings allow at a node: an optimal coupling in one sort",
    .test_options = (const char *const[]){ "", NULL },
    .laws = WG_LAW_FIXED | WG_LAW_IID,
    .lossless = true,
    .accept = accept,
    .reads_q = true,
    .device = WG_RULE_OPTIMAL,
};
