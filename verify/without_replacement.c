/* SPDX-License-Identifier: MIT
 * Rejection in rounds for siblings drawn without replacement (recursive speculative decoding, Jeon et al. 2024; Sequoia, Chen
 * et al. 2024; METHODS B5).
 *
 * Theorem. Round i is single-draft rejection of x_i ~ q_i against r_i, where q_i is q without the earlier siblings, normalised:
 * accepted mass min(r_i, q_i), completed to r_i by r_{i+1} = norm((r_i - q_i)+). So the emitted token has the law p by
 * induction over siblings, whatever was rejected before. One child is `rejection`; when the children are all tokens that q can
 * draw and these carry p, the last residual round has q_i = r_i's only token and is accepted for certain (the cover property).
 *
 * Where q has no mass left for another sibling a drafter must stop; a sibling made up all the same is rejected and
 * subtracts nothing. FIXED siblings are rounds with points. */
#include "verify/rounds.h"
#include "verify/verify.h"

static int settle(const void *opt, const wg_crossing *c, int32_t *next)
{
    (void)opt;
    return wg_settle_rounds(c, 1, next);
}

static void accept(const void *opt, const wg_tree *tree, const wg_rows *p, const wg_rows *q, const wg_chance *chance,
                   wg_path *out)
{
    wg_walk(settle, opt, tree, p, q, chance, out);
}

const wg_verifier_class wg_verifier_without_replacement = {
    .name = "without_replacement",
    .doc = "rejection in rounds for distinct siblings: each judged by q without those before it",
    .test_options = (const char *const[]){ "", NULL },
    .laws = WG_LAW_FIXED | WG_LAW_WITHOUT_REPLACEMENT,
    .lossless = true,
    .accept = accept,
    .reads_q = true,
    .device = WG_RULE_ROUNDS,
};
