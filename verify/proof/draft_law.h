/* SPDX-License-Identifier: MIT
 * The law of a drafter's drafts after one past, by enumeration: each different draft with its probability, compared node by
 * node with the rows of q and the numbers of children that it declares. */
#ifndef WG_VERIFY_PROOF_DRAFT_LAW_H
#define WG_VERIFY_PROOF_DRAFT_LAW_H

#include <stddef.h>

#include "core/dist/rows.h"
#include "core/dist/tree.h"

enum { WG_DRAFT_LAW_VOCAB = 8, WG_DRAFT_LAW_MOST = 4096 }; /* tokens; different drafts after one past */

/* One draft: the outcomes until its end (wg_chance_tree_past), and its probability given the past. */
typedef struct wg_seen_draft {
    uint64_t after;
    double chance;
    wg_tree tree;
    double *q; /* (nodes, vocab) the row that each node names; NaN: none */
} wg_seen_draft;

typedef struct wg_draft_law {
    int vocab;
    uint64_t past; /* outcomes before the drafts */
    wg_seen_draft *seen;
    int n;
    size_t cap;
    bool full; /* the list is full; further drafts are missing */
} wg_draft_law;

/* Adds a draft unless it equals the last one, since an enumeration visits runs with the same draft one after another.
 * ENOMEM. */
wg_status wg_draft_law_add(wg_draft_law *l, uint64_t after, double chance, const wg_tree *t, wg_rows *q, wg_error *err);
void wg_draft_law_clear(wg_draft_law *l);
void wg_draft_law_close(wg_draft_law *l);

/* A node whose token has another law than declared, given the nodes before it. */
typedef struct wg_draw_deviation {
    const wg_tree *tree; /* a draft with the node; NULL: no node deviates */
    int node;
    bool varies; /* its row of q depends on its token */
    double deviation, got[WG_DRAFT_LAW_VOCAB], want[WG_DRAFT_LAW_VOCAB];
} wg_draw_deviation;
/* The first node with a deviation above `bound`; else *most is the largest deviation. Drafts of law COUPLED are not compared,
 * since their law is unknown. *drawn: number of compared draws. */
wg_draw_deviation wg_draft_law_draws(const wg_draft_law *l, double bound, double *most, long *drawn);

/* A node whose declared number of children depends on later nodes or is not that of its children; -1: none. *undeclared: some
 * node has several children without a declared number. */
int wg_draft_law_groups(const wg_draft_law *l, const wg_tree **tree, bool *undeclared);

#endif
