/* SPDX-License-Identifier: MIT
 * k-SEQ for k independent siblings (SpecTr, Sun et al. 2023): kernels/rule/kseq.h. */
#include "verify/host_passes.h"
#include "kernels/rule/kseq.h"
#include "verify/verify.h"

static WG_HOST_ACCEPT(accept, wg_verify_kseq(&b));

const wg_verifier_class wg_verifier_kseq = {
    .name = "kseq",
    .doc = "k independent siblings judged by one threshold: within 1 - 1/e of the optimum (SpecTr)",
    .optimal_among = "within 1 - 1/e at a node",
    .paper = "Sun et al. 2023 (SpecTr)",
    .test_options = (const char *const[]){ "", NULL },
    .laws = WG_LAW_FIXED | WG_LAW_IID,
    .lossless = true,
    .cut = WG_CUT_CHAINS,
    .joint = true,
    .accept = accept,
    .reads_q = true,
    .device = WG_RULE_KSEQ,
};
