/* SPDX-License-Identifier: MIT
 * A set of children, one uniform for a node (methods.md, Fixed siblings): kernels/rule/topk.h. */
#include "verify/host_passes.h"
#include "kernels/rule/topk.h"
#include "verify/verify.h"

static WG_HOST_ACCEPT(accept, wg_verify_topk(&b));

const wg_verifier_class wg_verifier_topk = {
    .name = "topk",
    .doc = "keep a child with its probability under p, one uniform a node: for ranked (top-k) drafts; q is not used",
    .optimal_among = "rules for fixed sets: p(C)",
    .paper = "SGLang, EAGLE-2's code",
    .test_options = (const char *const[]){ "", NULL },
    .laws = WG_LAW_FIXED | WG_LAW_IID | WG_LAW_WITHOUT_REPLACEMENT,
    .lossless = true,
    .cut = WG_CUT_TREES,
    .accept = accept,
    .device = WG_RULE_TOPK,
};
