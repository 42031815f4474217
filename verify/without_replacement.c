/* SPDX-License-Identifier: MIT
 * Rejection in rounds for siblings drawn without replacement (recursive speculative decoding, Jeon et al. 2024; Sequoia,
 * Chen et al. 2024): kernels/rule/rounds.h.
 *
 * Theorem. Round i is single-draft rejection of x_i ~ q_i against r_i, where q_i is q without the earlier siblings,
 * normalised. One child is `rejection`; when the children are all tokens that q can draw and these carry p, the last
 * residual round has q_i = r_i's only token and is accepted for certain (the cover property). Fixed siblings are rounds with
 * one-hot rows. */
#include "verify/verify.h"

const wg_verifier_class wg_verifier_without_replacement = {
    .name = "without_replacement",
    .doc = "rejection in rounds for distinct siblings: each judged by q without those before it",
    .optimal_among = "one child, and all of V as children",
    .paper = "Jeon et al. 2024, Chen et al. 2024 (Sequoia)",
    .test_options = (const char *const[]){ "", NULL },
    .laws = WG_LAW_FIXED | WG_LAW_WITHOUT_REPLACEMENT,
    .lossless = true,
    .cut = WG_CUT_CHAINS,
    .accept = wg_rounds_accept,
    .reads_q = true,
    .device = WG_RULE_ROUNDS,
};
