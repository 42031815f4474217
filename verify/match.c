/* SPDX-License-Identifier: MIT
 * Sample and match (methods.md, Sample and match): draw the target's token at each node of the walk; go to the child that
 * equals it; where there is none, the token is `next`.
 *
 * Theorem. Every emitted token is a draw from p at its own prefix and its own address (position, NEXT, 0). So the text is
 * the one plain decoding draws from the same seed, byte for byte, for any drafter, any tree and any adaptive length (L1 to L3
 * are not needed): the draft decides only how many of these draws fit into one target pass. */
#include "verify/host_passes.h"
#include "kernels/rule/sampled.h"
#include "verify/verify.h"

static WG_HOST_ACCEPT(accept, wg_verify_match(&b));

const wg_verifier_class wg_verifier_match = {
    .name = "match",
    .doc = "draw from the target and keep drafts that are equal: the text of plain decoding, byte for byte",
    .guarantee = "the text of plain decoding, byte for byte",
    .paper = "sample and compare",
    .test_options = (const char *const[]){ "", NULL },
    .laws = WG_LAW_FIXED | WG_LAW_IID | WG_LAW_WITHOUT_REPLACEMENT | WG_LAW_COUPLED,
    .lossless = true,
    .cut = WG_CUT_TREES,
    .accept = accept,
    .device = WG_RULE_MATCH,
};
