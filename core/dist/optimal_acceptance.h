/* SPDX-License-Identifier: MIT
 * The optimal acceptance alpha* at one node (methods.md, Optimal selection). No lossless rule that is given the siblings
 * x_1..x_k accepts one of them with a larger probability, because the emitted token has the law p and must be one of them:
 *     alpha* = 1 - max_S [ Pr(all siblings in S) - p(S) ]                        (max-flow = min-cut; S any set of tokens)
 * So 1 - alpha* is the loss of the drafter; alpha* minus the measured acceptance is the loss of a rule that decides node by
 * node. Where Pr(all siblings in S) is a convex function of q along the order of p/q, the maximiser is a prefix of that order
 * (Hu et al. 2025; checked against all subsets in test_optimal_acceptance): one sort and one scan. */
#ifndef WG_CORE_DIST_OPTIMAL_ACCEPTANCE_H
#define WG_CORE_DIST_OPTIMAL_ACCEPTANCE_H

#include "core/dist/rows.h"
#include "core/dist/tree.h"
#include "kernels/rule/arithmetic.h"

/* Tokens that q can draw, by p(x)/q(x) ascending (worst first; ties: lowest id). Returns their number; *out lies in the
 * workspace at WG_WORK_ORDER. */
int wg_ratios_order(wg_rows *p, int prow, wg_rows *q, int qrow, wg_workspace *w, const wg_ratio_test **out);

/* Sorts n ratios at WG_WORK_ORDER, which are in the order of their tokens; uses WG_WORK_SORT. */
void wg_ratios_sort(wg_workspace *w, int n);

/* k independent draws from q. O(V log V) (a radix sort); k = 1: sum min(p, q). */
double wg_optimal_iid(wg_rows *p, int prow, wg_rows *q, int qrow, int k, wg_workspace *w);

/* k draws from q, each without the earlier ones (also k first finishers of a race), k < WG_TREE_MAX. k = 2 in closed form,
 * k > 2 by an integral over the time of the kth arrival, both to about 1e-11: O(k V) for each of the integral's points, fewer
 * than a hundred for usual rows. NaN: not computed, because tokens of q below 1e-300 must be drawn. */
double wg_optimal_without_replacement(wg_rows *p, int prow, wg_rows *q, int qrow, int k, wg_workspace *w);

/* alpha* for the children of a node: p(C) if the set C is a function of the prefix; by their law and number if they were drawn.
 * -1: the node has none. NaN: unknown, because drawn children have no row of q, or as above. */
double wg_optimal_alpha(const wg_tree *t, int node, wg_rows *p, wg_rows *q, wg_workspace *w);

#endif
