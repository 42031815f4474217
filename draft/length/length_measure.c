/* SPDX-License-Identifier: MIT
 * The cost of passes on this machine: a model runs over 1, 2, 3, 4, 6, 9, 13, ... rows in a separate cache; then its space
 * in the engine's cache and its counters are restored. */
#include <math.h>
#include <stdlib.h>

#include "core/base/clock.h"
#include "core/base/mem.h"
#include "draft/length/length.h"

enum { BEFORE = 64, STRIDE = 4, TURNS = 3, ROUNDS = 32, VERIFIED = 3 };
/* Of sizes: passes of a block, turns at most, turns in which all sizes are timed, the largest size that others time, passes
 * over one row that begin a turn, sizes at most. */
enum { BLOCK = 4, MANY = 24, EVERY = 6, SMALL = 16, SETTLES = 24, SIZES = 24 };
/* Of a block, of all turns behind the third, and of the rounds of a draft in a turn. */
static const double BLOCK_SECONDS = 0.008, TURN_SECONDS = 0.7, DRAFT_SECONDS = 0.06;

/* A model that is timed. */
typedef struct timed {
    wg_lm *lm;
    wg_lm kept; /* as it was */
    wg_kv *kv;
    wg_kv_seq *seq;
    wg_batch batch;
    float *logits; /* (rows, vocab) */
} timed;

static wg_status time_pass(timed *t, int rows, double *seconds, wg_error *err)
{
    int32_t token[WG_TREE_MAX];
    for (int i = 0; i < rows; i++) token[i] = i % t->lm->vocab;
    const double start = wg_clock_now();
    wg_batch_clear(&t->batch);
    wg_batch_chain(&t->batch, t->seq, wg_kv_len(t->seq), token, rows, rows);
    WG_TRY(wg_kv_reserve(t->seq, rows, err));
    WG_TRY(wg_lm_forward(t->lm, &t->batch, t->logits, err));
    wg_kv_rollback(t->seq);
    *seconds = wg_clock_now() - start;
    return WG_OK;
}

static int rising(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *x, int n)
{
    qsort(x, (size_t)n, sizeof *x, rising);
    return x[n / 2];
}

/* The median of a block of passes of one size. */
static wg_status time_block(timed *t, int rows, double *seconds, wg_error *err)
{
    double time[BLOCK], all = 0;
    int n = 0;
    for (; n < BLOCK && all < BLOCK_SECONDS; n++) {
        WG_TRY(time_pass(t, rows, &time[n], err));
        all += time[n];
    }
    *seconds = median(time, n);
    return WG_OK;
}

static int next_size(int rows, int n)
{
    const int next = rows + (rows < 4 ? 1 : rows / 3 + 1);
    return rows < n && next > n ? n : next;
}

/* What is known of the sizes: the fastest pass over one row, and how each size compared with the one before it. */
typedef struct sizes {
    int rows[SIZES], n;
    double one, ratio[SIZES][MANY];
    int seen[SIZES];
} sizes;

/* Blocks of growing sizes. It begins with passes over one row in a row, as decoding makes them: where the weights stay in a
 * cache, the first ones after larger passes take up to three times as long (docs/performance.md). */
static wg_status time_turn(timed *t, sizes *of, int most, wg_error *err)
{
    double last = 0, now;
    for (int i = 0; i < SETTLES && last < BLOCK_SECONDS; i += BLOCK) WG_TRY(time_block(t, 1, &last, err));
    of->one = fmin(of->one, last);
    for (int k = 1; k < of->n && of->rows[k] <= most; k++, last = now) {
        WG_TRY(time_block(t, of->rows[k], &now, err));
        of->ratio[k][of->seen[k]++] = last > 0 ? now / last : 1;
    }
    return WG_OK;
}

/* Other programs make a machine twice as slow and as fast again within a few dozen passes; so each size is compared with the
 * one before it at the same moment, often, and the medians are multiplied. Piecewise linear between the sizes; never
 * decreasing. */
static wg_status time_sizes(timed *t, int n, double *seconds, wg_error *err)
{
    sizes of = { .one = INFINITY };
    double unused;
    for (int rows = 1; rows <= n && of.n < SIZES; rows = next_size(rows, n)) of.rows[of.n++] = rows;
    wg_assert(of.rows[of.n - 1] == n);
    WG_TRY(time_pass(t, n, &unused, err)); /* warms the memory */
    const double start = wg_clock_now();
    for (int turn = 0; turn < MANY && (turn < TURNS || wg_clock_now() - start < TURN_SECONDS); turn++)
        WG_TRY(time_turn(t, &of, turn < TURNS || turn % EVERY == 0 ? n : SMALL, err));
    seconds[1] = of.one;
    for (int k = 1; k < of.n; k++) {
        const int last = of.rows[k - 1], at = of.rows[k];
        seconds[at] = seconds[last] * fmax(1, median(of.ratio[k], of.seen[k]));
        for (int i = last + 1; i < at; i++)
            seconds[i] = seconds[last] + (seconds[at] - seconds[last]) * (i - last) / (at - last);
    }
    return WG_OK;
}

