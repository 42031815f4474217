/* SPDX-License-Identifier: MIT
 * A verification rule as a plug-in: rejection sampling (Leviathan et al. 2023) that looks at the first child of each node only.
 * Lossless, because among independent draws from q the first is one draw from q; wasteful, because it ignores the others.
 *
 *     wager prove --plugin libfirst_child.so
 *
 * For a rule's part see docs/add-a-verifier.md; this file differs from one in verify/ in its last line only. With -DBIASED it
 * makes a classic mistake, which `wager prove` finds: the corrected token is drawn from p instead of the residual. */
#include "verify/rule_plugin.h"

static void accept(const void *opt, const wg_tree *tree, wg_rows *p, wg_rows *q, const wg_chance *chance, wg_workspace *work,
                   wg_path *out)
{
    (void)opt, (void)work;
    out->n = 0;
    for (int node = 0;;) {
        const wg_chance at = wg_chance_at(chance, out->n); /* the emitted token's own position */
        const int row = tree->row + node, child = wg_tree_child(tree, node, node);
        out->node[out->n++] = (int16_t)node;
        if (child < 0) {
            out->next = wg_rows_pick(p, row, &at, WG_DRAW_NEXT, 0);
            return;
        }
        const int32_t x = tree->token[child];
        const double px = wg_rows_prob(p, row, x), qx = wg_rows_prob(q, tree->qrow[child], x);
        if (!wg_chance_ratio(chance, WG_DRAW_ACCEPT, child, px, qx)) {
#ifdef BIASED
            out->next = wg_rows_pick(p, row, &at, WG_DRAW_NEXT, 0);
#else
            out->next = wg_rows_pick_residual(p, row, q, tree->qrow[child], &at, WG_DRAW_NEXT, 0, work);
#endif
            return;
        }
        node = child;
    }
}

static const wg_verifier_class first_child = {
    .name = "first_child",
    .doc = "rejection on the first child of each node",
    .laws = WG_LAW_IID,
    .lossless = true,
    .accept = accept,
};

WG_VERIFIER_PLUGIN(first_child);
