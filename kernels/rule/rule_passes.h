/* SPDX-License-Identifier: MIT
 * The primitives of rules (kernels/rule/<rule>.h). A rule is one source of plain arithmetic; host and device differ in passes
 * over a vocabulary, decisions, and the thread that writes. Each side defines these primitives, then includes this file:
 * verify/host_passes.h (one thread, rows that may be lazy, supports) and kernels/cuda/rule_block.h (a block of threads,
 * complete rows). All threads of a block run the rule with the same numbers, so all take the same decisions; all threads get
 * the result of a primitive.
 *
 * Types
 *   wg_rule_block   one tree with its rows and chance: b->tree (n, token[], parent[], qrow[]), b->state (rule_state.h), and
 *                   rows of `vocab` doubles to work in: b->rest, b->drawn
 *   wg_dist         a distribution, possibly lazy;  wg_probs: a materialised one, d[x] the probability of token x
 *   wg_tokens       the tokens that may have mass in a row
 *   wg_row_pair         a p and a q, side by side: pair.n, pair.p[i], pair.q[i]
 * Threads
 *   WG_RULE         begins every function of a rule
 *   WG_LEADER(b)    whether this thread writes what all share: b->state, single tokens of b->rest, the path
 *   WG_ONE_THREAD   whether there is no other
 *   WG_SYNC(b)      a barrier: before it all have read what is about to change, after it all see what was written
 *   WG_FOR_TOKENS(t, x)     loops over this thread's tokens x of a wg_tokens t; WG_FOR_PART(n, i): its share of 0 <= i < n
 *   WG_ADD_MASS(m, n, i, w) adds the masses of the weights w, a term in i, in [0, 1], of its share of 0 <= i < n to m
 *   wg_part(b, n, &from, &to)       its share of 0 .. n-1 as one segment
 *   wg_before(b, mine, before, &all)  mine: two masses of its segment; before: of the segments before it; all: of all, mine[0]
 * Rows
 *   wg_p(b, node), wg_q(b, node)  the target's row after a node; the row that a node was drawn from. wg_q_row(b, row)
 *   wg_one_hot(r)   the token that has all the mass, or -1
 *   wg_prob(r, x);  wg_bound(r, x): a cheap upper bound of it. WG_BOUNDS_EXACT: whether the bound is exact
 *   wg_tokens_of(b, r);  wg_whole_p(b, r), wg_whole_q(b, r): the materialised row (one p and one q at a time)
 *   wg_row_of_p(b, r): the doubles of a p that is not one-hot;  wg_probs_of(weights)
 *   wg_row_pair_of(b, p, q), wg_row_pair_token(pair, i): the pair, and the token of its place i
 *   wg_argmax(b, r) the most probable token, lowest id on ties
 * Sums: of masses (kernels/mass.h), in any order the same
 *   wg_total(b, m)  of all threads' masses, as a number; wg_total_mass: as it is
 *   wg_any(b, is), wg_count(b, n)   of all threads
 *   wg_sum(b, r, weight)            of weights >= 0 of any size (vocab), those at tokens that may have mass in r
 *   wg_sum_but(b, r, weight, x)     the same without that of token x
 *   wg_excess(b, p, r, q, keep)     of (r p - q)+; keep: which goes to b->rest, where p may have mass
 *   wg_q_without(b, q, node, child) q without the children of `node` before `child`, to b->drawn
 *   wg_best(b, v, i)                the index i of the largest v, lowest on ties; -1: this thread has none, all have none
 *   wg_from(b, mine, m)             the two masses m of the thread where `mine` is set; zeros where it is nowhere set
 *   wg_number_from(b, mine, x, no)  a number of that thread; `no` where it is nowhere set
 *   wg_order(b, p, q)               fills b->order with the order of ratios (arithmetic.h); how many tokens q can draw
 * Decisions: addressed random numbers, at the step's position unless a depth is given
 *   wg_accepts(b, index, num, den)  true with probability min(1, num/den)
 *   wg_fails(b, index, most)        whether a test at this index of probability at most `most` is known to fail
 *   wg_pick(b, index, weight, n)    i with probability weight[i] / sum
 *   wg_next_p(b, r, depth)          a token drawn from a row of p, at the place of the token emitted at this depth
 *   wg_next_rest(b, r, depth)       the same from b->rest, the residual of r
 *   wg_race(b, r, depth, races)     the winner of a race on so many lists of times, at this depth
 * Result
 *   wg_path_node(b, depth, node), wg_path_end(b, n, next) */
