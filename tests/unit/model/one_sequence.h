/* SPDX-License-Identifier: MIT
 * A model on the CPU over a cache with one sequence, for tests of forward passes. */
#ifndef WG_TESTS_ONE_SEQUENCE_H
#define WG_TESTS_ONE_SEQUENCE_H

#include <criterion/criterion.h>

#include "core/model/model.h"

typedef struct setup {
    wg_device device;
    wg_model *model;
    wg_lm *lm;
    wg_kv *kv;
    wg_kv_seq *seq;
    wg_batch batch;
} setup;

static inline void must(wg_status s, const wg_error *err) { cr_assert(s == WG_OK, "%s", err->text); }

static inline setup setup_open(const wg_weights *w, int kv_type, int max_rows)
{
    setup u;
    wg_error err;
    const wg_model_options opt = { .kv_type = kv_type, .max_rows = max_rows };
    must(wg_device_cpu(&u.device, NULL, &err), &err);
    must(wg_model_open(&u.model, w, &u.device, &opt, &err), &err);
    u.lm = wg_model_lm(u.model);
    must(wg_kv_open(&u.kv, 16, 64, 1024, &err), &err);
    must(wg_lm_attach(u.lm, u.kv, &err), &err);
    must(wg_kv_seq_open(u.kv, &u.seq, &err), &err);
    must(wg_batch_open(&u.batch, max_rows ? max_rows : 512, &err), &err);
    return u;
}

static inline void setup_close(setup *u)
{
    wg_batch_close(&u->batch);
    wg_kv_seq_close(u->seq);
    wg_kv_close(u->kv);
    wg_model_close(u->model);
}

/* Appends n tokens in one pass; logits: (n, vocab), of all of them. */
static inline void feed(setup *u, const int32_t *token, int n, float *logits)
{
    wg_error err;
    wg_batch_clear(&u->batch);
    must(wg_kv_reserve(u->seq, n, &err), &err);
    wg_batch_chain(&u->batch, u->seq, wg_kv_len(u->seq), token, n, n);
    must(wg_lm_forward(u->lm, &u->batch, logits, &err), &err);
    wg_kv_commit_chain(u->seq, n);
}

#endif
