/* SPDX-License-Identifier: MIT
 * A set of children, one uniform for a node (SGLang's tree_speculative_sampling_target_only at thresholds 1; EAGLE-2's
 * evaluate_posterior has the same law in rounds; METHODS B6). Walk along the distinct children adding up p; go to the first at
 * which the sum passes the uniform; past all of them, `next` is drawn from p without them.
 *
 * Theorem. Given the tree, the emitted token is x with probability p(x): a child by its own share of the uniform, another by
 * (1 - p(C)) p(x) / (1 - p(C)). q is not used, so this holds for any law of the siblings that has not seen this step's ACCEPT
 * draws. Acceptance is p(C), the optimum for a set that is a function of the prefix; for sampled siblings `rejection` and its
 * kin accept more. Duplicates count once (counting them twice is the classic bias, METHODS B15-12). */
#include "verify/verify.h"
#include "verify/walk.h"

int wg_settle_set(const void *opt, const wg_crossing *c, int32_t *next)
{
    (void)opt;
    const wg_tree *t = c->tree;
    int16_t child[WG_TREE_MAX];
    double weight[WG_TREE_MAX], rest = 1;
    const int k = wg_crossing_children(c, child);
    for (int i = 0; i < k; i++) {
        const int32_t x = t->token[child[i]];
        weight[i] = wg_tree_find(t, c->node, x) == child[i] ? wg_rows_prob(c->p, c->prow, x) : 0;
        rest -= weight[i];
    }
    weight[k] = rest > 0 ? rest : 0;
    const int kept = wg_chance_pick(c->chance, WG_DRAW_ACCEPT, c->node, weight, k + 1);
    if (kept < k && weight[kept] > 0) return child[kept];
    if (wg_rows_point(c->p, c->prow) >= 0) { /* no child is the point */
        *next = wg_next(c);
        return -1;
    }
    const double *p = wg_rows_at(c->p, c->prow);
    const wg_support s = wg_rows_support(c->p, c->prow);
    double *left = c->p->scratch;
    for (int i = 0; i < s.n; i++) left[wg_support_at(&s, i)] = p[wg_support_at(&s, i)];
    for (int i = 0; i < k; i++) left[t->token[child[i]]] = 0;
    *next = wg_next_of(c, left, wg_rows_sum(c->p, c->prow, left));
    return -1;
}

static void accept(const void *opt, const wg_tree *tree, const wg_rows *p, const wg_rows *q, const wg_chance *chance,
                   wg_path *out)
{
    wg_walk(wg_settle_set, opt, tree, p, q, chance, out);
}

const wg_verifier_class wg_verifier_topk = {
    .name = "topk",
    .doc = "keep a child with its probability under p, one uniform a node: for ranked (top-k) drafts; q is not used",
    .test_options = (const char *const[]){ "", NULL },
    .laws = WG_LAW_FIXED | WG_LAW_IID | WG_LAW_WITHOUT_REPLACEMENT,
    .lossless = true,
    .accept = accept,
    .device = WG_RULE_TOPK,
};
