/* SPDX-License-Identifier: MIT
 * Static ensemble verification (Wang et al. 2026, DIVERSED, arXiv 2604.07622; transformers' assistant_ensemble_weight). LOSSY,
 * with a law that is known: a token for which a draft was made has the law v = w p + (1 - w) q, any other the law p. One draft
 * is kept with probability 1 - w TV(p, q); w = 1 is `rejection`. */
#include "verify/stated_law.h"
#include "verify/verify.h"

typedef struct ensemble_options {
    double w;
} ensemble_options;

static const wg_option options[] = {
    WG_OPTION_FLOAT(ensemble_options, w, 0.7, 0, 1, "share of the target in the mixture w p + (1 - w) q; 1: lossless"),
    WG_OPTION_END,
};

static void law_row(const void *opt, const double *p, const double *q, int vocab, double *out)
{
    const double w = ((const ensemble_options *)opt)->w;
    for (int x = 0; x < vocab; x++) out[x] = w * p[x] + (1 - w) * q[x];
}

static void accept(const void *opt, const wg_tree *tree, wg_rows *p, wg_rows *q, const wg_chance *chance, wg_workspace *work,
                   wg_path *out)
{
    wg_stated_law_accept(&wg_verifier_ensemble, opt, tree, p, q, chance, work, out);
}

const wg_verifier_class wg_verifier_ensemble = {
    .name = "ensemble",
    .doc = "rejection against a mixture of p and q, which is the law of what was drafted",
    .guarantee = "w p + (1 - w) q where drafted",
    .paper = "Wang et al. 2026 (DIVERSED, static)",
    .size = sizeof(ensemble_options),
    .options = options,
    .test_options = (const char *const[]){ "", "w=0.25", NULL },
    .laws = WG_LAW_IID | WG_LAW_WITHOUT_REPLACEMENT,
    .lossless = false,
    .cut = WG_CUT_CHAINS,
    .accept = accept,
    .law_row = law_row,
    .reads_q = true,
};
