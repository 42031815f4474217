/* SPDX-License-Identifier: MIT
 * Selection among distinct siblings: one of two that were drawn without replacement, so that it serves a target best. `paired`
 * does this with two children of a node.
 *
 * The siblings are the pair {a,b} with probability w(a,b) = q(a) o(b) + o(a) q(b), o = q/(1 - q) (either may be the first). A
 * selection takes a with a probability of its own for each pair; the selected token then has the law s(a) = sum over b of
 * w(a,b) Pr(a is taken of {a,b}). Rejection of the selected token against the target t keeps sum min(t, s), whatever the
 * selection is. No selection keeps more than 1 - max over sets A of [f(A) - t(A)], f(A) the mass of the pairs inside A, for
 * these pairs must be given to tokens of A.
 *
 * Tokens in ascending order of t/q. Divide them after the prefix A that has the least room,
 *     room = (t(A) - f(A)) / w(A, B),      w(A, B) the mass of the pairs between A and the others, B,
 * and give A that part of each pair between them (none if it is negative, all if it is above 1): then A is given what it wants,
 * if that is possible. Do the same in A and in B with what their tokens still want. After LEVELS divisions, best token first:
 * each takes the same part of all its pairs with worse tokens, as large as it still wants. Because w is a sum of two products,
 * sums over all pairs of a token with a set are two sums over the set, so a level costs O(V) and the whole O(V log V).
 *
 * All is deterministic in t and q, and s is summed with the same numbers that decide, so any rounding or bad choice here costs
 * acceptance and never exactness. That the least room is divided first is a heuristic: docs/verification.md says how near the
 * bound it comes. */
#ifndef WG_VERIFY_PAIR_SELECTION_H
#define WG_VERIFY_PAIR_SELECTION_H

#include "core/dist/optimal_acceptance.h"
#include "core/dist/rows.h"

/* Arrays of (n) are by rank, the order of t/q (arithmetic.h), and lie in the workspace. */
typedef struct wg_pair_selection {
    wg_ratio_test *order;           /* (n) the tokens that q can draw */
    const double *want;             /* (vocab) the target t, of any mass */
    double *q;                      /* (vocab) normalised */
    double *odds, *law;             /* (n) q/(1 - q), and s */
    double *before_q, *before_odds; /* (n) sums over lower ranks of the segment at hand */
    int n;
    int worse, better; /* the ranks of the pair that was drawn; -1: none */
    double share;      /* the probability that `worse` is selected */
} wg_pair_selection;

/* A selection in this workspace: want is WG_WORK_REST, q WG_WORK_DRAWN; of the others only WG_WORK_ONE_HOT_P and _Q may be used
 * between two calls. */
static inline wg_pair_selection wg_pair_selection_in(const wg_workspace *w)
{
    return (wg_pair_selection){ .order = (wg_ratio_test *)(void *)wg_work_row(w, WG_WORK_ORDER),
                                .want = wg_work_row(w, WG_WORK_REST),
                                .q = wg_work_row(w, WG_WORK_DRAWN),
                                .law = wg_work_row(w, WG_WORK_SORT),
                                .odds = wg_work_row(w, WG_WORK_SORT + 1),
                                .before_q = wg_work_row(w, WG_WORK_ONE_HOT_P),
                                .before_odds = wg_work_row(w, WG_WORK_ONE_HOT_Q) };
}

/* The law of one sibling: q. Normalises s->q, whose tokens that may have mass are in the support of row `qrow` of q, and lists
 * them in s->order, in the order of tokens. False: q has no mass, and n is 0. */
bool wg_pair_selection_single(wg_pair_selection *s, wg_rows *q, int qrow);

/* Selection among two siblings, tokens a and b, from what wg_pair_selection_single has made. False, for a q that can draw one
 * token only or has all but 1e-12 of its mass on one: nothing is changed. */
bool wg_pair_selection_open(wg_pair_selection *s, int32_t a, int32_t b, wg_workspace *w);

#endif
