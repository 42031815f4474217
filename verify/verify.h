/* SPDX-License-Identifier: MIT
 * The verification rules of this folder, as one NULL-terminated table. */
#ifndef WG_VERIFY_VERIFY_H
#define WG_VERIFY_VERIFY_H

#include "core/engine/verifier.h"

extern const wg_verifier_class *const wg_verifiers[];

extern const wg_verifier_class wg_verifier_greedy, wg_verifier_match, wg_verifier_rejection, wg_verifier_without_replacement,
    wg_verifier_topk, wg_verifier_kseq, wg_verifier_block, wg_verifier_traversal, wg_verifier_multipath, wg_verifier_optimal,
    wg_verifier_coupled, wg_verifier_typical, wg_verifier_lenience, wg_verifier_relaxed;

/* The probability that optimal selection takes token y as the one of k independent draws from q (kernels/rule/selection.h). */
double wg_optimal_law(wg_rows *p, int prow, wg_rows *q, int qrow, int k, int32_t y, wg_workspace *work);

/* Traversal without looking whether the tree is a chain, for the test that it is `block` there. */
void wg_traversal_tree_accept(const void *opt, const wg_tree *tree, wg_rows *p, wg_rows *q, const wg_chance *chance,
                              wg_workspace *work, wg_path *out);

#endif
