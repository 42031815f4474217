/* SPDX-License-Identifier: MIT
 * A transformer as a language model: its passes over a batch, each of the stages of forward.c, and its storage in a cache. */
#include "core/model/ranked_impl.h"
#include "core/model/taps.h"

#ifdef WG_HARD
static bool holds(const wg_batch *b, const wg_row *r, int space, int slot)
{
    bool found = wg_kv_holds(r->kv, space, slot);
    for (int i = 0; i < b->n && !found; i++) found = b->row[i].kv == r->kv && b->row[i].slot == slot;
    return found;
}

/* Every slot that a row sees holds a key and a value, from before or from this batch. */
static void check_rows(const wg_batch *b, int space)
{
    for (int i = 0; i < b->n; i++) {
        const wg_row *r = &b->row[i];
        for (int s = 0; s < r->prefix; s++) wg_assert((s >= r->sinks && s < r->sinks + r->gap) || holds(b, r, space, s));
        wg_mask left = r->anc;
        for (int k; (k = wg_mask_take(&left)) >= 0;) wg_assert(holds(b, r, space, r->tail + k));
    }
}
#else
static void check_rows(const wg_batch *b, int space) { (void)b, (void)space; }
#endif

wg_batch wg_model_within(wg_model *m, const wg_batch *b)
{
    wg_batch seen = *b;
    m->within = NULL;
    if (m->window == 0) return seen;
    for (int i = 0; i < b->n; i++) m->seen[i] = wg_row_within(b->row[i], m->window);
    if (m->all_windowed) seen.row = m->seen;
    else m->within = m->seen;
    return seen;
}

wg_status wg_model_pass(wg_model *m, const wg_layer_plan *plan, int space, const wg_batch *b, float *logits, wg_error *err)
{
    if (b->n > m->max_rows)
        return wg_fail(err, WG_EINVAL, "a batch of %d rows: this model was opened for at most %d; raise max_rows or send fewer",
                       b->n, m->max_rows);
    wg_assert(space >= 0); /* attached */
    wg_assert(!b->taps || b->taps->lm == &m->lm);
    for (int i = 0; i < b->n; i++) {
        const wg_row *r = &b->row[i];
        const int end = wg_kv_len(r->kv) + wg_kv_tail(r->kv);
        wg_assert(r->slot >= 0 && r->slot < end && r->prefix >= 0 && r->prefix <= end);
        wg_assert(r->sinks >= 0 && r->gap >= 0 && r->sinks + r->gap <= r->prefix);
    }
    const wg_batch seen = wg_model_within(m, b);
    check_rows(&seen, space);
    wg_device *d = &m->device;
    const wg_pass pass = { .model = m,
                           .plan = plan,
                           .row = seen.row,
                           .within = m->within,
                           .rows = b->n,
                           .asked = b->logits,
                           .max_rows = m->max_rows,
                           .space = space,
                           .logits = logits,
                           .width = m->head_rows,
                           .verify = m->verify,
                           .taps = b->taps };
    if (b->taps) b->taps->rows = 0;
    if (m->ranked && b->n == 0) return WG_OK;
    if (m->ranked) WG_TRY(wg_ranked_tell_pass(m, plan, space, b, err));
    if (d->class->begin) d->class->begin(d, &pass);
    if (!d->class->again) wg_model_stages(m, plan, space, &seen, logits);
    while (d->class->again && d->class->again(d)) wg_model_stages(m, plan, space, &seen, logits);
    if (d->class->finish) WG_TRY(d->class->finish(d, err));
    if (m->ranked) WG_TRY(wg_ranked_end(m, err));
    if (b->taps) b->taps->rows = b->n;
    for (int i = 0; i < b->n; i++) wg_kv_wrote(b->row[i].kv, space, b->row[i].slot);
    return WG_OK;
}

static wg_status model_forward(wg_lm *lm, const wg_batch *b, float *logits, wg_error *err)
{
    wg_model *m = (wg_model *)lm;
    return wg_model_pass(m, &(wg_layer_plan){ .layers = m->arch.layers }, lm->space, b, logits, err);
}

static wg_status model_verify_open(wg_lm *lm, wg_rule_kind rule, int trees, int *rows, wg_error *err)
{
    wg_model *m = (wg_model *)lm;
    if (m->device.class->verify_open) return m->device.class->verify_open(&m->device, rule, lm->vocab, trees, rows, err);
    *rows = 0;
    return WG_OK;
}

static wg_status model_verify(wg_lm *lm, const wg_batch *b, const wg_verify_spec *s, wg_error *err)
{
    wg_model *m = (wg_model *)lm;
    m->verify = s;
    const wg_status status = model_forward(lm, b, NULL, err);
    m->verify = NULL;
    return status;
}

wg_status wg_model_attach(wg_model *m, wg_kv *kv, int *space, wg_error *err)
{
    const wg_arch *a = &m->arch;
    if (m->ranked) return wg_ranked_attach(m, kv, space, err);
    const wg_pass_shape shape = {
        .max_rows = m->max_rows, .heads = a->heads, .head_dim = a->head_dim, .vocab = a->vocab, .kv_type = m->kv_type
    };
    if (m->device.class->attach) WG_TRY(m->device.class->attach(&m->device, kv, &shape, err));
    WG_TRY(wg_kv_space_at(kv, m->device.memory, a->layers, a->kv_heads, a->head_dim, m->kv_type, space, err));
    if (m->all_windowed) wg_kv_window(kv, *space, m->window);
    return WG_OK;
}

static wg_status model_attach(wg_lm *lm, wg_kv *kv, wg_error *err)
{
    return wg_model_attach((wg_model *)lm, kv, &lm->space, err);
}

static wg_model *model_of(const wg_lm *lm) { return (wg_model *)lm; }
static void model_identity(const wg_lm *lm, wg_lm_identity *out) { *out = ((const wg_model *)lm)->identity; }
static void model_close(wg_lm *lm) { wg_model_close((wg_model *)lm); }

const wg_lm_class wg_model_lm_class = {
    .name = "transformer",
    .attach = model_attach,
    .forward = model_forward,
    .verify_open = model_verify_open,
    .verify = model_verify,
    .close = model_close,
    .transformer = model_of,
    .identity = model_identity,
};
