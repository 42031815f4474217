/* SPDX-License-Identifier: MIT
 * Block verification of a chain (Sun et al. 2024): kernels/rule/block.h. */
#include "verify/host_passes.h"
#include "kernels/rule/block.h"
#include "verify/verify.h"

static WG_HOST_ACCEPT(accept, wg_verify_block(&b));

const wg_verifier_class wg_verifier_block = {
    .name = "block",
    .doc = "accept a chain's prefix by its joint probability: never fewer tokens than rejection",
    .optimal_among = "all rules of chains, in expected tokens",
    .paper = "Sun et al. 2024",
    .test_options = (const char *const[]){ "", NULL },
    .laws = WG_LAW_FIXED | WG_LAW_IID | WG_LAW_WITHOUT_REPLACEMENT,
    .chains = true,
    .lossless = true,
    .looks_ahead = true,
    .accept = accept,
    .reads_q = true,
    .device = WG_RULE_BLOCK,
};
