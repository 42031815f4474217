/* SPDX-License-Identifier: MIT
 * Selection among distinct siblings: which of two, drawn without replacement, is verified, so that a target is served best. The
 * rule `paired` does this with two children of a node.
 *
 * The siblings are the pair {a,b} with probability w(a,b) = q(a) o(b) + o(a) q(b), o = q/(1 - q) (either may be the first). A
 * selection takes a with a probability of its own for each pair; the selected token then has the law s(a) = sum over b of
 * w(a,b) Pr(a is taken of {a,b}). Rejection of the selected token against the target t keeps sum min(t, s), whatever the
 * selection is. No selection keeps more than 1 - max over sets A of [f(A) - t(A)], f(A) the mass of the pairs inside A, for
 * these pairs must be given to tokens of A.
 *
 * Tokens in ascending order of t/q. Divide them after the prefix A that has the least room,
 *     room = (t(A) - f(A)) / w(A, B),      w(A, B) the mass of the pairs between A and the others, B,
 * and give A that part of each pair between them (0 if it is negative, 1 if it is above 1), which meets A's demand if that is
 * possible. Repeat in A and in B with the tokens' remaining demand. After LEVELS divisions, best token first, each token takes
 * the same part of all its pairs with worse tokens, as large as its demand. Because w is a sum of two products, sums over all
 * pairs of a token with a set are two sums over the set, so a level costs O(V) and the whole O(V log V).
 *
 * All is deterministic in t and q, and s is summed with the same numbers that decide, so rounding or a bad choice costs
 * acceptance, never exactness. Dividing the least room first is a heuristic; docs/verification.md says how near the bound it
 * comes. */
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
    double *before_q, *before_odds; /* (n) sums over lower ranks of the present segment */
    int n;
    int worse, better; /* ranks of the drawn pair; -1: none */
    double share;      /* the probability that `worse` is selected */
} wg_pair_selection;

/* A selection in this workspace: `want` is WG_WORK_REST, `q` WG_WORK_DRAWN. Between two calls only WG_WORK_ONE_HOT_P and _Q may
 * be used otherwise. */
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

/* Prepares the law of one sibling, q: normalises s->q over the support of row `qrow` of q, and lists its tokens in s->order,
 * ascending. False: q has no mass, and n is 0. */
bool wg_pair_selection_single(wg_pair_selection *s, wg_rows *q, int qrow);

/* Prepares the selection among two siblings, tokens a and b, after wg_pair_selection_single. False: q can draw one token only,
 * or has all but 1e-12 of its mass on one; then nothing is changed. */
bool wg_pair_selection_open(wg_pair_selection *s, int32_t a, int32_t b, wg_workspace *w);

#endif
