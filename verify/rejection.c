/* SPDX-License-Identifier: MIT
 * Rejection sampling, that is speculative sampling (Leviathan et al. 2023, Chen et al. 2023), on trees in
 * rounds with replacement (SpecInfer, Miao et al. 2024): kernels/rule/rounds.h. */
#include "verify/host_passes.h"
#include "kernels/rule/rounds.h"
#include "verify/verify.h"

WG_HOST_ACCEPT(wg_rounds_accept, wg_verify_rounds(&b, 1));

const wg_verifier_class wg_verifier_rejection = {
    .name = "rejection",
    .doc = "accept with probability p/q, correct from the residual: speculative sampling, on trees in several rounds",
    .optimal_among = "token-wise rules of chains",
    .paper = "Leviathan et al. 2023, Chen et al. 2023; in rounds: Miao et al. 2024",
    .test_options = (const char *const[]){ "", NULL },
    .laws = WG_LAW_FIXED | WG_LAW_IID,
    .lossless = true,
    .cut = WG_CUT_CHAINS,
    .accept = wg_rounds_accept,
    .reads_q = true,
    .device = WG_RULE_ROUNDS,
};
