/* SPDX-License-Identifier: MIT
 * Passes of a head over the texts of tests: features of a text, its rows, and the nodes of a draft tree. */
#ifndef WG_TESTS_HEAD_ROWS_H
#define WG_TESTS_HEAD_ROWS_H

#include "core/model/taps.h"
#include "draft/head/head.h"
#include "tests/unit/model/one_sequence.h"

/* Reads the taps of the first n tokens into the head's features. */
static inline void read_taps(setup *u, wg_head *h, const int *tap, const int32_t *token, int n)
{
    wg_error err;
    wg_taps *taps;
    const int n_taps = wg_head_spec_of(h)->n_taps;
    float *x = malloc((size_t)n * 3 * 64 * sizeof *x), logits[200];
    must(wg_taps_open(&taps, u->lm, tap, n_taps, &err), &err);
    must(wg_kv_reserve(u->seq, n, &err), &err);
    wg_batch_clear(&u->batch);
    wg_batch_chain(&u->batch, u->seq, 0, token, n, 1);
    u->batch.taps = taps;
    must(wg_lm_forward(u->lm, &u->batch, logits, &err), &err);
    must(wg_taps_read(taps, 0, n, x, &err), &err);
    wg_kv_commit_chain(u->seq, n);
    must(wg_kv_reserve(u->seq, 1, &err), &err);
    for (int at = 0; at < n; at += WG_HEAD_ROWS)
        wg_head_read(h, u->seq, x + (size_t)at * (size_t)n_taps * (size_t)u->lm->hidden.dim,
                     n - at < WG_HEAD_ROWS ? n - at : WG_HEAD_ROWS);
    wg_kv_rollback(u->seq);
    wg_taps_close(taps);
    free(x);
}

/* Rows first .. last of the text, `at_once` in a pass. */
static inline void read_text(setup *u, wg_head *h, const int32_t *token, int last, int at_once, float *logits)
{
    wg_error err;
    wg_lm *lm = wg_head_lm(h);
    const size_t width = (size_t)wg_head_outputs(h);
    cr_assert(wg_kv_restart(u->seq, lm->space, 1));
    must(wg_kv_reserve(u->seq, 1, &err), &err);
    for (int at = 1; at <= last;) {
        const int n = last + 1 - at < at_once ? last + 1 - at : at_once;
        wg_batch_clear(&u->batch);
        wg_batch_chain(&u->batch, u->seq, at, token + at, n, n);
        wg_batch_rebase(&u->batch, 0, 1);
        must(wg_lm_forward(lm, &u->batch, logits + (size_t)(at - 1) * width, &err), &err);
        at += n;
    }
}

/* The nodes of a tree, one after another: row i - 1 of logits is that of node i. */
static inline void read_tree(setup *u, wg_head *h, const wg_tree *t, float *logits)
{
    wg_error err;
    must(wg_kv_reserve(u->seq, t->n, &err), &err);
    for (int i = 1; i < t->n; i++) {
        wg_batch_clear(&u->batch);
        wg_batch_node(&u->batch, u->seq, i, wg_tree_depth(t, i), t->anc[i], t->token[i], true);
        wg_batch_rebase(&u->batch, 0, 1);
        must(wg_lm_forward(wg_head_lm(h), &u->batch, logits + (size_t)(i - 1) * (size_t)wg_head_outputs(h), &err), &err);
    }
}

#endif
