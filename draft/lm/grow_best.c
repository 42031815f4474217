/* SPDX-License-Identifier: MIT
 * Best-first trees (EAGLE-2, Li et al. 2024: expand the k best new nodes of a level, rerank all; OPT-Tree, Wang et al. 2024:
 * the same with k = budget, which finds the tree with the largest sum of path probabilities of all trees of that size, as long
 * as q does not depend on the tree; methods.md, Trees). A node outside the best `budget` can only have worse children, so it is
 * dropped at once. Among equals the shallower, then the earlier node is kept; so the parent of a kept node is kept, and the
 * tree is a function of the prefix (law FIXED). */
#include <string.h>

#include "draft/lm/grow.h"

void wg_best_start(wg_best *b, int budget)
{
    b->budget = budget;
    b->n = 1;
    b->level = b->fresh = 0;
    b->value[0] = 1;
}

static int worst(const double *value, int n)
{
    int w = 0;
    for (int i = 1; i < n; i++)
        if (value[i] <= value[w]) w = i;
    return w;
}

double wg_best_floor(const wg_best *b)
{
    if (b->n < b->budget) return 0;
    return b->value[worst(b->value, b->n)];
}

void wg_best_offer(wg_best *b, int parent, int32_t token, double value)
{
    int at = b->fresh;
    if (!(value > wg_best_floor(b))) return;
    if (b->fresh < b->budget) {
        b->fresh++;
    } else { /* the worst one makes room; the others keep their order, since among equals the earlier stays */
        at = worst(b->fresh_value, b->fresh);
        if (b->fresh_value[at] >= value) return;
        const size_t after = (size_t)(b->fresh - 1 - at);
        memmove(&b->fresh_value[at], &b->fresh_value[at + 1], after * sizeof *b->fresh_value);
        memmove(&b->fresh_token[at], &b->fresh_token[at + 1], after * sizeof *b->fresh_token);
        memmove(&b->fresh_parent[at], &b->fresh_parent[at + 1], after * sizeof *b->fresh_parent);
        at = b->fresh - 1;
    }
    b->fresh_value[at] = value;
    b->fresh_token[at] = token;
    b->fresh_parent[at] = (int16_t)parent;
}

/* Marks the best `budget` of the old nodes and the candidates, which are numbered after them; returns how many stay. */
static int select_best(const wg_best *b, bool *stays)
{
    const int all = b->n + b->fresh, most = all < b->budget ? all : b->budget;
    memset(stays, 0, (size_t)all * sizeof *stays);
    for (int kept = 0; kept < most; kept++) {
        int best = -1;
        double value = -1;
        for (int i = 0; i < all; i++) { /* the first of equals: old nodes precede new ones, so shallow ones deep ones */
            const double v = i < b->n ? b->value[i] : b->fresh_value[i - b->n];
            if (!stays[i] && v > value) value = v, best = i;
        }
        stays[best] = true;
    }
    return most;
}

int wg_best_tree(wg_best *b, wg_tree *t, int16_t from[WG_TREE_MAX], double *gain)
{
    bool stays[2 * WG_TREE_MAX];
    int16_t now[WG_TREE_MAX];
    wg_tree old;
    const wg_no_draft no_draft = t->no_draft;
    old.n = t->n;
    memcpy(old.token, t->token, (size_t)t->n * sizeof *t->token);
    memcpy(old.parent, t->parent, (size_t)t->n * sizeof *t->parent);
    select_best(b, stays);
    *gain = 0;
    wg_tree_reset(t, old.token[0], WG_LAW_FIXED);
    t->no_draft = no_draft;
    from[0] = now[0] = 0;
    for (int i = 1; i < old.n; i++) {
        if (!stays[i]) {
            *gain -= b->value[i];
            continue;
        }
        now[i] = (int16_t)wg_tree_push(t, now[old.parent[i]], old.token[i], -1);
        from[now[i]] = (int16_t)i;
        b->value[now[i]] = b->value[i];
    }
    const int kept = t->n;
    for (int i = 0; i < b->fresh; i++) {
        if (!stays[old.n + i]) continue;
        const int node = wg_tree_push(t, now[b->fresh_parent[i]], b->fresh_token[i], -1);
        *gain += b->value[node] = b->fresh_value[i];
    }
    b->n = t->n;
    b->level++;
    b->fresh = 0;
    return kept;
}

int wg_best_pick(const wg_best *b, const wg_tree *t, int width, int16_t node[WG_TREE_MAX])
{
    int n = 0;
    for (int i = 1; i < t->n; i++) {
        if (wg_tree_depth(t, i) != b->level) continue;
        int better = 0; /* equals are ordered by number */
        for (int k = 1; k < t->n; k++)
            better += wg_tree_depth(t, k) == b->level && (b->value[k] > b->value[i] || (b->value[k] == b->value[i] && k < i));
        if (better < width) node[n++] = (int16_t)i;
    }
    return n;
}
