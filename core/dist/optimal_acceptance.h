/* SPDX-License-Identifier: MIT
 * The optimal acceptance alpha* at one node (METHODS B10). Of all lossless rules that see the siblings x_1..x_k, none
 * goes to a sibling with more than this probability, because the emitted token has the law p and must be one of them:
 *     alpha* = 1 - max_S [ Pr(all siblings in S) - p(S) ]                        (max-flow = min-cut; S any set of tokens)
 * So 1 - alpha* is what the drafter loses and alpha* minus the measured acceptance is what the rule loses. Where
 * Pr(all siblings in S) is a convex function of q along the order of p/q, the maximiser is a prefix of that order (Hu et al.
 * 2025; checked against all subsets in test_optimal): one sort and one scan. */
#ifndef WG_CORE_DIST_OPTIMAL_ACCEPTANCE_H
#define WG_CORE_DIST_OPTIMAL_ACCEPTANCE_H

#include "core/dist/rows.h"
#include "core/dist/tree.h"

/* Tokens that q can draw, by p(x)/q(x) ascending (worst bets first; ties: lowest id). */
typedef struct wg_bet { double ratio; int32_t token; } wg_bet;
/* Returns how many; *out lies in rows 2 and 3 of p's scratch (rows 4 and 5 are used as well, 0 and 1 for point rows). */
int wg_bets_order(const wg_rows *p, int prow, const wg_rows *q, int qrow, const wg_bet **out);

/* k independent draws from q. O(V log V) (a radix sort); k = 1: sum min(p, q). */
double wg_optimal_iid(const wg_rows *p, int prow, const wg_rows *q, int qrow, int k);

/* k draws from q, each without the earlier ones (also k first finishers of a race). k = 2 in closed form, k > 2 by an integral
 * over the time of the first outsider, both to about 1e-11: O(k V) for each of the integral's some hundred points. */
double wg_optimal_without_replacement(const wg_rows *p, int prow, const wg_rows *q, int qrow, int k);

/* The children of a node as they are: p(C) for a set that is a function of the prefix; by the law and their number when they
 * were drawn. Negative when the node has none, or none with a q row where the law needs one. Uses p's scratch. */
double wg_optimal_alpha(const wg_tree *t, int node, const wg_rows *p, const wg_rows *q);

#endif
