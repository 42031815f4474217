/* SPDX-License-Identifier: MIT
 * See pass_time.h. */
#include "core/engine/pass_time.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/mem.h"
#include "core/dist/tree.h"

/* BEFORE: tokens of the text. TURNS: of drafts, of large sizes. Of a draft: ROUNDS in a turn, rows of the target's pass before
 * it. Of sizes: passes of a block, turns at most, the largest that is no large one, passes over one row that begin a turn. */
enum { BEFORE = 4, TURNS = 3, ROUNDS = 32, VERIFIED = 3 };
enum { BLOCK = 4, MANY = 24, SMALL = 16, SETTLES = 24 };
static const double BLOCK_SECONDS = 0.008, SMALLS = 0.7; /* SMALLS: the share of the time for sizes that are not large */

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

static int next_size(int rows, int n)
{
    const int next = rows + (rows < 4 ? 1 : rows / 3 + 1);
    return rows < n && next > n ? n : next;
}

/* What is known of the sizes: the fastest pass of each, and the fastest of each turn over one row. */
typedef struct sizes {
    int rows[WG_PRICE_SIZES], n;
    double least[WG_PRICE_SIZES], one[MANY];
    int turns;
} sizes;

/* A block of passes of one size; the least. */
static wg_status time_block(timed *t, int rows, double *least, wg_error *err)
{
    double all = 0, seconds;
    *least = INFINITY;
    for (int n = 0; n < BLOCK && all < BLOCK_SECONDS; n++) {
        WG_TRY(time_pass(t, rows, &seconds, err));
        *least = fmin(*least, seconds);
        all += seconds;
    }
    return WG_OK;
}

/* Blocks of growing sizes up to SMALL. It begins with passes over one row in a row, as decoding makes them: where the weights
 * stay in a cache, the first ones after larger passes take up to three times as long (docs/performance.md). */
static wg_status time_turn(timed *t, sizes *of, double end, wg_error *err)
{
    double one = INFINITY, last = 0;
    for (int i = 0; i < SETTLES && last < BLOCK_SECONDS; i += BLOCK) {
        WG_TRY(time_block(t, 1, &last, err));
        one = fmin(one, last);
    }
    of->one[of->turns++] = one;
    of->least[0] = fmin(of->least[0], one);
    for (int k = 1; k < of->n && of->rows[k] <= SMALL; k++) {
        const bool needed = of->turns == 1 && (of->rows[k] == 2 || of->rows[k] == 4);
        if (wg_clock_now() > end && !needed) continue;
        WG_TRY(time_block(t, of->rows[k], &last, err));
        of->least[k] = fmin(of->least[k], last);
    }
    return WG_OK;
}

/* Larger sizes, which few drafts reach, in what is left of the time. */
static wg_status time_large(timed *t, sizes *of, double end, wg_error *err)
{
    double seconds;
    for (int k = 1; k < of->n; k++) {
        if (of->rows[k] <= SMALL) continue;
        if (wg_clock_now() > end) break;
        WG_TRY(time_pass(t, of->rows[k], &seconds, err));
        of->least[k] = fmin(of->least[k], seconds);
    }
    return WG_OK;
}

/* What other programs do makes passes slower, never faster: so the fastest of each size counts, none is dearer than a larger
 * one, nor than two smaller ones that have its rows together. */
static void bound(wg_prices *p)
{
    for (int k = p->n - 2; k >= 0; k--) p->seconds[k] = fmin(p->seconds[k], p->seconds[k + 1]);
    for (int k = 1; k < p->n; k++)
        for (int i = 0; i < k; i++)
            for (int j = i; j < k; j++)
                if (p->rows[i] + p->rows[j] >= p->rows[k]) p->seconds[k] = fmin(p->seconds[k], p->seconds[i] + p->seconds[j]);
}

static wg_status time_sizes(timed *t, int most, double start, double seconds, wg_prices *out, wg_error *err)
{
    sizes of = { .n = 0 };
    const double first = start + SMALLS * seconds, end = start + seconds;
    for (int rows = 1; rows <= most && of.n < WG_PRICE_SIZES; rows = next_size(rows, most)) {
        of.rows[of.n] = rows;
        of.least[of.n++] = INFINITY;
    }
    for (int turn = 0; turn < MANY && (turn == 0 || wg_clock_now() < first); turn++) WG_TRY(time_turn(t, &of, first, err));
    for (int turn = 0; turn < TURNS && wg_clock_now() < end; turn++) WG_TRY(time_large(t, &of, end, err));
    *out = (wg_prices){ .n = 0 };
    for (int k = 0; k < of.n; k++) {
        if (isinf(of.least[k])) continue;
        out->rows[out->n] = of.rows[k];
        out->seconds[out->n++] = fmax(1e-9, of.least[k]);
    }
    bound(out);
    out->spread = median(of.one, of.turns) / out->seconds[0] - 1;
    return WG_OK;
}

/* Rounds of a draft: a pass of the target over VERIFIED rows, which takes the nearest caches, then two of the draft model over
 * `rows` each, which alone are timed. Lowers *least to the fastest round. */
static wg_status time_rounds(timed *draft, timed *target, int rows, double seconds, double *least, wg_error *err)
{
    const double start = wg_clock_now();
    for (int n = 0; n < ROUNDS && (n < 1 || wg_clock_now() - start < seconds); n++) {
        double unused, first, second;
        WG_TRY(time_pass(target, VERIFIED < target->lm->context ? VERIFIED : 1, &unused, err));
        WG_TRY(time_pass(draft, rows, &first, err));
        WG_TRY(time_pass(draft, rows, &second, err));
        *least = fmin(*least, fmax(1e-9, (first + second) / 2));
    }
    return WG_OK;
}

/* ---- models that are timed */

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

/* Of so many rows, those that a pass of the model can have. */
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
        if (sizes[k] <= most && (k == 0 || sizes[k] > out->rows[out->n - 1])) {
            out->seconds[out->n] = INFINITY;
            out->rows[out->n++] = sizes[k];
        }
    wg_status s = open_timed(&of, draft, most, err);
    if (!s) s = open_timed(&after, target, VERIFIED, err);
    const double share = seconds / TURNS / out->n, start = wg_clock_now();
    for (int turn = 0; turn < TURNS; turn++)
        for (int k = 0; !s && k < out->n && (turn + k == 0 || wg_clock_now() - start < seconds); k++)
            s = time_rounds(&of, &after, out->rows[k], share, &out->seconds[k], err);
    while (out->n > 1 && isinf(out->seconds[out->n - 1])) out->n--;
    bound(out);
    close_timed(&after);
    close_timed(&of);
    return s;
}
