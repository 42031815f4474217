/* SPDX-License-Identifier: MIT
 * The calibration (cost.h): times passes of every size in rounds, so that a slow moment affects all sizes, and takes
 * medians. */
#include "experiments/analysis/cost.h"

#include <math.h>

#include "core/base/clock.h"
#include "core/base/mem.h"
#include "experiments/base/stats.h"

enum { NEAR = 32, FEWEST = 5, MOST = 31, BURST = 16, SIZES = WG_COST_KNOTS + 4, SEQUENCES = 64 };
static const double ENOUGH = 0.5; /* seconds of rounds, after the first FEWEST */
static const double BURST_SECONDS = 0.008;

typedef struct bench {
    wg_lm *lm;
    wg_kv *kv;
    wg_kv_seq *near[SEQUENCES], *far; /* near[0]: for sizes of one sequence */
    wg_batch batch;
    float *logits;
    int32_t *token;
    int rows, sequences;
} bench;

/* Times one pass over t->rows rows with logits, divided among its sequences. */
static wg_status pass(bench *b, const wg_timed *t, double *seconds, wg_error *err)
{
    const int n = t->rows / t->sequences;
    wg_batch_clear(&b->batch);
    for (int i = 0; i < t->sequences; i++) {
        wg_kv_seq *kv = t->sequences == 1 && t->context > NEAR ? b->far : b->near[i];
        WG_TRY(wg_kv_reserve(kv, n, err));
        wg_batch_chain(&b->batch, kv, wg_kv_len(kv), b->token, n, n);
    }
    const double start = wg_clock_now();
    WG_TRY(wg_lm_forward(b->lm, &b->batch, b->logits, err));
    *seconds = wg_clock_now() - start;
    for (int i = 0; i < t->sequences; i++) wg_kv_rollback(t->sequences == 1 && t->context > NEAR ? b->far : b->near[i]);
    return WG_OK;
}

static wg_status fill(bench *b, wg_kv_seq *kv, int context, wg_error *err)
{
    while (wg_kv_len(kv) < context) {
        const int left = context - wg_kv_len(kv), n = left < b->rows ? left : b->rows;
        WG_TRY(wg_kv_reserve(kv, n, err));
        wg_batch_clear(&b->batch);
        wg_batch_chain(&b->batch, kv, wg_kv_len(kv), b->token, n, 0);
        WG_TRY(wg_lm_forward(b->lm, &b->batch, b->logits, err));
        wg_kv_commit_chain(kv, n);
    }
    return WG_OK;
}

static wg_status open_bench(bench *b, int near, int context, wg_error *err)
{
    const int page = 16, each = (near + b->rows + page) / page + 1, far = (context + b->rows + page) / page + 1;
    const size_t logits = (size_t)b->rows * (size_t)b->lm->vocab * sizeof *b->logits;
    b->token = wg_calloc((size_t)b->rows, sizeof *b->token);
    if (!(b->logits = wg_alloc(logits, 1)) || !b->token) return wg_nomem(err, logits, "a calibration");
    for (int i = 0; i < b->rows; i++) b->token[i] = (i * 31 + 7) % b->lm->vocab;
    WG_TRY(wg_kv_open(&b->kv, page, each * b->sequences + far, (far > each ? far : each) * page, err));
    WG_TRY(wg_lm_attach(b->lm, b->kv, err));
    WG_TRY(wg_batch_open(&b->batch, b->rows > b->sequences ? b->rows : b->sequences, err));
    for (int i = 0; i < b->sequences; i++) {
        WG_TRY(wg_kv_seq_open(b->kv, &b->near[i], err));
        WG_TRY(fill(b, b->near[i], near, err));
    }
    WG_TRY(wg_kv_seq_open(b->kv, &b->far, err));
    return fill(b, b->far, context, err);
}

