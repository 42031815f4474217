/* SPDX-License-Identifier: MIT
 * The table model. A token's "key" is its id, its "value" is its position, both as one f32. */
#include "core/model/lm_table.h"

#include "core/base/mem.h"
#include "kernels/philox.h"

static wg_status attach(wg_lm *lm, wg_kv *kv, wg_error *err) { return wg_kv_space(kv, 1, 1, 1, WG_F32, &lm->space, err); }

/* Folds the last `order` tokens that a row sees, itself first, into 64 bits. */
static wg_status context_of(const wg_lm_table *t, const wg_row *row, const wg_kv_view *v, uint64_t *out, wg_error *err)
{
    wg_mask anc = row->anc;
    const int seen = wg_mask_count(&anc);
    uint64_t hash = t->seed;
    for (int i = 0; i < t->order && i <= row->position; i++) {
        const int bit = wg_mask_take_last(&anc), slot = bit >= 0 ? row->tail + bit : row->prefix - 1 - (i - seen);
        if (slot < 0) return wg_fail(err, WG_EINVAL, "table model: the row at position %d sees too little", (int)row->position);
        const char *key = wg_kv_key4(v, slot);
        const int token = (int)*(const float *)key, position = (int)*(const float *)(key + v->value_at);
        if (position != row->position - i)
            return wg_fail(err, WG_EINVAL, "table model: slot %d holds position %d; expected %d", slot, position,
                           row->position - i);
        const wg_philox w = wg_philox_at(hash, (uint32_t)token, (uint32_t)i, 0, 0);
        hash = (uint64_t)w.v[0] << 32 | w.v[1];
    }
    *out = hash;
    return WG_OK;
}

static void fill(const wg_lm_table *t, uint64_t hash, float *logits)
{
    for (int i = 0; i < t->lm.vocab; i += 4) {
        const wg_philox w = wg_philox_at(hash, (uint32_t)i, 0, 0, 1);
        for (int j = 0; j < 4 && i + j < t->lm.vocab; j++)
            logits[i + j] = (float)(t->sharpness * (2 * (double)wg_philox_float(w.v[j]) - 1));
    }
}

static wg_status forward(wg_lm *lm, const wg_batch *batch, float *logits, wg_error *err)
{
    wg_lm_table *t = (wg_lm_table *)lm;
    wg_assert(!batch->taps); /* it has no hidden states, and wg_taps_open refuses it */
    if (t->fail_in > 0 && --t->fail_in == 0) return wg_fail(err, WG_EINTERRUPTED, "table model: this pass was to fail");
    for (int r = 0; r < batch->n; r++) {
        const wg_row *row = &batch->row[r];
        const wg_kv_view v = wg_kv_view_of(row->kv, lm->space, 0);
        char *key = wg_kv_key4(&v, row->slot);
        uint64_t hash = 0;
        *(float *)key = (float)row->token;
        *(float *)(key + v.value_at) = (float)row->position;
        WG_TRY(context_of(t, row, &v, &hash, err));
        if (row->logits >= 0) fill(t, hash, logits + (size_t)row->logits * (size_t)lm->vocab);
    }
    for (int r = 0; r < batch->n; r++) wg_kv_wrote(batch->row[r].kv, lm->space, batch->row[r].slot);
    return WG_OK;
}

static void close_lm(wg_lm *lm) { wg_lm_table_close((wg_lm_table *)lm); }

static const wg_lm_class table_class = { .name = "table", .attach = attach, .forward = forward, .close = close_lm };

wg_status wg_lm_table_open(wg_lm_table **out, int vocab, int order, uint64_t seed, double sharpness, int context, wg_error *err)
{
    if (vocab < 1 || vocab > 1 << 24 || order < 0 || order > WG_LM_TABLE_ORDER || context < 1)
        return wg_fail(err, WG_EINVAL, "table model: vocabulary %d, order %d, context %d: expected 1..%d, 0..%d, 1..", vocab,
                       order, context, 1 << 24, (int)WG_LM_TABLE_ORDER);
    wg_lm_table *t = wg_calloc(1, sizeof *t);
    if (!t) return wg_nomem(err, sizeof *t, "a table model");
    t->lm = (wg_lm){ .class = &table_class, .vocab = vocab, .context = context, .space = -1 };
    t->order = order;
    t->seed = seed;
    t->sharpness = sharpness;
    *out = t;
    return WG_OK;
}

void wg_lm_table_close(wg_lm_table *t) { wg_free(t); }
