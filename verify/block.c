/* SPDX-License-Identifier: MIT
 * Block verification of a chain (Sun et al. 2024): kernels/rule/block.h. */
#include "verify/host_passes.h"
#include "kernels/rule/block.h"
#include "verify/verify.h"

static void accept(const void *opt, const wg_tree *tree, wg_rows *p, wg_rows *q, const wg_chance *chance, wg_workspace *work,
                   wg_path *out)
{
    wg_rule_state state;
    (void)opt;
    const wg_rule_block b = wg_host_block(tree, p, q, chance, work, &state, out);
    wg_verify_block(&b);
}

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
