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

/* The end of the rows from `at` on that fit into one pass: whole sequences, the first of them in any case. */
static int end_of_part(const wg_batch *b, int at, int most)
{
    int end = at;
    for (int i = at + 1; i <= b->n && (i - at <= most || end == at); i++)
        if (i == b->n || b->row[i].kv != b->row[i - 1].kv) end = i;
    return end;
}

/* Rows [at, end) of b, whose first logit row is number `first` of the batch. */
static wg_status forward_part(wg_lm *lm, const wg_batch *b, int at, int end, int *first, float *logits, wg_error *err)
{
    wg_batch part = { .row = b->row + at, .n = end - at, .cap = end - at };
    for (int i = at; i < end; i++)
        if (b->row[i].logits >= 0) b->row[i].logits = part.logits++;
    const wg_status s = wg_lm_forward(lm, &part, logits + (size_t)*first * (size_t)lm->vocab, err);
    for (int i = at; i < end; i++)
        if (b->row[i].logits >= 0) b->row[i].logits += *first;
    *first += part.logits;
    return s;
}

wg_status wg_lm_forward_in_parts(wg_lm *lm, const wg_batch *b, float *logits, wg_error *err)
{
    int first = 0;
    if (lm->most_rows == 0 || b->n <= lm->most_rows || b->taps) return wg_lm_forward(lm, b, logits, err);
    for (int at = 0, end; at < b->n; at = end) {
        end = end_of_part(b, at, lm->most_rows);
        WG_TRY(forward_part(lm, b, at, end, &first, logits, err));
    }
    return WG_OK;
}

wg_status wg_lm_verify(wg_lm *lm, const wg_batch *batch, const wg_verify_spec *s, wg_error *err)
{
    return pass(lm, batch, NULL, s, err);
}
