/* SPDX-License-Identifier: MIT
 * Rows of a tree over the cache of one sequence, for tests of forward passes. */
#ifndef WG_TESTS_TREE_ROWS_H
#define WG_TESTS_TREE_ROWS_H

#include "tests/unit/model/one_sequence.h"

/* The last tokens as one path of a tree, each beside a sibling that no other node sees. */
static inline void feed_tree(setup *u, const int32_t *token, int n, float *logits)
{
    wg_error err;
    must(wg_kv_reserve(u->seq, 2 * n, &err), &err);
    wg_batch_clear(&u->batch);
    wg_mask path = { 0 };
    for (int i = 0; i < n; i++) {
        const wg_mask above = path;
        path = i ? wg_mask_with(above, 2 * i) : wg_mask_bit(0);
        wg_batch_node(&u->batch, u->seq, 2 * i, i, path, token[i], true);
        wg_batch_node(&u->batch, u->seq, 2 * i + 1, i, i ? wg_mask_with(above, 2 * i + 1) : wg_mask_bit(1),
                      (token[i] + 1) % u->lm->vocab, false);
    }
    must(wg_lm_forward(u->lm, &u->batch, logits, &err), &err);
    wg_kv_rollback(u->seq);
}

#endif
