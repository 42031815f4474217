/* SPDX-License-Identifier: MIT
 * Timing passes (pass_time.h). */
#include "core/engine/pass_time.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/mem.h"
#include "core/dist/tree.h"

/* BEFORE: tokens of the text. TURNS: turns of large sizes. ROUNDS: most rounds of a draft. VERIFIED: rows of the target's pass
 * before each. The other constants: most turns, passes of a block up to four rows, passes over one row at the beginning of a
 * turn, the largest size that is not large. */
enum { BEFORE = 4, TURNS = 3, ROUNDS = 96, VERIFIED = 3 };
enum { MANY = 24, BLOCK = 8, SETTLES = 12, SMALL = 16 };
/* SMALLS: share of the time for sizes that are not large. QUANTILE: the quantile of equal passes' times that counts. */
static const double SMALLS = 0.8, QUANTILE = 0.2;

/* A model under timing. */
typedef struct timed {
    wg_lm *lm;
    wg_lm kept; /* the model's state before */
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

static double quantile(double *x, int n, double share)
{
    qsort(x, (size_t)n, sizeof *x, rising);
    return x[(int)(share * (n - 1))];
}

static int next_size(int rows, int n)
{
    const int next = rows + (rows < 4 ? 1 : rows / 3 + 1);
    return rows < n && next > n ? n : next;
}

/* Measurements of sizes: for each turn the time of a pass over one row, and the quotient of each size's time and it. */
typedef struct sizes {
    int rows[WG_PRICE_SIZES], n, turns, seen[WG_PRICE_SIZES];
    double one[MANY], ratio[WG_PRICE_SIZES][MANY];
} sizes;

/* Times passes of one size until `end`, at least one, and sets *out to a low quantile. */
static wg_status time_block(timed *t, int rows, int passes, double end, double *out, wg_error *err)
{
    double time[SETTLES];
    int n = 0;
    for (; n < passes && (n == 0 || wg_clock_now() < end); n++) WG_TRY(time_pass(t, rows, &time[n], err));
    *out = fmax(1e-9, quantile(time, n, QUANTILE));
    return WG_OK;
}

/* Times sizes from .. to - 1 relative to the last pass over one row. */
static wg_status time_beside(timed *t, sizes *of, int from, int to, double end, wg_error *err)
{
    double now;
    for (int k = 1; k < of->n; k++) {
        const int rows = of->rows[k];
        const bool needed = of->turns == 1 && (rows == 2 || rows == 4);
        if (rows < from || rows >= to || (wg_clock_now() > end && !needed)) continue;
        WG_TRY(time_block(t, rows, rows <= 4 ? BLOCK : rows <= SMALL ? BLOCK / 4 : 1, end, &now, err));
        of->ratio[k][of->seen[k]++] = now / of->one[of->turns - 1];
    }
    return WG_OK;
}

/* Times a turn: blocks of ascending sizes up to SMALL, with most passes at the smallest sizes, which most drafts have. It
 * begins with several passes over one row, as in decoding: where weights stay in a cache, the first ones after larger passes
 * take up to three times as long (docs/performance.md). */
static wg_status time_turn(timed *t, sizes *of, double end, wg_error *err)
{
    WG_TRY(time_block(t, 1, SETTLES, end, &of->one[of->turns++], err));
    return time_beside(t, of, 2, SMALL + 1, end, err);
}

/* Bounds each price by that of every larger size and by the sum of two smaller sizes with its rows together. */
static void bound(wg_prices *p)
{
    for (int k = p->n - 2; k >= 0; k--) p->seconds[k] = fmin(p->seconds[k], p->seconds[k + 1]);
    for (int k = 1; k < p->n; k++)
        for (int i = 0; i < k; i++)
            for (int j = i; j < k; j++)
                if (p->rows[i] + p->rows[j] >= p->rows[k]) p->seconds[k] = fmin(p->seconds[k], p->seconds[i] + p->seconds[j]);
}

/* Computes prices. Other programs slow passes down by a factor that changes with time, so a low quantile of a block counts, and
 * each size is compared with one row of the same turn. */
static void price_sizes(sizes *of, wg_prices *out)
{
    const double usual = quantile(of->one, of->turns, 0.5), least = of->one[0]; /* sorted now */
    *out = (wg_prices){ .n = 1, .rows = { 1 }, .seconds = { usual }, .spread = usual / least - 1 };
    for (int k = 1; k < of->n; k++) {
        if (of->seen[k] == 0) continue;
        out->rows[out->n] = of->rows[k];
        out->seconds[out->n++] = usual * quantile(of->ratio[k], of->seen[k], 0.5);
    }
    bound(out);
}

static wg_status time_sizes(timed *t, int most, double start, double seconds, wg_prices *out, wg_error *err)
{
    const double first = start + SMALLS * seconds, end = start + seconds;
    sizes of = { .n = 0 };
    for (int rows = 1; rows <= most && of.n < WG_PRICE_SIZES; rows = next_size(rows, most)) of.rows[of.n++] = rows;
    while (of.turns < MANY && (of.turns == 0 || wg_clock_now() < first)) WG_TRY(time_turn(t, &of, first, err));
    for (int turn = 0; turn < TURNS && wg_clock_now() < end; turn++) WG_TRY(time_beside(t, &of, SMALL + 1, most + 1, end, err));
    price_sizes(&of, out);
    return WG_OK;
}

/* Times rounds: a pass of the target over VERIFIED rows, which fills the nearest caches, then two timed passes of the draft
 * model over `rows` rows. Writes a low quantile of the rounds. */
static wg_status time_rounds(timed *draft, timed *target, int rows, double seconds, double *out, wg_error *err)
{
    const double start = wg_clock_now();
    double time[ROUNDS];
    int n = 0;
    for (; n < ROUNDS && (n < 1 || wg_clock_now() - start < seconds); n++) {
        double unused, first, second;
        WG_TRY(time_pass(target, VERIFIED < target->lm->context ? VERIFIED : 1, &unused, err));
        WG_TRY(time_pass(draft, rows, &first, err));
        WG_TRY(time_pass(draft, rows, &second, err));
        time[n] = fmax(1e-9, (first + second) / 2);
    }
    *out = quantile(time, n, QUANTILE);
    return WG_OK;
}

/* ---- models under timing */

static wg_status prepare(timed *t, int before, wg_error *err)
{
    int32_t token[BEFORE] = { 0 };
    const int most = t->lm->most_rows > 0 && t->lm->most_rows < BEFORE ? t->lm->most_rows : BEFORE;
    for (int at = 0; at < before; at += most) {
        const int n = before - at < most ? before - at : most;
        wg_batch_clear(&t->batch);
        WG_TRY(wg_kv_reserve(t->seq, n, err));
        wg_batch_chain(&t->batch, t->seq, at, token, n, 0);
        WG_TRY(wg_lm_forward(t->lm, &t->batch, t->logits, err));
        wg_kv_commit_chain(t->seq, n);
    }
    return WG_OK;
}

/* Opens a model for timed passes of at most `rows` rows. The caller closes it, also after a failure. */
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

/* The largest pass of the model, at most `most` rows. */
static int largest(const wg_lm *lm, int most)
{
    const int pass = lm->most_rows > 0 ? lm->most_rows : most, rows = pass < lm->context ? pass : lm->context;
    return most < rows ? most : rows;
}

wg_status wg_time_passes(wg_lm *lm, int most, double seconds, wg_prices *out, wg_error *err)
{
    const double start = wg_clock_now();
    timed t;
    most = largest(lm, most);
    wg_status s = open_timed(&t, lm, most, err);
    if (!s) s = time_sizes(&t, most, start, seconds, out, err);
    close_timed(&t);
    return s;
}

wg_status wg_time_draft_passes(wg_lm *draft, wg_lm *target, int most, double seconds, wg_prices *out, wg_error *err)
{
    timed of, after = { .lm = target, .kept = *target };
    wg_assert(draft != target);
    most = largest(draft, most);
    const int sizes[] = { 1, 4, most };
    *out = (wg_prices){ .n = 0 };
    for (int k = 0; k < 3; k++)
        if (sizes[k] <= most && (k == 0 || sizes[k] > out->rows[out->n - 1])) out->rows[out->n++] = sizes[k];
    wg_status s = open_timed(&of, draft, most, err);
    if (!s) s = open_timed(&after, target, VERIFIED, err);
    const double start = wg_clock_now();
    for (int k = 0; !s && k < out->n; k++) {
        if (k > 0 && wg_clock_now() - start > seconds) out->n = k; /* the time is used up */
        else s = time_rounds(&of, &after, out->rows[k], seconds / 3, &out->seconds[k], err);
    }
    bound(out);
    close_timed(&after);
    close_timed(&of);
    return s;
}
