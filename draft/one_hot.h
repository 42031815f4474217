/* SPDX-License-Identifier: MIT
 * The common part of drafters without a model: tokens that are not drawn (law FIXED, a one-hot row of q each). */
#ifndef WG_DRAFT_ONE_HOT_H
#define WG_DRAFT_ONE_HOT_H

#include "core/engine/drafter.h"

/* Appends a child with a one-hot row; returns its number, or -1 when the tree is full. */
static inline int wg_one_hot_push(wg_tree *t, int parent, int32_t token, wg_rows *q)
{
    if (t->n >= WG_TREE_MAX) return -1;
    const int row = wg_rows_push(q);
    if (row >= 0) q->point[row] = token;
    return wg_tree_push(t, parent, token, row);
}

/* The largest depth of a draft for this sequence, at most k; 0: no draft. */
static inline int wg_one_hot_depth(const wg_seq *s, int k)
{
    if (k > WG_TREE_MAX - 1) k = WG_TREE_MAX - 1;
    if (k > wg_seq_room(s)) k = wg_seq_room(s);
    return k > 0 ? k : 0;
}

/* Defines `propose` of a drafter whose drafts are each made alone, by propose_one(drafter, sequence, tree, rows of q). */
#define WG_PROPOSE_EACH(type)                                                                                                  \
    static wg_status propose(wg_drafter *d, wg_seq *const *seq, int n, wg_tree *out, wg_rows *q, wg_error *err)                \
    {                                                                                                                          \
        (void)err;                                                                                                             \
        for (int i = 0; i < n; i++) propose_one((type *)d, seq[i], &out[i], q);                                                \
        return WG_OK;                                                                                                          \
    }                                                                                                                          \
    _Static_assert(offsetof(type, base) == 0, "a drafter begins with its base")

/* Members that the classes of all look-up drafters share; `open`, `propose` and `close` are the drafter's own. */
#define WG_LOOKUP_MEMBERS .stands_alone = true, .laws = WG_LAW_FIXED, .open = open, .propose = propose, .close = close

/* Mixes a key for hash tables (a multiply-and-shift finaliser; bijective). */
static inline uint64_t wg_hash_mix(uint64_t x)
{
    x = (x ^ x >> 32) * 0xd6e8feb86659fd93ull;
    x = (x ^ x >> 32) * 0xd6e8feb86659fd93ull;
    return x ^ x >> 32;
}

#endif
