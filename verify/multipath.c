/* SPDX-License-Identifier: MIT
 * Multi-path verification: block verification of the best of several paths, on trees of independent draws (greedy multi-path
 * block verification, GBV, arXiv 2602.16961, is select=ratio; METHODS B9).
 *
 * Walk down with all drafts at once. At a prefix that k draws continue (all children of all nodes that spell this prefix)
 * select one of their tokens and keep the nodes that hold it. The selected token has a law q_k of its own. The kept chain is
 * then settled by block verification (`block`) with q_k in the place of q, each level with its own k. Which one is selected:
 *     select=optimal: the draw that serves r p best, r the claim of the path so far (selection.h); `optimal` at one level
 *     select=ratio: the largest p/q, the best of k draws: q_k(x) = F(x)^k - F(x-)^k with F the mass of q on tokens that rank no
 *     better (ties: the higher id)
 *
 * Theorem. The text has the law of p. Given the selected token, which and how many nodes hold it does not depend on what the
 * target wants; it is randomness that draft and target may share, so block verification of the kept chain is lossless given all
 * the k's; and q_k may be the law of any selection, for it is the law of what is verified. One path: `block`.
 *
 * On random p and q select=optimal keeps the most of all rules here in the mean (docs/verification.md); that it always keeps as
 * many as `optimal` is observed, not proved. The largest p/q can be far from optimal where p is near q, but is not always
 * worse.
 *
 * A tree may have any number of children at any node. A FIXED tree is no set of draws: traversal settles it. A level costs a
 * sort of the vocabulary that q can draw, a level that is not kept another one. */
#include "core/dist/optimal_acceptance.h"
#include "kernels/mass.h"
#include "verify/block.h"
#include "verify/selection.h"
#include "verify/traversal.h"
#include "verify/walk.h"

typedef struct multipath_options { int select; } multipath_options;
enum { OPTIMAL, RATIO };
static const char *const selects[] = { "optimal", "ratio", NULL };

static const wg_option options[] = {
    WG_OPTION_ENUM(multipath_options, select, OPTIMAL, selects,
                   "the draw that a level keeps: the most useful one, or the one of largest p/q (GBV)"),
    WG_OPTION_END,
};

static void device_params(const void *opt, wg_rule *out) { out->ratio = ((const multipath_options *)opt)->select == RATIO; }

typedef struct level {
    int node; /* one of those that spell the prefix: where p is read */
    int qrow; /* of the draws that continue it; -1: none do */
    int k;    /* how many */
} level;

static double power(double x, int k)
{
    double v = 1;
    for (int i = 0; i < k; i++) v *= x;
    return v;
}

/* (r p - q_k)+ after a level, into p's first scratch row; its mass. */
static double excess(int select, const wg_tree *t, level l, double r, const wg_rows *p, const wg_rows *q)
{
    const int prow = t->row + l.node;
    if (l.k == 1) return wg_rows_excess(p, prow, r, q, l.qrow, p->scratch); /* q_1 = q */
    if (select == OPTIMAL) {
        wg_selection chosen;
        wg_selection_open(&chosen, p, prow, q, l.qrow, l.k, r);
        return wg_selection_excess(&chosen, p, prow);
    }
    const wg_support s = wg_rows_support(p, prow);
    const wg_bet *bet;
    const int n = wg_bets_order(p, prow, q, l.qrow, &bet);
    double *out = p->scratch, below = 0;
    wg_mass sum = 0;
    const double *pv = wg_rows_dense(p, prow, out);
    for (int i = 0; i < s.n; i++) out[wg_support_at(&s, i)] = r * pv[wg_support_at(&s, i)];
    for (int i = 0; i < n; i++) {
        sum += wg_steps_of(wg_rows_prob(q, l.qrow, bet[i].token));
        const double upto = power(wg_mass_value(sum), l.k), taken = upto - below;
        below = upto;
        if (!(bet[i].ratio > 0)) continue; /* p has no mass there */
        const double d = out[bet[i].token] - taken;
        out[bet[i].token] = d > 0 ? d : 0;
    }
    return wg_rows_sum(p, prow, out);
}

/* The best token among the draws that continue the nodes of `alive`, with its q_k; -1: there are none. Fills *l. */
static int32_t best_of(const wg_tree *t, const bool *alive, const wg_rows *p, const wg_rows *q, level *l, double *qk)
{
    int32_t best = -1;
    double ratio = 0;
    l->k = 0;
    for (int i = 1; i < t->n; i++) {
        if (!alive[t->parent[i]]) continue;
        const int32_t x = t->token[i];
        const double px = wg_rows_prob(p, t->row + l->node, x), qx = wg_rows_prob(q, t->qrow[i], x);
        const double here = px > 0 ? px / qx : 0;
        l->qrow = t->qrow[i];
        l->k++;
        if (best < 0 || here > ratio || (here == ratio && x > best)) {
            best = x;
            ratio = here;
        }
    }
    if (l->k == 0) return -1;
    *qk = wg_rows_prob(q, l->qrow, best);
    if (l->k == 1) return best;
    const wg_bet *bet;
    const int n = wg_bets_order(p, t->row + l->node, q, l->qrow, &bet);
    wg_mass below = 0;
    for (int i = 0; i < n; i++) {
        const wg_mass upto = below + wg_steps_of(wg_rows_prob(q, l->qrow, bet[i].token));
        if (bet[i].token == best) *qk = power(wg_mass_value(upto), l->k) - power(wg_mass_value(below), l->k);
        below = upto;
    }
    return best;
}

