/* SPDX-License-Identifier: MIT
 * The verification rules of this folder: a line each, in the order of `wager list`, and a NULL-terminated table of them. */
#ifndef WG_VERIFY_VERIFY_H
#define WG_VERIFY_VERIFY_H

#include "core/engine/verifier.h"

/* clang-format off */
#define WG_VERIFIERS(X) \
    X(greedy) \
    X(match) \
    X(rejection) \
    X(without_replacement) \
    X(topk) \
    X(kseq) \
    X(block) \
    X(traversal) \
    X(multipath) \
    X(optimal) \
    X(paired) \
    X(coupled) \
    X(typical) \
    X(lenience) \
    X(relaxed) \
    X(ensemble) \
    X(speculative_cascade)
/* clang-format on */

#define WG_VERIFIER_DECLARE(name) extern const wg_verifier_class wg_verifier_##name;
WG_VERIFIERS(WG_VERIFIER_DECLARE)
#undef WG_VERIFIER_DECLARE

extern const wg_verifier_class *const wg_verifiers[];

/* The probability that optimal selection selects token y among k independent draws from q (kernels/rule/selection.h). */
double wg_optimal_law(wg_rows *p, int prow, wg_rows *q, int qrow, int k, int32_t y, wg_workspace *work);

/* Rejection in rounds for all sibling laws but COUPLED: `rejection` and `without_replacement`. */
void wg_rounds_accept(const void *opt, const wg_tree *tree, wg_rows *p, wg_rows *q, const wg_chance *chance, wg_workspace *work,
                      wg_path *out);

/* Traversal without the special case of chains, for the test that it equals `block` on them. */
void wg_traversal_tree_accept(const void *opt, const wg_tree *tree, wg_rows *p, wg_rows *q, const wg_chance *chance,
                              wg_workspace *work, wg_path *out);

#endif
