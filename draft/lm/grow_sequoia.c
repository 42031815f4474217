/* SPDX-License-Identifier: MIT
 * Sequoia's dynamic programme (Chen et al. 2024, arXiv 2402.12374, section 4). T(m, l, b): the most expected tokens
 * of a tree with m nodes, at most l deep, whose root has b children, when the bth child of an accepted node is accepted with
 * probability a_b:
 *
 *     T(1, l, 0) = 1,   T(m, l, b) = max over 1 <= y < m of  T(y, l, b-1) + a_b * max_c T(m-y, l-1, c).
 *
 * The tables are filled by l, b and m; `split` remembers y, so the tree is read back from the root. */
#include <math.h>

#include "core/base/mem.h"
#include "draft/lm/grow.h"

typedef struct tables {
    int nodes, depth, wide; /* m <= nodes, l <= depth, b <= wide */
    double *most;           /* T, (depth + 1, wide + 1, nodes + 1) */
    int16_t *split;         /* y, the same shape */
} tables;

static size_t at(const tables *t, int l, int b, int m)
{
    return ((size_t)l * (size_t)(t->wide + 1) + (size_t)b) * (size_t)(t->nodes + 1) + (size_t)m;
}

/* The number of children of the root with which a tree of m nodes has the largest value. */
static int best_children(const tables *t, int l, int m)
{
    int best = 0;
    for (int b = 1; b <= t->wide; b++)
        if (t->most[at(t, l, b, m)] > t->most[at(t, l, best, m)]) best = b;
    return best;
}

static void fill(const tables *t, const double *accept, double *below)
{
    for (int l = 0; l <= t->depth; l++) {
        for (int m = 1; l > 0 && m <= t->nodes; m++) below[m] = t->most[at(t, l - 1, best_children(t, l - 1, m), m)];
        for (int b = 0; b <= t->wide; b++)
            for (int m = 0; m <= t->nodes; m++) {
                double most = b == 0 && m == 1 ? 1 : -INFINITY;
                int split = 0;
                for (int y = 1; l > 0 && b > 0 && y < m; y++) {
                    const double v = t->most[at(t, l, b - 1, y)] + accept[b - 1] * below[m - y];
                    if (v > most) most = v, split = y;
                }
                t->most[at(t, l, b, m)] = most;
                t->split[at(t, l, b, m)] = (int16_t)split;
            }
    }
}

/* The tree of m nodes, at most l deep, as parents, breadth first. */
static void read_back(const tables *t, int l, int m, int *parent)
{
    int size[WG_TREE_MAX] = { m }, depth[WG_TREE_MAX] = { 0 }, n = 1;
    parent[0] = -1;
    for (int i = 0; i < n; i++) {
        const int left = l - depth[i], wide = best_children(t, left, size[i]);
        for (int b = wide, rest = size[i]; b > 0; b--) { /* the last child first */
            const int y = t->split[at(t, left, b, rest)], child = n + b - 1;
            parent[child] = i;
            size[child] = rest - y;
            depth[child] = depth[i] + 1;
            rest = y;
        }
        n += wide;
    }
}

wg_status wg_shape_sequoia(wg_shape *s, const double *accept, int n, int nodes, int depth, wg_error *err)
{
    int parent[WG_TREE_MAX];
    tables t = { .nodes = nodes < WG_TREE_MAX - 1 ? nodes + 1 : WG_TREE_MAX, .depth = depth, .wide = n };
    if (t.depth > t.nodes - 1) t.depth = t.nodes - 1;
    if (t.wide > t.nodes - 1) t.wide = t.nodes - 1;
    const size_t cells = at(&t, t.depth, t.wide, t.nodes) + 1;
    double *below = wg_calloc((size_t)t.nodes + 1, sizeof *below);
    t.most = wg_calloc(cells, sizeof *t.most);
    t.split = wg_calloc(cells, sizeof *t.split);
    wg_status status = WG_OK;
    if (!below || !t.most || !t.split) status = wg_nomem(err, cells * (sizeof *t.most + sizeof *t.split), "Sequoia's tables");
    else if (nodes < 1 || depth < 1)
        status = wg_fail(err, WG_ECONFIG, "sequoia: %d draft tokens, %d deep; expected 1 or more", nodes, depth);
    else {
        fill(&t, accept, below);
        int best = 2; /* one draft token at least, even if nothing is ever accepted */
        double most = -INFINITY;
        for (int m = 2; m <= t.nodes; m++) {
            const double v = t.most[at(&t, t.depth, best_children(&t, t.depth, m), m)];
            if (v > most) most = v, best = m;
        }
        read_back(&t, t.depth, best, parent);
        status = wg_shape_set(s, parent, best, "sequoia", err);
    }
    wg_free(below);
    wg_free(t.most);
    wg_free(t.split);
    return status;
}
