/* SPDX-License-Identifier: MIT
 * Traversal verification of a tree, leaves first (Weng et al. 2025): kernels/rule/traversal.h. */
#include "verify/host_passes.h"
#include "kernels/rule/traversal.h"
#include "verify/verify.h"

WG_HOST_ACCEPT(wg_traversal_tree_accept, wg_verify_traversal_tree(&b));
static WG_HOST_ACCEPT(accept, wg_verify_traversal(&b));

const wg_verifier_class wg_verifier_traversal = {
    .name = "traversal",
    .doc = "block verification on trees, leaves first: accept the longest path that its joint probability allows",
    .optimal_among = "chains (it is `block` there)",
    .paper = "Weng et al. 2025",
    .test_options = (const char *const[]){ "", NULL },
    .laws = WG_LAW_FIXED | WG_LAW_IID | WG_LAW_WITHOUT_REPLACEMENT,
    .lossless = true,
    .looks_ahead = true,
    .accept = accept,
    .reads_q = true,
    .device = WG_RULE_TRAVERSAL,
};
