/* SPDX-License-Identifier: MIT
 * The rules, in the order in which they are listed. */
#include "verify/verify.h"

#include <stddef.h>

const wg_verifier_class *const wg_verifiers[] = {
    &wg_verifier_greedy,
    &wg_verifier_match,
    &wg_verifier_rejection,
    &wg_verifier_without_replacement,
    &wg_verifier_topk,
    &wg_verifier_kseq,
    &wg_verifier_block,
    &wg_verifier_traversal,
    &wg_verifier_multipath,
    &wg_verifier_optimal,
    &wg_verifier_coupled,
    &wg_verifier_typical,
    &wg_verifier_lenience,
    &wg_verifier_relaxed,
    NULL,
};