/* Rounds of a draft: a pass of the target over VERIFIED rows, which takes the nearest caches, then two of the draft model over
 * `rows` each, which alone are timed. Lowers *least to the median of a turn's rounds. */
static wg_status time_rounds(timed *draft, timed *target, int rows, double *least, wg_error *err)
{
    double time[ROUNDS];
    int n = 0;
    for (const double start = wg_clock_now(); n < ROUNDS && (n < 1 || wg_clock_now() - start < DRAFT_SECONDS); n++) {
        double unused, first, second;
        WG_TRY(time_pass(target, VERIFIED < target->lm->context ? VERIFIED : 1, &unused, err));
        WG_TRY(time_pass(draft, rows, &first, err));
        WG_TRY(time_pass(draft, rows, &second, err));
        time[n] = (first + second) / 2;
    }
    *least = fmin(*least, median(time, n));
    return WG_OK;
}

/* ---- models that are timed */

static wg_status prepare(timed *t, int before, wg_error *err)
{
    int32_t token[STRIDE] = { 0 };
    for (int at = 0; at < before; at += STRIDE) {
        const int n = before - at < STRIDE ? before - at : STRIDE;
        wg_batch_clear(&t->batch);
        WG_TRY(wg_kv_reserve(t->seq, n, err));
        wg_batch_chain(&t->batch, t->seq, at, token, n, 0);
        WG_TRY(wg_lm_forward(t->lm, &t->batch, t->logits, err));
        wg_kv_commit_chain(t->seq, n);
    }
    return WG_OK;
}

/* For passes over at most `rows` rows. Close it after failure too. */
static wg_status open_timed(timed *t, wg_lm *lm, int rows, wg_error *err)
{
    const int room = lm->context - rows, before = room < 0 ? 0 : room < BEFORE ? room : BEFORE, slots = BEFORE + WG_TREE_MAX;
    const size_t logits = (size_t)rows * (size_t)lm->vocab * sizeof *t->logits;
    wg_assert(rows <= WG_TREE_MAX);
    *t = (timed){ .lm = lm, .kept = *lm };
    if (!(t->logits = wg_alloc(logits, 1))) return wg_nomem(err, logits, "measuring a model");
    WG_TRY(wg_kv_open(&t->kv, 16, (slots + 15) / 16, slots, err));
    WG_TRY(wg_lm_attach(lm, t->kv, err));
    WG_TRY(wg_kv_seq_open(t->kv, &t->seq, err));
    WG_TRY(wg_batch_open(&t->batch, slots, err));
    return prepare(t, before, err);
}

static void close_timed(timed *t)
{
    wg_kv_seq_close(t->seq);
    wg_kv_close(t->kv);
    wg_batch_close(&t->batch);
    wg_free(t->logits);
    t->lm->space = t->kept.space;
    t->lm->seconds = t->kept.seconds;
    t->lm->passes = t->kept.passes;
    t->lm->rows = t->kept.rows;
}

wg_status wg_length_measure(wg_lm *lm, int n, double *seconds, wg_error *err)
{
    const int most = n < lm->context ? n : lm->context;
    timed t;
    wg_status s = open_timed(&t, lm, n, err);
    if (!s) s = time_sizes(&t, most, seconds, err);
    for (int i = most + 1; i <= n; i++) seconds[i] = seconds[most];
    close_timed(&t);
    return s;
}

wg_status wg_length_measure_draft(wg_lm *draft, wg_lm *target, int n, double *level, double *token, wg_error *err)
{
    const int most = n < draft->context ? n : draft->context;
    double one = INFINITY, all = INFINITY;
    timed of, after = { .lm = target, .kept = *target };
    wg_assert(draft != target);
    wg_status s = open_timed(&of, draft, n, err);
    if (!s) s = open_timed(&after, target, VERIFIED, err);
    for (int turn = 0; !s && turn < TURNS; turn++) {
        s = time_rounds(&of, &after, 1, &one, err);
        if (!s && most > 1) s = time_rounds(&of, &after, most, &all, err);
    }
    close_timed(&after);
    close_timed(&of);
    *level = one;
    *token = most > 1 ? fmax(0, (all - one) / (most - 1)) : 0;
    return s;
}
