/* SPDX-License-Identifier: MIT
 * Optimal selection among k independent siblings (methods.md, Optimal selection): kernels/rule/optimal.h. */
#include "verify/host_passes.h"
#include "kernels/rule/optimal.h"
#include "verify/verify.h"

static WG_HOST_ACCEPT(accept, wg_verify_optimal(&b));

double wg_optimal_law(wg_rows *p, int prow, wg_rows *q, int qrow, int k, int32_t y, wg_workspace *work)
{
    const wg_rule_block b = wg_host_block(NULL, p, q, NULL, work, NULL, NULL);
    const wg_selection s = wg_selection_open(&b, (wg_dist){ p, prow }, (wg_dist){ q, qrow }, k, 1);
    for (int rank = 0; rank < s.n; rank++)
        if (s.order[rank].token == y) return wg_selection_law(&s, rank);
    return 0;
}

const wg_verifier_class wg_verifier_optimal = {
    .name = "optimal",
    .doc = "the most that k independent siblings allow at a node: an optimal coupling in one sort",
    .optimal_among = "all rules at a node: alpha*",
    .paper = "below; cf. Khisti et al. 2025",
    .test_options = (const char *const[]){ "", NULL },
    .laws = WG_LAW_FIXED | WG_LAW_IID,
    .lossless = true,
    .cut = WG_CUT_CHAINS,
    .joint = true,
    .accept = accept,
    .reads_q = true,
    .device = WG_RULE_OPTIMAL,
};
