/* SPDX-License-Identifier: MIT
 * Multi-path verification: block verification of the best of several paths, on trees of independent draws (methods.md,
 * Traversal and multi-path). With select=ratio it is like greedy multi-path block verification, GBV (arXiv 2602.16961); the
 * form here is derived below.
 *
 * Walk down with all drafts at once. At a prefix that k draws continue (all children of all nodes with this prefix) select
 * one of their tokens and keep the nodes with that token. The selected token has a law q_k. Block verification (block.h)
 * then verifies the selected chain with q_k in the place of q, each level with its own k. Selection:
 *     select=optimal: the draw that serves r p best, r the joint ratio of the path so far (selection.h); `optimal` at one level
 *     select=ratio: the largest p/q, the best of k draws: q_k(x) = F(x)^k - F(x-)^k with F the mass of q on tokens that rank no
 *     better (ties: the higher id)
 *
 * Theorem. The text has the law of p. Given the selected token, which and how many nodes have it does not depend on the
 * target's remaining law; it is randomness that draft and target may share, so block verification of the selected chain is
 * lossless given all k. q_k may be the law of any selection, because it is the law of the verified token. One path: `block`.
 *
 * On random p and q select=optimal keeps the most of all rules here in the mean (results/laws.md); that it always keeps
 * as many as `optimal` is observed, not proved. The largest p/q can be far from optimal where p is near q, but is not always
 * worse.
 *
 * A tree may have any number of children at any node. The nodes of a fixed tree are not independent draws: traversal
 * verifies it. A level costs a sort of the vocabulary that q can draw, a rejected level another one. */
#ifndef WG_KERNELS_RULE_MULTIPATH_H
#define WG_KERNELS_RULE_MULTIPATH_H

#include "kernels/rule/selection.h"
#include "kernels/rule/traversal.h"

/* ---- select=ratio */

/* The mass of q on tokens that rank below x. */
WG_RULE wg_mass wg_multipath_below(const wg_rule_block *b, wg_dist p, wg_dist q, int32_t x)
{
    const wg_tokens t = wg_tokens_of(b, q);
    const wg_probs of_p = wg_whole_p(b, p), of_q = wg_whole_q(b, q);
    const double ratio = wg_ratio_of(of_p[x], of_q[x]);
    wg_mass mine = 0;
    WG_FOR_TOKENS(t, i)
    {
        const double qi = of_q[i];
        if (qi > 0 && wg_ratio_after(ratio, x, wg_ratio_of(of_p[i], qi), i)) mine += wg_steps_of(qi);
    }
    return wg_total_mass(b, mine);
}

/* The best token among the draws that continue the level's prefix, with its q_k; -1: there are none. Fills l->qrow and l->k. */
WG_RULE int32_t wg_multipath_best(const wg_rule_block *b, wg_level *l, double *qk)
{
    const wg_dist p = wg_p(b, l->node);
    int32_t best = -1;
    double ratio = 0;
    for (int i = 1; i < b->tree->n; i++) {
        if (!b->state->alive[b->tree->parent[i]]) continue;
        const int32_t x = b->tree->token[i];
        const double here = wg_ratio_of(wg_prob(p, x), wg_prob(wg_q(b, i), x));
        l->qrow = b->tree->qrow[i];
        l->k++;
        if (best >= 0 && !(here > ratio || (here == ratio && x > best))) continue;
        best = x;
        ratio = here;
    }
    if (best < 0) return -1;
    *qk = wg_prob(wg_q_row(b, l->qrow), best);
    if (l->k == 1 || !(*qk > 0)) return best;
    const wg_mass below = wg_multipath_below(b, p, wg_q_row(b, l->qrow), best), upto = below + wg_steps_of(*qk);
    *qk = wg_power(wg_mass_value(upto), l->k) - wg_power(wg_mass_value(below), l->k);
    return best;
}

/* (r p - q_k)+ into b->rest; its mass. */
WG_RULE double wg_multipath_left_ratio(const wg_rule_block *b, wg_dist p, wg_dist q, int k, double r)
{
    const wg_selection s = wg_selection_begin(b, p, q, k, r);
    const wg_tokens t = wg_tokens_of(b, p);
    const wg_probs of = wg_whole_p(b, p);
    const wg_segment g = wg_selection_segment(b, &s);
    wg_mass sum = g.mass[0];
    double below = wg_power(wg_mass_value(sum), k);
    WG_FOR_TOKENS(t, x) b->rest[x] = r * of[x];
    WG_SYNC(b);
    for (int i = g.from; i < g.to; i++) {
        const int32_t x = s.order[i].token;
        sum += wg_steps_of(wg_selection_mass(&s, i));
        const double upto = wg_power(wg_mass_value(sum), k), taken = upto - below;
        below = upto;
        if (s.order[i].ratio > 0) b->rest[x] = wg_positive(b->rest[x] - taken); /* else p has no mass there */
    }
    WG_SYNC(b);
    return wg_sum(b, p, b->rest);
}

