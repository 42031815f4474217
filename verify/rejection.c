/* SPDX-License-Identifier: MIT
 * Rejection sampling (Leviathan et al. 2023, Chen et al. 2023; METHODS B3), on trees in rounds with replacement (SpecInfer,
 * Miao et al. 2024; METHODS B4).
 *
 * At a node let r_1 = p. Try the children x_1, x_2, ... in order, each drawn from its q: accept x_i with probability
 * min(1, r_i(x_i) / q(x_i)) and go there; else r_{i+1} = norm((r_i - q)+). When no child is left, `next` is drawn from the
 * last r.
 *
 * Theorem. If each x_i ~ q given the prefix and the siblings before it, and the decisions are independent of these draws, the
 * emitted text has exactly the law of p: accepted x has mass min(r, q), which r_{i+1} completes to r_i; by induction over
 * siblings, then over depth. A child that is a function of the prefix (law FIXED) is a draw from the point mass at it: it is
 * accepted with probability r(x), and a rejection takes x out of r. One child: the optimal token-wise rule. */
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

const wg_verifier_class wg_verifier_rejection = {
    .name = "rejection",
    .doc = "accept with probability p/q, correct from the residual: speculative sampling, on trees in several rounds",
    .test_options = (const char *const[]){ "", NULL },
    .laws = WG_LAW_FIXED | WG_LAW_IID,
    .lossless = true,
    .accept = accept,
    .reads_q = true,
    .device = WG_RULE_ROUNDS,
};
