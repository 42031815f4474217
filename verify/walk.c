/* SPDX-License-Identifier: MIT
 * The frame of the rules that settle one node at a time. */
#include "verify/walk.h"

void wg_walk(wg_settle *settle, const void *opt, const wg_tree *tree, const wg_rows *p, const wg_rows *q,
             const wg_chance *chance, wg_path *out)
{
    out->n = 0;
    for (int node = 0; node >= 0;) {
        const wg_chance at = wg_chance_at(chance, out->n);
        const wg_crossing c = { tree, p, q, chance, &at, node, tree->row + node };
        out->node[out->n++] = (int16_t)node;
        if (wg_tree_child(tree, node, node) >= 0) {
            node = settle(opt, &c, &out->next);
        } else {
            out->next = wg_next(&c);
            node = -1;
        }
    }
}

int wg_crossing_children(const wg_crossing *c, int16_t child[WG_TREE_MAX])
{
    int k = 0;
    for (int i = c->node; (i = wg_tree_child(c->tree, c->node, i)) >= 0;) child[k++] = (int16_t)i;
    return k;
}
