/* SPDX-License-Identifier: MIT
 * A drafter that does not know how the target's rows are made, for the laws of sequences with rows of their own: two
 * children at the root, one behind each, of any sibling law. */
#ifndef WG_TESTS_LAW_BLIND_DRAFTER_H
#define WG_TESTS_LAW_BLIND_DRAFTER_H

#include "core/engine/seq_rows.h"
#include "tests/law/engine_law.h"

static wg_sibling_law blind_law;

typedef struct blind {
    wg_drafter base;
} blind;

static inline int blind_row(const wg_seq *s, const wg_tree *t, int node, wg_rows *q)
{
    const int V = q->vocab;
    const int row = wg_rows_push(q);
    double sum = 0, *p = wg_rows_at(q, row);
    for (int x = 0; x < V; x++) sum += p[x] = 1 + (x + t->token[node] + s->n + wg_tree_depth(t, node)) % V;
    for (int x = 0; x < V; x++) p[x] /= sum;
    return row;
}

static inline void blind_grow(const wg_seq *s, wg_tree *t, int node, int children, wg_rows *q)
{
    const int V = q->vocab, row = blind_law == WG_LAW_FIXED ? -1 : blind_row(s, t, node, q);
    const wg_chance at = wg_chance_at(&s->chance, wg_tree_depth(t, node));
    double left[EXACT_VOCAB] = { 0 };
    for (int x = 0; x < V; x++) left[x] = row < 0 ? 1 : wg_rows_prob(q, row, x);
    wg_tree_group(t, node, children);
    for (int k = 0; k < children; k++) {
        int32_t x = (int32_t)((t->token[node] + 2 * k + 1) % V);
        if (blind_law == WG_LAW_COUPLED) x = wg_chance_race(&at, WG_DRAW_COUPLED, wg_list_0, NULL, left, V);
        else if (row >= 0) x = wg_chance_pick(&s->chance, WG_DRAW_DRAFT, t->n, left, V);
        if (blind_law & (WG_LAW_WITHOUT_REPLACEMENT | WG_LAW_COUPLED)) left[x] = 0;
        wg_tree_push(t, node, x, row);
    }
}

static inline wg_status blind_propose(wg_drafter *d, wg_seq *const *seq, int n, wg_tree *out, wg_rows *q, wg_error *err)
{
    (void)d, (void)err;
    for (int i = 0; i < n; i++) {
        const int room = wg_seq_room(seq[i]);
        wg_tree_reset(&out[i], seq[i]->token[seq[i]->n - 1], blind_law);
        if (room > 0) blind_grow(seq[i], &out[i], 0, 2, q);
        for (int node = 1; node <= 2 && room > 1; node++) blind_grow(seq[i], &out[i], node, 1, q);
    }
    return WG_OK;
}

static const wg_drafter_class blind_class = {
    .name = "blind", .size = sizeof(blind), .laws = WG_LAWS, .propose = blind_propose
};

/* The same with one law declared, so that the engine compares it with the rule's. */
static inline wg_drafter_class blind_of(wg_sibling_law one)
{
    wg_drafter_class c = blind_class;
    blind_law = one;
    c.laws = one;
    return c;
}

#endif