/* ---- select=optimal */

/* The token that optimal selection for the joint ratio r takes among these draws. */
WG_RULE int32_t wg_multipath_selected(const wg_rule_block *b, double r, wg_level *l, double *qk)
{
    wg_rule_state *state = b->state;
    WG_SYNC(b);
    for (int i = 1; i < b->tree->n; i++) {
        if (!state->alive[b->tree->parent[i]]) continue;
        if (WG_LEADER(b)) state->draws[l->k] = i;
        if (l->k++ == 0) l->qrow = b->tree->qrow[i];
    }
    WG_SYNC(b);
    if (l->k == 0) return -1;
    const wg_dist q = wg_q_row(b, l->qrow);
    if (l->k == 1) {
        const int32_t x = b->tree->token[state->draws[0]];
        *qk = wg_prob(q, x);
        return *qk > 0 ? x : -1;
    }
    const wg_dist p = wg_p(b, l->node);
    const wg_selection s = wg_selection_open(b, p, q, l->k, r);
    const int n = wg_selection_among(b, &s, p);
    if (n == 0) return -1; /* q could have drawn none of them */
    WG_SYNC(b);
    for (int i = 0; i < n && WG_LEADER(b); i++) state->weight[i] = state->drawn[i].chance;
    WG_SYNC(b);
    const wg_drawn *d = &state->drawn[wg_pick(b, WG_TREE_NODES + l->node, state->weight, n)];
    *qk = wg_selection_law(&s, d->rank);
    return b->tree->token[d->node];
}

/* ---- */

/* (r p - q_k)+ after a level, into b->rest; its mass. */
WG_RULE double wg_multipath_left(const wg_rule_block *b, bool by_ratio, const wg_level *l, double r)
{
    const wg_dist p = wg_p(b, l->node), q = wg_q_row(b, l->qrow);
    WG_SYNC(b);                                        /* all have read what was left */
    if (l->k == 1) return wg_excess(b, p, r, q, true); /* q_1 = q */
    if (by_ratio) return wg_multipath_left_ratio(b, p, q, l->k, r);
    const wg_selection s = wg_selection_open(b, p, q, l->k, r);
    return wg_selection_left(b, &s, p);
}

/* The nodes that hold the prefix, one token longer. Returns the first; -1: none. */
WG_RULE int wg_multipath_advance(const wg_rule_block *b, int32_t x)
{
    signed char *alive = b->state->alive;
    WG_SYNC(b);
    if (WG_LEADER(b)) {
        for (int i = b->tree->n - 1; i > 0; i--) alive[i] = alive[b->tree->parent[i]] && b->tree->token[i] == x;
        alive[0] = 0;
    }
    WG_SYNC(b);
    for (int i = 1; i < b->tree->n; i++)
        if (alive[i]) return i;
    return -1;
}

/* The kept chain: its levels and joint ratios, to the state. Returns how many levels below the root have a kept token. */
WG_RULE int wg_multipath_chain(const wg_rule_block *b, bool by_ratio)
{
    wg_rule_state *state = b->state;
    wg_level l = { 0, -1, 0 };
    double r = 1;
    if (WG_LEADER(b))
        for (int i = 0; i < b->tree->n; i++) state->alive[i] = i == 0;
    WG_SYNC(b);
    for (int n = 0;; n++) {
        double qk = 0;
        const int32_t x = by_ratio ? wg_multipath_best(b, &l, &qk) : wg_multipath_selected(b, r, &l, &qk);
        if (WG_LEADER(b)) {
            state->joint_ratio[n] = r;
            state->level[n] = l;
        }
        if (x < 0) {
            WG_SYNC(b);
            return n;
        }
        r = wg_joint_ratio(r * wg_prob(wg_p(b, l.node), x), qk);
        l.node = wg_multipath_advance(b, x);
        l.qrow = -1;
        l.k = 0;
    }
}

WG_RULE void wg_verify_multipath(const wg_rule_block *b, bool by_ratio)
{
    const wg_rule_state *state = b->state;
    if (wg_law_is(b, WG_RULE_FIXED) || wg_chain_drafted(b)) {
        wg_verify_traversal(b);
        return;
    }
    const int n = wg_multipath_chain(b, by_ratio);
    int k = n;
    double left = 0;
    for (;; k--) {
        const wg_level *l = &state->level[k];
        if (k < n) left = wg_multipath_left(b, by_ratio, l, state->joint_ratio[k]);
        if (k == 0 || wg_block_keeps(b, l->node, k == n, state->joint_ratio[k], left)) break;
    }
    const int node = state->level[k].node; /* nodes of the same prefix may have other parents: its own path */
    const wg_dist p = wg_p(b, node);
    wg_path_to(b, node, k, k == n ? wg_next_p(b, p, k) : wg_next_of(b, p, k, left));
}

#endif