#ifndef WG_KERNELS_RULE_RULE_PASSES_H
#define WG_KERNELS_RULE_RULE_PASSES_H

#include "kernels/rule/arithmetic.h"
#include "kernels/rule/draft_walk.h"
#include "kernels/rule/rule_state.h"

#ifndef WG_RULE
#error "include verify/host_passes.h or kernels/cuda/rule_block.h first: they define the words of this file"
#endif

/* ---- trees */

WG_RULE int wg_child(const wg_rule_block *b, int node, int after)
{
    return wg_walk_child(b->tree->parent, b->tree->n, node, after);
}
WG_RULE int wg_child_of_token(const wg_rule_block *b, int node, int32_t token)
{
    return wg_walk_find(b->tree->parent, b->tree->token, b->tree->n, node, token);
}
WG_RULE int wg_nth_child(const wg_rule_block *b, int node, int nth)
{
    int child = wg_child(b, node, node);
    for (; nth > 0; nth--) child = wg_child(b, node, child);
    return child;
}
WG_RULE bool wg_law_is(const wg_rule_block *b, int law) { return (int)b->tree->law == law; }
WG_RULE bool wg_chain_drafted(const wg_rule_block *b) { return wg_walk_is_chain(b->tree->parent, b->tree->n); }

/* ---- paths: from the root, a rule names the child to go to, or what is emitted instead */

typedef struct wg_node_view {
    int node, depth;
    int first;    /* child; -1: none */
    int32_t next; /* what is emitted where no child is kept */
    wg_dist p;    /* the target's distribution after the node */
} wg_node_view;

WG_RULE wg_node_view wg_view(const wg_rule_block *b, int node, int depth)
{
    wg_node_view v;
    v.node = node;
    v.depth = depth;
    v.first = wg_child(b, node, node);
    v.next = -1;
    v.p = wg_p(b, node);
    return v;
}

/* `next` drawn from p: no child was kept. */
WG_RULE int wg_stop(const wg_rule_block *b, wg_node_view *v)
{
    v->next = wg_next_p(b, v->p, v->depth);
    return -1;
}

/* `next` drawn from b->rest; from p where that has no mass (p and q equal to rounding). */
WG_RULE int32_t wg_next_of(const wg_rule_block *b, wg_dist p, int depth, double mass)
{
    return mass > 0 ? wg_next_rest(b, p, depth) : wg_next_p(b, p, depth);
}
WG_RULE int wg_stop_with(const wg_rule_block *b, wg_node_view *v, double mass)
{
    v->next = wg_next_of(b, v->p, v->depth, mass);
    return -1;
}

/* Accepts the node and continues with its child; false: there was none, and the path is done. */
WG_RULE bool wg_advance(const wg_rule_block *b, wg_node_view *v, int child)
{
    wg_path_node(b, v->depth, v->node);
    if (child < 0) wg_path_end(b, v->depth + 1, v->next);
    else *v = wg_view(b, child, v->depth + 1);
    return child >= 0;
}

/* The path to a node, and `next`. */
WG_RULE void wg_path_to(const wg_rule_block *b, int node, int depth, int32_t next)
{
    for (int k = depth, i = node; k >= 0; k--, i = b->tree->parent[i]) wg_path_node(b, k, i);
    wg_path_end(b, depth + 1, next);
}

#endif
