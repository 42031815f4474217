/* SPDX-License-Identifier: MIT
 * Relaxed acceptance (TensorRT-LLM's for thinking phases). LOSSY: a child is accepted when it is among the
 * target's `top` most probable tokens and at most `gap` below the most probable one in log probability; among several, the
 * most probable. `next` is drawn from p. */
#include "kernels/exp.h"
#include "verify/host_passes.h"
#include "kernels/rule/relaxed.h"
#include "verify/verify.h"

typedef struct relaxed_options {
    int top;
    double gap;
} relaxed_options;

static const wg_option options[] = {
    WG_OPTION_INT(relaxed_options, top, 10, 1, 1000, "how many of the target's most probable tokens count"),
    WG_OPTION_FLOAT(relaxed_options, gap, 0.6, 0, 100, "largest distance from the most probable one, in nats"),
    WG_OPTION_END,
};

static double factor(const void *opt) { return wg_exp64_of(-((const relaxed_options *)opt)->gap); }

static void device_params(const void *opt, wg_rule *out)
{
    out->top = ((const relaxed_options *)opt)->top;
    out->factor = factor(opt);
}

static WG_HOST_ACCEPT(accept, wg_verify_relaxed(&b, ((const relaxed_options *)opt)->top, factor(opt)));

const wg_verifier_class wg_verifier_relaxed = {
    .name = "relaxed",
    .doc = "keep a draft that is among the target's most probable tokens and near the first",
    .paper = "TensorRT-LLM",
    .size = sizeof(relaxed_options),
    .options = options,
    .test_options = (const char *const[]){ "", "top=2,gap=3", NULL },
    .laws = WG_LAWS,
    .lossless = false,
    .accept = accept,
    .device = WG_RULE_RELAXED,
    .device_params = device_params,
};