/* The same by optimal selection for the claim r. */
static int32_t selected_of(const wg_tree *t, const bool *alive, double r, const wg_rows *p, const wg_rows *q,
                           const wg_chance *chance, level *l, double *qk)
{
    const int prow = t->row + l->node;
    int16_t node[WG_TREE_MAX];
    double weight[WG_TREE_MAX] = { 0 };
    wg_drawn drawn[WG_TREE_MAX];
    wg_selection s;
    l->k = 0;
    for (int i = 1; i < t->n; i++)
        if (alive[t->parent[i]]) node[l->k++] = (int16_t)i;
    if (l->k == 0) return -1;
    l->qrow = t->qrow[node[0]];
    if (l->k == 1) {
        *qk = wg_rows_prob(q, l->qrow, t->token[node[0]]);
        return *qk > 0 ? t->token[node[0]] : -1;
    }
    wg_selection_open(&s, p, prow, q, l->qrow, l->k, r);
    const int n = wg_selection_among(&s, t, node, p, prow, drawn);
    if (n == 0) return -1; /* q could have drawn none of them */
    for (int i = 0; i < n; i++) weight[i] = drawn[i].chance;
    const int i = wg_chance_pick(chance, WG_DRAW_ACCEPT, WG_TREE_NODES + l->node, weight, n);
    *qk = wg_selection_law(&s, drawn[i].rank);
    return t->token[drawn[i].node];
}

static void accept(const void *opt, const wg_tree *tree, const wg_rows *p, const wg_rows *q, const wg_chance *chance,
                   wg_path *out)
{
    if (wg_tree_is_chain(tree)) {
        wg_block_accept(NULL, tree, p, q, chance, out);
        return;
    }
    if (tree->law == WG_LAW_FIXED) {
        wg_traversal_accept(NULL, tree, p, q, chance, out);
        return;
    }
    const int select = ((const multipath_options *)opt)->select;
    bool alive[WG_TREE_MAX] = { true };
    level kept[WG_TREE_MAX];
    double r[WG_TREE_MAX];
    int n = 0; /* levels below the root that have a kept token */
    kept[0] = (level){ 0, -1, 0 };
    r[0] = 1;
    for (;; n++) {
        double qk = 0;
        bool down[WG_TREE_MAX] = { false };
        const int32_t x = select == OPTIMAL ? selected_of(tree, alive, r[n], p, q, chance, &kept[n], &qk)
                                            : best_of(tree, alive, p, q, &kept[n], &qk);
        if (x < 0) break;
        const double rp = r[n] * wg_rows_prob(p, tree->row + kept[n].node, x);
        r[n + 1] = rp >= qk ? rp > 0 : rp / qk;
        kept[n + 1] = (level){ -1, -1, 0 };
        for (int i = 1; i < tree->n; i++) {
            down[i] = alive[tree->parent[i]] && tree->token[i] == x;
            if (down[i] && kept[n + 1].node < 0) kept[n + 1].node = i;
        }
        for (int i = 0; i < tree->n; i++) alive[i] = down[i];
    }
    int k = n;
    double mass = 0;
    for (; k > 0; k--) {
        if (k < n) mass = excess(select, tree, kept[k], r[k], p, q);
        const double num = k < n ? mass : r[n], den = k < n ? mass + (1 - r[k]) : 1;
        if ((k < n && mass <= 0 && r[k] >= 1) || wg_chance_ratio(chance, WG_DRAW_ACCEPT, kept[k].node, num, den)) break;
    }
    out->n = 0;
    for (int i = 0; i <= kept[k].node; i++) /* nodes that spell the same may have other parents: take its own path */
        if (wg_mask_has(&tree->anc[kept[k].node], i)) out->node[out->n++] = (int16_t)i;
    const wg_chance at = wg_chance_at(chance, k);
    const wg_crossing c = { tree, p, q, chance, &at, kept[k].node, tree->row + kept[k].node };
    if (k == n) out->next = wg_next(&c);
    else out->next = wg_next_of(&c, p->scratch, excess(select, tree, kept[k], r[k], p, q));
}

const wg_verifier_class wg_verifier_multipath = {
    .name = "multipath",
    .doc = "select one of several independent paths, then block verification with its law (GBV and better)",
    .size = sizeof(multipath_options),
    .options = options,
    .test_options = (const char *const[]){ "", "select=ratio", NULL },
    .laws = WG_LAW_FIXED | WG_LAW_IID,
    .lossless = true,
    .accept = accept,
    .reads_q = true,
    .device = WG_RULE_MULTIPATH,
    .device_params = device_params,
};
