/* SPDX-License-Identifier: MIT
 * Typical acceptance (Medusa, Cai et al. 2024): kernels/rule/typical.h. LOSSY. */
#include "verify/host_passes.h"
#include "kernels/rule/typical.h"
#include "verify/verify.h"

typedef struct typical_options {
    double epsilon, delta;
} typical_options;

static const wg_option options[] = {
    WG_OPTION_FLOAT(typical_options, epsilon, 0.09, 0, 1, "a token with more than this probability is always kept"),
    WG_OPTION_FLOAT(typical_options, delta, 0.3, 0, 1, "of exp(-entropy): the threshold where the target is unsure"),
    WG_OPTION_END,
};

static void device_params(const void *opt, wg_rule *out)
{
    const typical_options *o = opt;
    out->epsilon = o->epsilon;
    out->delta = o->delta;
}

static WG_HOST_ACCEPT(accept,
                      wg_verify_typical(&b, ((const typical_options *)opt)->epsilon, ((const typical_options *)opt)->delta));

const wg_verifier_class wg_verifier_typical = {
    .name = "typical",
    .doc = "keep drafts that the target finds not unusual (Medusa)",
    .paper = "Cai et al. 2024 (Medusa)",
    .size = sizeof(typical_options),
    .options = options,
    .test_options = (const char *const[]){ "", "epsilon=0.5,delta=0.9", NULL },
    .laws = WG_LAWS,
    .lossless = false,
    .looks_ahead = true,
    .accept = accept,
    .device = WG_RULE_TYPICAL,
    .device_params = device_params,
};
