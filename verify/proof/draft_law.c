/* SPDX-License-Identifier: MIT
 * Comparing drafts with their declared law (draft_law.h). In the order of nodes, given the nodes before it and its parent, a
 * node's token must have the law of its row. */
#include "verify/proof/draft_law.h"

#include <math.h>
#include <string.h>

#include "core/base/mem.h"

void wg_draft_law_clear(wg_draft_law *l)
{
    for (int i = 0; i < l->n; i++) wg_free(l->seen[i].q);
    l->n = 0;
    l->full = false;
}

void wg_draft_law_close(wg_draft_law *l)
{
    wg_draft_law_clear(l);
    wg_free(l->seen);
    *l = (wg_draft_law){ .vocab = l->vocab };
}

wg_status wg_draft_law_add(wg_draft_law *l, uint64_t after, double chance, const wg_tree *t, wg_rows *q, wg_error *err)
{
    const size_t V = (size_t)l->vocab;
    if (l->n > 0 && l->seen[l->n - 1].after == after) return WG_OK;
    l->full = l->full || l->n == WG_DRAFT_LAW_MOST;
    if (l->full) return WG_OK;
    WG_TRY(wg_grow((void **)&l->seen, &l->cap, (size_t)l->n + 1, sizeof *l->seen, "drafts", err));
    wg_seen_draft *d = &l->seen[l->n];
    *d = (wg_seen_draft){ .after = after, .chance = chance, .tree = *t };
    if (!(d->q = wg_calloc((size_t)t->n * V, sizeof *d->q)))
        return wg_nomem(err, (size_t)t->n * V * sizeof *d->q, "a draft's q");
    l->n++;
    for (int i = 0; i < t->n; i++)
        for (int x = 0; x < l->vocab; x++)
            d->q[(size_t)i * V + (size_t)x] = i > 0 && t->qrow[i] >= 0 ? wg_rows_prob(q, t->qrow[i], x) : NAN;
    return WG_OK;
}

static bool same_before(const wg_tree *a, const wg_tree *b, int node)
{
    bool same = a->law == b->law && a->n >= node && b->n >= node;
    for (int i = 0; same && i < node; i++) same = a->token[i] == b->token[i] && a->parent[i] == b->parent[i];
    return same;
}

/* Whether both drafts have the node after the same nodes and below the same parent. */
static bool comparable(const wg_tree *a, const wg_tree *b, int node)
{
    return same_before(a, b, node) && a->n > node && b->n > node && a->parent[node] == b->parent[node];
}

/* The declared law of a node's token. */
static void declared(const wg_draft_law *l, const wg_seen_draft *d, int node, double *want)
{
    const wg_tree *t = &d->tree;
    double sum = 0;
    memcpy(want, d->q + (size_t)node * (size_t)l->vocab, (size_t)l->vocab * sizeof *want);
    if (t->law == WG_LAW_FIXED)
        for (int x = 0; x < l->vocab; x++) want[x] = x == t->token[node];
    if (t->law != WG_LAW_WITHOUT_REPLACEMENT) return;
    for (int i = 1; i < node; i++)
        if (t->parent[i] == t->parent[node]) want[t->token[i]] = 0;
    for (int x = 0; x < l->vocab; x++) sum += want[x];
    for (int x = 0; x < l->vocab; x++) want[x] /= sum;
}

/* The law of a node's token over the drafts comparable with draft i; false: i is not the first of them. */
static bool law_of(const wg_draft_law *l, int i, int node, wg_draw_deviation *out)
{
    const wg_seen_draft *d = &l->seen[i];
    const size_t V = (size_t)l->vocab, row = (size_t)node * V;
    double total = 0;
    *out = (wg_draw_deviation){ .tree = &d->tree, .node = node };
    for (int k = 0; k < l->n; k++) {
        const wg_seen_draft *other = &l->seen[k];
        if (!comparable(&d->tree, &other->tree, node)) continue;
        if (k < i) return false;
        out->got[other->tree.token[node]] += other->chance;
        total += other->chance;
        out->varies |= d->tree.law != WG_LAW_FIXED && memcmp(d->q + row, other->q + row, V * sizeof *d->q) != 0;
    }
    declared(l, d, node, out->want);
    for (int x = 0; x < l->vocab; x++) {
        out->got[x] /= total;
        const double off = fabs(out->got[x] - out->want[x]);
        if (!(off <= out->deviation)) out->deviation = off; /* true for NaN, too */
    }
    return true;
}

wg_draw_deviation wg_draft_law_draws(const wg_draft_law *l, double bound, double *most, long *drawn)
{
    wg_draw_deviation first = { .tree = NULL };
    for (int i = 0; i < l->n; i++)
        for (int node = 1; node < l->seen[i].tree.n && l->seen[i].tree.law != WG_LAW_COUPLED; node++) {
            wg_draw_deviation d;
            if ((first.tree && first.node <= node) || !law_of(l, i, node, &d)) continue;
            ++*drawn;
            if (d.varies || !(d.deviation <= bound)) first = d;
            else if (d.deviation > *most) *most = d.deviation;
        }
    return first;
}

int wg_draft_law_groups(const wg_draft_law *l, const wg_tree **tree, bool *undeclared)
{
    for (int i = 0; i < l->n; i++) {
        const wg_tree *t = *tree = &l->seen[i].tree;
        int children;
        for (int node = 0; node < t->n; node++) {
            int first = wg_tree_child(t, node, node);
            if (first < 0) first = t->n;
            for (int k = 0; k < l->n && t->group[node] >= 0; k++)
                if (same_before(t, &l->seen[k].tree, first) && l->seen[k].tree.group[node] != t->group[node]) return node;
        }
        const int node = wg_tree_undeclared(t, &children);
        if (node >= 0 && t->group[node] >= 0) return node;
        *undeclared = *undeclared || node >= 0;
    }
    return -1;
}
