/* SPDX-License-Identifier: MIT
 * Dumping hidden states (dump_taps.h). */
#include "experiments/run/dump_taps.h"

#include <string.h>

#include "core/base/mem.h"
#include "core/model/taps.h"

enum { PASS_ROWS = 64 };

struct wg_tap_dumper {
    wg_target *target;
    wg_dump_plan plan;
    wg_dump_writer *writer;
    wg_taps *taps;
    wg_kv *kv;
    wg_kv_seq *seq;
    wg_batch batch;
    float *x;      /* (PASS_ROWS, columns, dim) taps of a pass */
    uint8_t *loss; /* (most) */
    int most;
    wg_tap_totals totals;
};

/* Sets the usual taps, ascending and distinct. */
static void usual_taps(wg_dump_plan *p, int layers)
{
    const bool last = p->layout == WG_DUMP_VLLM;
    for (int tap = 0; tap <= layers; tap++)
        if (tap == 2 || tap == layers / 2 || tap == layers - 3 || (last && tap == layers)) p->tap[p->taps++] = tap;
}

/* Opens the plan's taps and, for a cache, the tap after the final norm. */
static wg_status open_taps(wg_tap_dumper *d, wg_error *err)
{
    wg_dump_plan *p = &d->plan;
    const int layers = d->target->lm->hidden.layers;
    int tap[WG_DUMP_TAPS + 1], n = p->taps;
    if (n == 0) usual_taps(p, layers), n = p->taps;
    memcpy(tap, p->tap, (size_t)n * sizeof *tap);
    for (int i = 0; i < n && p->layout == WG_DUMP_DEEPSPEC; i++)
        if (tap[i] > layers)
            return wg_fail(
                err, WG_EINVAL,
                "tap %d is behind the final norm: a DeepSpec cache has these states beside its taps, and no layer id "
                "for them; leave it out",
                tap[i]);
    if (p->layout == WG_DUMP_DEEPSPEC) tap[n++] = layers + 1;
    return wg_taps_open(&d->taps, d->target->lm, tap, n, err);
}

static wg_status open_rest(wg_tap_dumper *d, const char *dir, wg_error *err)
{
    const int room = d->most + PASS_ROWS;
    WG_TRY(open_taps(d, err));
    WG_TRY(wg_kv_open(&d->kv, 16, (room + 15) / 16 + 2, room, err));
    WG_TRY(wg_lm_attach(d->target->lm, d->kv, err));
    WG_TRY(wg_kv_seq_open(d->kv, &d->seq, err));
    WG_TRY(wg_batch_open(&d->batch, PASS_ROWS, err));
    d->plan.dim = wg_taps_dim(d->taps);
    const size_t floats = (size_t)PASS_ROWS * (size_t)wg_taps_count(d->taps) * (size_t)d->plan.dim;
    d->x = wg_alloc(floats, sizeof *d->x);
    d->loss = wg_alloc((size_t)d->most, 1);
    if (!d->x || !d->loss) return wg_nomem(err, floats * sizeof *d->x, "the hidden states of a pass");
    return wg_dump_create(&d->writer, dir, &d->plan, err);
}

wg_status wg_tap_dumper_open(wg_tap_dumper **out, wg_target *target, const char *dir, const wg_dump_plan *plan, int most,
                             wg_error *err)
{
    wg_tap_dumper *d = wg_calloc(1, sizeof *d);
    if (!d) return wg_nomem(err, sizeof *d, "a dump of hidden states");
    d->target = target;
    d->plan = *plan;
    d->most = most && most < target->lm->context ? most : target->lm->context;
    const wg_status s = open_rest(d, dir, err);
    if (s == WG_OK) *out = d;
    else wg_tap_dumper_close(d);
    return s;
}

void wg_tap_dumper_close(wg_tap_dumper *d)
{
    if (!d) return;
    wg_dump_abandon(d->writer);
    wg_free(d->loss);
    wg_free(d->x);
    wg_batch_close(&d->batch);
    wg_kv_seq_close(d->seq);
    wg_kv_close(d->kv);
    wg_taps_close(d->taps);
    wg_free(d);
}

static wg_status run_passes(wg_tap_dumper *d, const int32_t *token, int n, wg_error *err)
{
    for (int first = 0, rows; first < n; first += rows) {
        rows = n - first < PASS_ROWS ? n - first : PASS_ROWS;
        WG_TRY(wg_kv_reserve(d->seq, rows, err));
        wg_batch_clear(&d->batch);
        wg_batch_chain(&d->batch, d->seq, first, token + first, rows, 0);
        d->batch.taps = d->taps;
        WG_TRY(wg_lm_forward(d->target->lm, &d->batch, NULL, err));
        wg_kv_commit_chain(d->seq, rows);
        WG_TRY(wg_taps_read(d->taps, 0, rows, d->x, err));
        WG_TRY(wg_dump_rows(d->writer, d->x, rows, err));
    }
    return WG_OK;
}

wg_status wg_tap_dumper_add(wg_tap_dumper *d, const char *name, const int32_t *token, size_t n, size_t answer, wg_error *err)
{
    const int some = n > (size_t)d->most ? d->most : (int)n;
    if (n == 0) return wg_fail(err, WG_EINVAL, "%s: the text has no tokens", name);
    for (int i = 0; i < some; i++) d->loss[i] = (size_t)i >= answer;
    WG_TRY(wg_dump_begin(d->writer, token, d->loss, some, err));
    const wg_status s = run_passes(d, token, some, err);
    wg_kv_rollback(d->seq);
    wg_kv_truncate(d->seq, 0);
    WG_TRY(s);
    d->totals.samples++;
    d->totals.tokens += some;
    d->totals.cut += n > (size_t)some;
    return wg_dump_end(d->writer, err);
}

wg_status wg_tap_dumper_finish(wg_tap_dumper *d, wg_tap_totals *totals, wg_error *err)
{
    wg_dump_writer *w = d->writer;
    d->writer = NULL;
    *totals = d->totals;
    return wg_dump_finish(w, err);
}

const wg_dump_plan *wg_tap_dumper_plan(const wg_tap_dumper *d) { return &d->plan; }