static void close_bench(bench *b)
{
    for (int i = 0; i < b->sequences; i++) wg_kv_seq_close(b->near[i]);
    wg_kv_seq_close(b->far);
    wg_batch_close(&b->batch);
    wg_kv_close(b->kv);
    wg_free(b->logits);
    wg_free(b->token);
}

/* Lists the timed passes: 1, 2, 3, 4, 6, 9, 13 .. rows at the small context, a few of them at the large one, and one row in
 * each of several sequences. */
static int sizes(const bench *b, int near, int context, wg_timed *t)
{
    int n = 0;
    for (int rows = 1, last = 0; last < b->rows && n < WG_COST_KNOTS; rows += rows < 4 ? 1 : rows / 3 + 1) {
        last = rows < b->rows && n < WG_COST_KNOTS - 1 ? rows : b->rows;
        t[n++] = (wg_timed){ .rows = last, .context = near, .sequences = 1 };
    }
    if (context > near) t[n++] = (wg_timed){ .rows = 1, .context = context, .sequences = 1 };
    if (context > near && b->rows > 1) t[n++] = (wg_timed){ .rows = b->rows, .context = context, .sequences = 1 };
    if (b->sequences > 1) t[n++] = (wg_timed){ .rows = b->sequences, .context = near, .sequences = b->sequences };
    return n;
}

/* Times consecutive passes of one size, of which the second half counts: decoding repeats one size, and caches and clocks take
 * about ten passes to settle where weights stay in a cache. */
static wg_status burst(bench *b, const wg_timed *t, double *seconds, wg_error *err)
{
    double time[BURST], all = 0, sum = 0;
    int n = 0;
    for (; n < BURST && (n < 2 || all < BURST_SECONDS); n++) {
        WG_TRY(pass(b, t, &time[n], err));
        all += time[n];
    }
    for (int i = n / 2; i < n; i++) sum += time[i];
    *seconds = sum / (n - n / 2);
    return WG_OK;
}

static wg_status run(bench *b, wg_timed *t, int n, wg_error *err)
{
    double seconds[SIZES][MOST];
    int rounds = -1; /* the first pass warms the memory for the others */
    for (const double start = wg_clock_now(); rounds < MOST && (rounds < FEWEST || wg_clock_now() - start < ENOUGH); rounds++)
        for (int i = 0; i < n; i++) WG_TRY(burst(b, &t[i], &seconds[i][rounds < 0 ? 0 : rounds], err));
    for (int i = 0; i < n; i++) {
        t[i].seconds = wg_quantile(seconds[i], rounds, 0.5);
        t[i].error = 1.58 * (wg_quantile(seconds[i], rounds, 0.75) - wg_quantile(seconds[i], rounds, 0.25)) / t[i].seconds /
                     sqrt(rounds);
    }
    return WG_OK;
}

wg_status wg_cost_measure(wg_cost *c, wg_lm *lm, int rows, int context, int sequences, wg_error *err)
{
    wg_timed t[SIZES];
    const wg_lm kept = *lm;
    bench b = { .lm = lm, .sequences = sequences < 1 ? 1 : sequences > SEQUENCES ? SEQUENCES : sequences };
    const int most = lm->context / 2; /* the other half is for tokens before them */
    b.rows = rows < b.sequences ? b.sequences : rows;
    b.rows = b.rows > most ? most : b.rows;
    b.sequences = b.sequences > b.rows ? b.rows : b.sequences;
    const int room = lm->context - b.rows, near = room < NEAR ? room : NEAR, far = context > room ? room : context;
    const int n = sizes(&b, near, far, t);
    wg_status s = b.rows < 1 ? wg_fail(err, WG_EINVAL, "a context of %d tokens is too short for a calibration", lm->context)
                             : open_bench(&b, near, far > near ? far : near, err);
    if (!s) s = run(&b, t, n, err);
    if (!s) s = wg_cost_fit(c, t, n, err);
    close_bench(&b);
    lm->space = kept.space;
    lm->seconds = kept.seconds;
    lm->passes = kept.passes;
    lm->rows = kept.rows;
    return s;
}
