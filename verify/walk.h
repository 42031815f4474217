/* SPDX-License-Identifier: MIT
 * The frame of every rule that settles one node at a time: from the root, ask for the child to go to; where there is none, the
 * step ends with `next`. By the chain rule the emitted text has the law of p when each node's token has, so such a rule is
 * proved at one node. */
#ifndef WG_VERIFY_WALK_H
#define WG_VERIFY_WALK_H

#include "core/engine/verifier.h"

/* One node to settle. `chance` is the step's (decisions: ACCEPT), `at` the emitted token's own (NEXT, index 0). */
typedef struct wg_crossing {
    const wg_tree *tree;
    const wg_rows *p, *q;
    const wg_chance *chance, *at;
    int node, prow;
} wg_crossing;

/* The child to go to; or -1, and then *next is the token that is emitted instead. A node without children: draws from p. */
typedef int wg_settle(const void *opt, const wg_crossing *c, int32_t *next);

void wg_walk(wg_settle *settle, const void *opt, const wg_tree *tree, const wg_rows *p, const wg_rows *q,
             const wg_chance *chance, wg_path *out);

/* How many children the node has, and their numbers. */
int wg_crossing_children(const wg_crossing *c, int16_t child[WG_TREE_MAX]);

/* `next` from p; from weights, or from p when they have no mass (p and q equal to rounding; METHODS B15-1). Weights are what is
 * left of p: outside the support of its row nobody reads them. */
static inline int32_t wg_next(const wg_crossing *c) { return wg_rows_pick(c->p, c->prow, c->at, WG_DRAW_NEXT, 0); }
static inline int32_t wg_next_of(const wg_crossing *c, const double *weight, double mass)
{
    return mass > 0 ? wg_rows_pick_of(c->p, c->prow, weight, c->at, WG_DRAW_NEXT, 0) : wg_next(c);
}

/* Settles the children as a set that was chosen without drawing: topk.c. */
wg_settle wg_settle_set;

#endif
