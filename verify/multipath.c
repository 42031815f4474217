/* SPDX-License-Identifier: MIT
 * Multi-path verification: block verification of the best of several paths, on trees of independent draws (methods.md,
 * Traversal and multi-path; with select=ratio like GBV, arXiv 2602.16961, in a form derived here): kernels/rule/multipath.h. */
#include "verify/host_passes.h"
#include "kernels/rule/multipath.h"
#include "verify/verify.h"

typedef struct multipath_options {
    int select;
} multipath_options;
enum { OPTIMAL, RATIO };
static const char *const selects[] = { "optimal", "ratio", NULL };

static const wg_option options[] = {
    WG_OPTION_ENUM(multipath_options, select, OPTIMAL, selects,
                   "the draw that a level keeps: the most useful one, or the one of largest p/q (GBV-like)"),
    WG_OPTION_END,
};

static void device_params(const void *opt, wg_rule *out) { out->ratio = ((const multipath_options *)opt)->select == RATIO; }

static WG_HOST_ACCEPT(accept, wg_verify_multipath(&b, ((const multipath_options *)opt)->select == RATIO));

const wg_verifier_class wg_verifier_multipath = {
    .name = "multipath",
    .doc = "select one of several independent paths, then block verification with its law (GBV-like)",
    .optimal_among = "a node (`optimal` there), chains (`block` there)",
    .paper = "below; cf. arXiv 2602.16961 (GBV), which `select=ratio` resembles",
    .size = sizeof(multipath_options),
    .options = options,
    .test_options = (const char *const[]){ "", "select=ratio", NULL },
    .laws = WG_LAW_FIXED | WG_LAW_IID,
    .lossless = true,
    .joint = true,
    .looks_ahead = true,
    .accept = accept,
    .reads_q = true,
    .device = WG_RULE_MULTIPATH,
    .device_params = device_params,
};
