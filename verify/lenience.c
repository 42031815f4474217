/* SPDX-License-Identifier: MIT
 * Lenience (Leviathan et al. 2023, appendix; DistillSpec, Zhou et al. 2024). LOSSY: rejection in rounds with l q
 * in the place of q, 0 < l <= 1. A token is emitted with at most p(x) / l of the target's probability; l = 1 is `rejection`. */
#include "verify/host_passes.h"
#include "kernels/rule/rounds.h"
#include "verify/verify.h"

typedef struct lenience_options {
    double factor;
} lenience_options;

static const wg_option options[] = {
    WG_OPTION_FLOAT(lenience_options, factor, 0.5, 0.001, 1,
                    "l: q is multiplied by it before it is compared with p; 1: lossless"),
    WG_OPTION_END,
};

static double factor(const void *opt) { return ((const lenience_options *)opt)->factor; }

static void device_params(const void *opt, wg_rule *out) { out->factor = factor(opt); }

static WG_HOST_ACCEPT(accept, wg_verify_rounds(&b, factor(opt)));

const wg_verifier_class wg_verifier_lenience = {
    .name = "lenience",
    .doc = "rejection with q scaled down: accepts more, bends p by at most 1/factor",
    .guarantee = "at most p/l",
    .paper = "Leviathan et al. 2023",
    .size = sizeof(lenience_options),
    .options = options,
    .test_options = (const char *const[]){ "", "factor=0.2", NULL },
    .laws = WG_LAW_FIXED | WG_LAW_IID | WG_LAW_WITHOUT_REPLACEMENT,
    .lossless = false,
    .cut = WG_CUT_CHAINS,
    .accept = accept,
    .reads_q = true,
    .device = WG_RULE_ROUNDS,
    .device_params = device_params,
};
