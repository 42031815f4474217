/* SPDX-License-Identifier: MIT
 * Greedy match (Stern et al. 2018, blockwise decoding). From the root, walk to the child that is the target's most
 * probable token; where there is none, that token is `next`.
 *
 * Theorem. At temperature 0 the output is the target's own greedy text, for any drafter, tree and length: every emitted token
 * is the argmax of the row of its own prefix. It is exact as a map of logits: by the Prefix Law these rows are the ones that
 * plain decoding sees. At other temperatures the text is still the greedy one, which is then not a sample of p; `match` is. */
#include "verify/host_passes.h"
#include "kernels/rule/sampled.h"
#include "verify/verify.h"

static WG_HOST_ACCEPT(accept, wg_verify_greedy(&b));

const wg_verifier_class wg_verifier_greedy = {
    .name = "greedy",
    .doc = "keep the target's most probable tokens; lossless at temperature 0, and at others no sample of p",
    .optimal_among = "everything, at temperature 0",
    .paper = "Stern et al. 2018",
    .test_options = (const char *const[]){ "", NULL },
    .laws = WG_LAW_FIXED | WG_LAW_IID | WG_LAW_WITHOUT_REPLACEMENT | WG_LAW_COUPLED,
    .lossless = true,
    .cut = WG_CUT_TREES,
    .zero_only = true,
    .accept = accept,
    .device = WG_RULE_GREEDY,
};
