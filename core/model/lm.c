/* SPDX-License-Identifier: MIT
 * Entry of every language model: checks the batch, measures the time. */
#include "core/model/lm.h"

#include "core/base/clock.h"

wg_status wg_lm_attach(wg_lm *lm, wg_kv *kv, wg_error *err)
{
    lm->space = -1;
    return lm->class->attach ? lm->class->attach(lm, kv, err) : WG_OK;
}

static wg_status check(const wg_lm *lm, const wg_batch *b, wg_error *err)
{
    int asked = 0;
    for (int i = 0; i < b->n; i++) {
        const wg_row *r = &b->row[i];
        if (r->token < 0 || r->token >= lm->vocab)
            return wg_fail(err, WG_EINVAL, "row %d: token %d is not in the vocabulary: expected 0..%d", i, (int)r->token,
                           lm->vocab - 1);
        if (r->position < 0 || r->position >= lm->context)
            return wg_fail(err, WG_ECONTEXT,
                           "row %d: position %d is past the model's context of %d tokens; stop earlier or raise context", i,
                           (int)r->position, lm->context);
        wg_assert(r->logits == -1 || r->logits == asked); /* output rows in batch order, as wg_batch_* number them */
        asked += r->logits >= 0;
    }
    wg_assert(asked == b->logits);
    return WG_OK;
}

/* One pass, to logits or, with s, to the paths that the device verifies. */
static wg_status pass(wg_lm *lm, const wg_batch *batch, float *logits, const wg_verify_spec *s, wg_error *err)
{
    WG_TRY(check(lm, batch, err));
    if (batch->n == 0) return WG_OK;
    const double start = wg_clock_now();
    WG_TRY(s ? lm->class->verify(lm, batch, s, err) : lm->class->forward(lm, batch, logits, err));
    lm->seconds += wg_clock_now() - start;
    lm->passes++;
    lm->rows += batch->n;
    return WG_OK;
}

wg_status wg_lm_forward(wg_lm *lm, const wg_batch *batch, float *logits, wg_error *err)
{
    return pass(lm, batch, logits, NULL, err);
}

wg_status wg_lm_verify(wg_lm *lm, const wg_batch *batch, const wg_verify_spec *s, wg_error *err)
{
    return pass(lm, batch, NULL, s, err);
}
