/* SPDX-License-Identifier: MIT
 * Coupled decoding on shared exponentials (Daliri et al. 2025, "Coupling without Communication"; METHODS B12). The token at
 * position t is the winner of the race argmin_x E_x(t) / p(x) on the times at (t, COUPLED); go to the child that is it; where
 * there is none, it is `next`.
 *
 * Theorem. The times at t are independent of the text before t, so the winner is a draw from p: the text has the law of p, and
 * it is the same text for every drafter (none included), tree and length, because no draft takes part in it. It is `match` with
 * another draw, and like `match` it needs none of L1 to L3.
 *
 * What it gains: a drafter that races q on the same times (drafter `model`, siblings=coupled) has the same winner with
 * probability sum_x 1 / sum_y max(p(y)/p(x), q(y)/q(x)), at least (1 - TV)/(1 + TV), where independent draws agree with sum p q
 * only. What is proved: the law of the text, for any drafter; and the acceptance above for racing drafters, from the exact
 * joint law of the races (core/engine/race.h). */
#include "verify/verify.h"

static void accept(const void *opt, const wg_tree *tree, const wg_rows *p, const wg_rows *q, const wg_chance *chance,
                   wg_path *out)
{
    (void)opt, (void)q;
    out->n = 0;
    for (int node = 0; node >= 0;) {
        const wg_chance at = wg_chance_at(chance, out->n);
        const int row = tree->row + node;
        out->node[out->n++] = (int16_t)node;
        out->next = p->point[row] >= 0 ? p->point[row] : wg_chance_race(&at, WG_DRAW_COUPLED, wg_rows_at(p, row), p->vocab);
        node = wg_tree_find(tree, node, out->next);
    }
}

const wg_verifier_class wg_verifier_coupled = {
    .name = "coupled",
    .doc = "the winner of a race on times shared with the drafter: the same text for every drafter, none included",
    .laws = WG_LAW_FIXED | WG_LAW_IID | WG_LAW_WITHOUT_REPLACEMENT | WG_LAW_COUPLED,
    .lossless = true,
    .accept = accept,
};
