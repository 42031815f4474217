/* SPDX-License-Identifier: MIT
 * The cost of passes on this machine: a model runs over 1, 2, 3, 4, 6, 9, 13, ... rows in a separate cache; then its space
 * in the engine's cache and its counters are restored. */
#include <math.h>
#include <stdlib.h>

#include "core/base/clock.h"
#include "core/base/mem.h"
#include "draft/length/length.h"

enum { BEFORE = 64, STRIDE = 4, TURNS = 3, BLOCK = 8 };
/* Of the passes of one size in a turn: of a block of them, and of all blocks while they still become faster by that factor. */
static const double SECONDS = 0.008, SETTLES = 0.06, FASTER = 0.97;

static wg_status time_pass(wg_lm *lm, wg_kv_seq *kv, wg_batch *batch, int rows, float *logits, double *seconds, wg_error *err)
{
    int32_t token[WG_TREE_MAX];
    for (int i = 0; i < rows; i++) token[i] = i % lm->vocab;
    const double start = wg_clock_now();
    wg_batch_clear(batch);
    wg_batch_chain(batch, kv, wg_kv_len(kv), token, rows, rows);
    WG_TRY(wg_kv_reserve(kv, rows, err));
    WG_TRY(wg_lm_forward(lm, batch, logits, err));
    wg_kv_rollback(kv);
    *seconds = wg_clock_now() - start;
    return WG_OK;
}

static int rising(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Passes of one size, one after the other, as decoding makes them: where the weights stay in a cache, the first ones after
 * passes of another size take up to three times as long, ten of them or fifty (docs/performance.md). They go on until two
 * blocks in a row are no faster than those before. Lowers *least to the median of the fastest block. */
static wg_status time_run(wg_lm *lm, wg_kv_seq *kv, wg_batch *batch, int rows, float *logits, double *least, wg_error *err)
{
    double all = 0, fastest = INFINITY;
    for (int since = 0; since < 2 && all < SETTLES;) {
        double time[BLOCK], block = 0;
        int n = 0;
        for (; n < BLOCK && block < SECONDS; n++) {
            WG_TRY(time_pass(lm, kv, batch, rows, logits, &time[n], err));
            block += time[n];
        }
        qsort(time, (size_t)n, sizeof *time, rising);
        since = time[n / 2] < FASTER * fastest ? 0 : since + 1;
        fastest = fmin(fastest, time[n / 2]);
        all = n > 1 ? all + block : SETTLES; /* a pass as long as a block reads more than a cache holds */
    }
    *least = fmin(*least, fastest);
    return WG_OK;
}

static int next_size(int rows, int n)
{
    const int next = rows + (rows < 4 ? 1 : rows / 3 + 1);
    return rows < n && next > n ? n : next;
}

/* Times at growing sizes, in turn, so that what else the machine does strikes all of them; piecewise linear between them, and
 * never decreasing. */
static wg_status time_sizes(wg_lm *lm, wg_kv_seq *kv, wg_batch *batch, int n, float *logits, double *seconds, wg_error *err)
{
    double unused;
    for (int rows = 1; rows <= n; rows++) seconds[rows] = INFINITY;
    WG_TRY(time_pass(lm, kv, batch, n, logits, &unused, err)); /* warms the memory */
    for (int turn = 0; turn < TURNS; turn++)
        for (int rows = 1; rows <= n; rows = next_size(rows, n))
            WG_TRY(time_run(lm, kv, batch, rows, logits, &seconds[rows], err));
    for (int last = 1, at; (at = next_size(last, n)) <= n; last = at) {
        if (seconds[at] < seconds[last]) seconds[at] = seconds[last];
        for (int i = last + 1; i < at; i++)
            seconds[i] = seconds[last] + (seconds[at] - seconds[last]) * (i - last) / (at - last);
    }
    return WG_OK;
}

static wg_status prepare(wg_lm *lm, wg_kv_seq *kv, wg_batch *batch, int before, float *logits, wg_error *err)
{
    int32_t token[STRIDE] = { 0 };
    for (int at = 0; at < before; at += STRIDE) {
        const int n = before - at < STRIDE ? before - at : STRIDE;
        wg_batch_clear(batch);
        WG_TRY(wg_kv_reserve(kv, n, err));
        wg_batch_chain(batch, kv, at, token, n, 0);
        WG_TRY(wg_lm_forward(lm, batch, logits, err));
        wg_kv_commit_chain(kv, n);
    }
    return WG_OK;
}

wg_status wg_length_measure(wg_lm *lm, int n, double *seconds, wg_error *err)
{
    const wg_lm kept = *lm;
    const int room = lm->context - n, before = room < 0 ? 0 : room < BEFORE ? room : BEFORE, slots = BEFORE + WG_TREE_MAX;
    const int most = n < lm->context ? n : lm->context;
    wg_kv *kv = NULL;
    wg_kv_seq *seq = NULL;
    wg_batch batch = { 0 };
    wg_assert(n <= WG_TREE_MAX);
    float *logits = wg_alloc((size_t)n * (size_t)lm->vocab, sizeof *logits);
    wg_status s = logits ? WG_OK : wg_nomem(err, (size_t)n * (size_t)lm->vocab * sizeof *logits, "measuring a model");
    if (!s) s = wg_kv_open(&kv, 16, (slots + 15) / 16, slots, err);
    if (!s) s = wg_lm_attach(lm, kv, err);
    if (!s) s = wg_kv_seq_open(kv, &seq, err);
    if (!s) s = wg_batch_open(&batch, slots, err);
    if (!s) s = prepare(lm, seq, &batch, before, logits, err);
    if (!s) s = time_sizes(lm, seq, &batch, most, logits, seconds, err);
    for (int i = most + 1; i <= n; i++) seconds[i] = seconds[most];
    wg_kv_seq_close(seq);
    wg_kv_close(kv);
    wg_batch_close(&batch);
    wg_free(logits);
    lm->space = kept.space;
    lm->seconds = kept.seconds;
    lm->passes = kept.passes;
    lm->rows = kept.rows;
    return s;
}
