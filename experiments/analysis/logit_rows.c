/* SPDX-License-Identifier: MIT
 * Comparing the logits of two files (logit_rows.h). */
#include "experiments/analysis/logit_rows.h"

#include <math.h>

#include "core/base/mem.h"

/* Any tokens serve; these spread over the vocabulary (multiplier of Knuth, 1973). */
static int32_t token_at(int i, int vocab) { return (int32_t)((uint32_t)(i + 1) * 2654435761u % (uint32_t)vocab); }

static wg_status run_pass(wg_logit_rows *r, const wg_target *t, wg_kv *kv, wg_batch *b, wg_error *err)
{
    int32_t token[WG_LOGIT_ROWS];
    wg_kv_seq *seq;
    for (int i = 0; i < r->n; i++) token[i] = token_at(i, r->vocab);
    WG_TRY(wg_lm_attach(t->lm, kv, err));
    WG_TRY(wg_kv_seq_open(kv, &seq, err));
    wg_status s = wg_kv_reserve(seq, r->n, err);
    if (s == WG_OK) {
        wg_batch_clear(b);
        wg_batch_chain(b, seq, 0, token, r->n, r->n);
        s = wg_lm_forward(t->lm, b, r->z, err);
    }
    wg_kv_rollback(seq);
    wg_kv_seq_close(seq);
    return s;
}

static wg_status read_rows(wg_logit_rows *r, const wg_target *t, wg_error *err)
{
    enum { PAGE = 16 };
    wg_kv *kv = NULL;
    wg_batch b = { 0 };
    r->vocab = t->lm->vocab;
    r->n = t->lm->context < WG_LOGIT_ROWS ? t->lm->context : WG_LOGIT_ROWS;
    const size_t all = (size_t)r->n * (size_t)r->vocab;
    if (!(r->z = wg_alloc(all, sizeof *r->z))) return wg_nomem(err, all * sizeof *r->z, "logits");
    wg_status s = wg_kv_open(&kv, PAGE, r->n / PAGE + 2, r->n + 1, err);
    if (s == WG_OK) s = wg_batch_open(&b, r->n, err);
    if (s == WG_OK) s = run_pass(r, t, kv, &b, err);
    wg_batch_close(&b);
    wg_kv_close(kv);
    return s;
}

wg_status wg_logit_rows_read(wg_logit_rows *out, const char *path, const char *quantize, int threads, wg_error *err)
{
    const wg_target_options want = { .threads = threads, .quantize = quantize, .model = { .kv_type = WG_F32 } };
    wg_target *t;
    *out = (wg_logit_rows){ 0 };
    WG_TRY(wg_target_open(&t, path, &want, err));
    const wg_status s = read_rows(out, t, err);
    wg_target_close(t);
    if (s != WG_OK) wg_logit_rows_free(out);
    return s;
}

void wg_logit_rows_free(wg_logit_rows *r)
{
    wg_free(r->z);
    *r = (wg_logit_rows){ 0 };
}

static int best_of(const float *z, int n)
{
    int best = 0;
    for (int i = 1; i < n; i++)
        if (z[i] > z[best]) best = i;
    return best;
}

wg_logit_difference wg_logit_rows_difference(const wg_logit_rows *a, const wg_logit_rows *b)
{
    wg_logit_difference d = { 0 };
    for (int row = 0; row < a->n; row++) {
        const float *x = a->z + (size_t)row * (size_t)a->vocab, *y = b->z + (size_t)row * (size_t)a->vocab;
        double square = 0, norm = 0;
        for (int i = 0; i < a->vocab; i++) {
            const double by = fabs((double)x[i] - (double)y[i]);
            if (!isfinite(by)) return (wg_logit_difference){ NAN, NAN, a->n };
            if (by > d.largest) d.largest = by;
            square += by * by;
            norm += (double)y[i] * (double)y[i];
        }
        d.relative = fmax(d.relative, norm > 0 ? sqrt(square / norm) : square > 0 ? INFINITY : 0);
        d.other_best += best_of(x, a->vocab) != best_of(y, a->vocab);
    }
    return d;
}

wg_status wg_logit_rows_agree(const wg_logit_rows *source, const wg_logit_rows *written, double most, const char *path,
                              wg_error *err)
{
    if (source->n != written->n || source->vocab != written->vocab)
        return wg_fail(err, WG_EMODEL, "%s: read again, it has %d rows of %d logits; the source has %d of %d", path, written->n,
                       written->vocab, source->n, source->vocab);
    const wg_logit_difference d = wg_logit_rows_difference(source, written);
    if (d.largest <= most) return WG_OK;
    return wg_fail(err, WG_EMODEL,
                   "%s: read again, its logits are up to %.3g away from those of the source; expected at most %g. Nothing is "
                   "kept",
                   path, d.largest, most);
}
