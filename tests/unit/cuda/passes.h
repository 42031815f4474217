/* SPDX-License-Identifier: MIT
 * For the tests of the GPU device of core/model: a small model, its cache and one sequence on it, and passes over these. */
#ifndef WG_TESTS_UNIT_CUDA_PASSES_H
#define WG_TESTS_UNIT_CUDA_PASSES_H

#include "core/model/model.h"
#include "tests/simt/simt_check.h"
#include "tests/unit/model/tiny_model.h"

static wg_error err;

enum { LAYERS = 2, VOCAB = 40, CONTEXT = 400, ROWS = 330 };

typedef struct setup {
    wg_weights *w;
    wg_model *m;
    wg_kv *kv;
    wg_kv_seq *seq;
    wg_batch b;
} setup;

static inline wg_weights *weights(void)
{
    static tiny shape = { .layers = LAYERS,
                          .dim = 32,
                          .heads = 2,
                          .kv_heads = 1,
                          .head_dim = 16,
                          .hidden = 48,
                          .vocab = VOCAB,
                          .context = CONTEXT,
                          .type = { WG_F16, WG_F16, WG_Q8_0, WG_F32 },
                          .norm_type = WG_F32,
                          .seed = 3 };
    wg_weights *w;
    char path[64];
    cr_assert_eq(tiny_open(&shape, &w, path, &err), WG_OK, "%s", err.text);
    return w;
}

static inline wg_status setup_open(setup *s, const wg_device *d, wg_weights *w)
{
    const wg_model_options o = { .kv_type = WG_F16, .max_rows = ROWS };
    *s = (setup){ .w = w };
    WG_TRY(wg_model_open(&s->m, w, d, &o, &err));
    WG_TRY(wg_kv_open(&s->kv, 16, 60, CONTEXT + 64, &err));
    wg_lm *lm = wg_model_lm(s->m);
    int room = ROWS;
    WG_TRY(wg_lm_attach(lm, s->kv, &err));
    WG_TRY(lm->class->verify_open(lm, WG_RULE_TRAVERSAL, 2, &room, &err));
    WG_TRY(wg_kv_seq_open(s->kv, &s->seq, &err));
    return wg_batch_open(&s->b, ROWS, &err);
}

static inline void setup_close(setup *s)
{
    wg_batch_close(&s->b);
    wg_kv_seq_close(s->seq);
    wg_model_close(s->m);
    wg_kv_close(s->kv); /* after its model: pages keep the device */
}

/* Tokens 1, 2, ... behind what is committed; logits of the last `asked`. */
static inline wg_status pass(setup *s, int n, int asked, float *logits)
{
    int32_t token[ROWS];
    const int len = wg_kv_len(s->seq);
    for (int i = 0; i < n; i++) token[i] = (len + i) * 7 % VOCAB;
    WG_TRY(wg_kv_reserve(s->seq, n, &err));
    wg_batch_clear(&s->b);
    wg_batch_chain(&s->b, s->seq, len, token, n, asked);
    return wg_lm_forward(wg_model_lm(s->m), &s->b, logits, &err);
}

#endif
