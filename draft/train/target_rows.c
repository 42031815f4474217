/* SPDX-License-Identifier: MIT
 * The target's rows of training passes (target_rows.h). */
#include "draft/train/target_rows.h"

#include <math.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/model/taps.h"

enum { BLOCK = 256, PAGE = 16 }; /* BLOCK: rows of a pass of the target */

struct wg_target_rows {
    wg_target_rows_options o;
    wg_kv *kv;
    wg_kv_seq *seq;
    wg_batch batch;
    wg_train_rows rows;
    int width;       /* tokens of a row */
    int32_t *place;  /* (vocab) place of a token in a row, -1: none; NULL: rows have all tokens */
    float *logits;   /* (BLOCK, vocab) */
    float *p;        /* (sequences * length, width) */
    double *entropy; /* (sequences * length) */
    int *scored;     /* (BLOCK) the rows that logits belong to */
    int last;        /* the last of them, -1 before the first call */
    double *scratch; /* (threads, vocab) */
    wg_taps *taps;
    float *tapped; /* (BLOCK, taps, dim) of a pass of the target */
    float *hidden; /* (taps, sequences * length, dim) */
};

size_t wg_target_rows_need(int vocab, int width, int hidden, int sequences, int length, int threads)
{
    const size_t rows = (size_t)sequences * (size_t)length, all = (size_t)vocab;
    return ((size_t)width + (size_t)hidden) * rows * sizeof(float) +
           all * (BLOCK * sizeof(float) + (size_t)threads * sizeof(double));
}

static wg_status open_places(wg_target_rows *t, wg_error *err)
{
    const size_t vocab = (size_t)t->o.lm->vocab;
    if (t->o.n_kept == 0) return WG_OK;
    t->place = wg_alloc(vocab, sizeof *t->place);
    if (!t->place) return wg_nomem(err, vocab * sizeof *t->place, "the kept tokens");
    for (size_t i = 0; i < vocab; i++) t->place[i] = -1;
    for (int i = 0; i < t->o.n_kept; i++) t->place[t->o.kept[i]] = i;
    return WG_OK;
}

static size_t hidden_of(const wg_target_rows *t) { return (size_t)t->o.n_taps * (size_t)t->o.lm->hidden.dim; }

static wg_status open_taps(wg_target_rows *t, int block, wg_error *err)
{
    const size_t rows = (size_t)t->o.sequences * (size_t)t->o.length, row = hidden_of(t);
    if (t->o.n_taps == 0) return WG_OK;
    WG_TRY(wg_taps_open(&t->taps, t->o.lm, t->o.tap, t->o.n_taps, err));
    t->tapped = wg_alloc((size_t)block * row, sizeof *t->tapped);
    t->hidden = wg_calloc(rows * row, sizeof *t->hidden);
    return t->tapped && t->hidden ? WG_OK : wg_nomem(err, rows * row * sizeof *t->hidden, "the target's hidden states");
}

static wg_status open_all(wg_target_rows *t, wg_error *err)
{
    const wg_target_rows_options *o = &t->o;
    const size_t vocab = (size_t)o->lm->vocab, rows = (size_t)o->sequences * (size_t)o->length;
    const int threads = wg_pool_threads(o->pool), block = o->length < BLOCK ? o->length : BLOCK;
    if (o->length > o->lm->context)
        return wg_fail(err, WG_EINVAL, "sequences have %d tokens, the target's context %d: lower train.length", o->length,
                       o->lm->context);
    WG_TRY(wg_kv_open(&t->kv, PAGE, (o->length + PAGE - 1) / PAGE + 2, o->length, err));
    WG_TRY(wg_lm_attach(o->lm, t->kv, err));
    WG_TRY(wg_kv_seq_open(t->kv, &t->seq, err));
    WG_TRY(wg_batch_open(&t->batch, block, err));
    WG_TRY(open_places(t, err));
    WG_TRY(open_taps(t, block, err));
    t->logits = wg_alloc((size_t)block * vocab, sizeof *t->logits);
    t->p = wg_calloc(rows * (size_t)t->width, sizeof *t->p);
    t->entropy = wg_calloc(rows, sizeof *t->entropy);
    t->scored = wg_alloc((size_t)block, sizeof *t->scored);
    t->scratch = wg_alloc((size_t)threads * vocab, sizeof *t->scratch);
    if (t->logits && t->p && t->entropy && t->scored && t->scratch) return WG_OK;
    return wg_nomem(err, wg_target_rows_need(o->lm->vocab, t->width, (int)hidden_of(t), o->sequences, o->length, threads),
                    "the target's rows; lower micro or length");
}

wg_status wg_target_rows_open(wg_target_rows **out, const wg_target_rows_options *o, wg_error *err)
{
    wg_target_rows *t = wg_calloc(1, sizeof *t);
    if (!t) return wg_nomem(err, sizeof *t, "the target's rows");
    t->o = *o;
    t->width = o->n_kept ? o->n_kept : o->lm->vocab;
    t->last = -1;
    const wg_status s = open_all(t, err);
    if (s) wg_target_rows_close(t);
    else *out = t;
    return s;
}

void wg_target_rows_close(wg_target_rows *t)
{
    if (!t) return;
    wg_kv_seq_close(t->seq);
    wg_kv_close(t->kv);
    wg_batch_close(&t->batch);
    wg_free(t->place);
    wg_free(t->logits);
    wg_free(t->p);
    wg_free(t->entropy);
    wg_free(t->scored);
    wg_free(t->scratch);
    wg_taps_close(t->taps);
    wg_free(t->tapped);
    wg_free(t->hidden);
    wg_free(t);
}

int wg_target_rows_width(const wg_target_rows *t) { return t->width; }
const float *wg_target_rows_p(const wg_target_rows *t, int row) { return t->p + (size_t)row * (size_t)t->width; }
double wg_target_rows_entropy(const wg_target_rows *t, int row) { return t->entropy[row]; }
int32_t wg_target_rows_text(const wg_target_rows *t, int row)
{
    const int32_t token = t->rows.target[row];
    return token >= 0 && t->place ? t->place[token] : token;
}
const wg_train_rows *wg_target_rows_of(const wg_target_rows *t) { return &t->rows; }
const float *wg_target_rows_hidden(const wg_target_rows *t) { return t->hidden; }
float *wg_target_rows_state(wg_target_rows *t, int row, int tap)
{
    const size_t rows = (size_t)t->o.sequences * (size_t)t->o.length;
    return t->hidden + ((size_t)tap * rows + (size_t)row) * (size_t)t->o.lm->hidden.dim;
}
int wg_target_rows_last(const wg_target_rows *t) { return t->last; }

/* Adds rows [first, first + n) of a sequence to the batch, document by document. Only rows with a target get logits; returns
 * their number, and in scored[] which they are. */
static int add_block(wg_target_rows *t, size_t sequence, int first, int n)
{
    const int32_t *token = t->rows.token + sequence, *start = t->rows.start + sequence, *target = t->rows.target + sequence;
    int scored = 0;
    wg_batch_clear(&t->batch);
    for (int i = first, end = i + 1; i < first + n; i = end++) {
        const bool asks = target[i] >= 0;
        while (end < first + n && start[end] == start[i] && (target[end] >= 0) == asks) end++;
        const int from = t->batch.n;
        wg_batch_chain(&t->batch, t->seq, i, token + i, end - i, asks ? end - i : 0);
        if (start[i] > 0) wg_batch_rebase(&t->batch, from, start[i]);
        for (int k = i; asks && k < end; k++) t->scored[scored++] = (int)sequence + k;
    }
    return scored;
}

typedef struct softmax_job {
    const wg_target_rows *t;
    int rows; /* of logits; row i is that of t->scored[i] */
} softmax_job;

/* Sets p = e / sum, e = exp((z - top) / T); returns the entropy, log sum - sum p (z - top) / T. */
static double divide(const float *z, const double *e, int vocab, double sum, double temperature, float top, float *p)
{
    enum { LANES = 8 };
    const double share = 1 / sum;
    double lane[LANES] = { 0 }, dot = 0;
    int v = 0;
    for (; v + LANES <= vocab; v += LANES)
        for (int l = 0; l < LANES; l++) {
            p[v + l] = (float)(e[v + l] * share);
            lane[l] += e[v + l] > 0 ? e[v + l] * (double)(z[v + l] - top) : 0;
        }
    for (; v < vocab; v++) {
        p[v] = (float)(e[v] * share);
        dot += e[v] > 0 ? e[v] * (double)(z[v] - top) : 0;
    }
    for (int l = 0; l < LANES; l++) dot += lane[l];
    return log(sum) - dot * share / temperature;
}

/* The same for the kept tokens alone. */
static double divide_kept(const wg_target_rows *t, const float *z, const double *e, double sum, float top, float *p)
{
    const double share = 1 / sum, log_sum = log(sum), inverse = 1 / t->o.temperature;
    double entropy = 0;
    for (int k = 0; k < t->width; k++) {
        const int32_t v = t->o.kept[k];
        p[k] = (float)(e[v] * share);
        if (e[v] > 0) entropy += e[v] * share * (log_sum - (double)(z[v] - top) * inverse);
    }
    return entropy;
}

static void set_row(const wg_target_rows *t, const float *z, double *e, float *p, double *entropy)
{
    const int vocab = t->o.lm->vocab, best = t->o.ops->argmax(z, vocab), most = best < 0 ? 0 : best;
    if (t->o.temperature > 0) {
        const double sum = t->o.ops->softmax64(z, vocab, 1 / t->o.temperature, e);
        *entropy = t->place ? divide_kept(t, z, e, sum, z[most], p) : divide(z, e, vocab, sum, t->o.temperature, z[most], p);
        return;
    }
    const int at = t->place ? t->place[most] : most;
    memset(p, 0, (size_t)t->width * sizeof *p);
    if (at >= 0) p[at] = 1;
    *entropy = 0;
}

static void softmax_rows(void *arg, int thread, int threads)
{
    const softmax_job *j = arg;
    const wg_target_rows *t = j->t;
    const int vocab = t->o.lm->vocab;
    double *e = t->scratch + (size_t)thread * (size_t)vocab;
    int lo, hi;
    wg_pool_share(j->rows, 1, thread, threads, &lo, &hi);
    for (int i = lo; i < hi; i++) {
        const float *z = t->logits + (size_t)i * (size_t)vocab;
        const size_t row = (size_t)t->scored[i];
        set_row(t, z, e, t->p + row * (size_t)t->width, &t->entropy[row]);
    }
}

/* Keeps the hidden states of rows [first, first + n) of all rows, tap by tap. */
static wg_status keep_hidden(wg_target_rows *t, size_t first, int n, wg_error *err)
{
    const size_t dim = (size_t)t->o.lm->hidden.dim, taps = (size_t)t->o.n_taps;
    if (!t->taps) return WG_OK;
    WG_TRY(wg_taps_read(t->taps, 0, n, t->tapped, err));
    for (size_t r = 0; r < (size_t)n; r++)
        for (size_t k = 0; k < taps; k++)
            memcpy(wg_target_rows_state(t, (int)(first + r), (int)k), t->tapped + (r * taps + k) * dim,
                   dim * sizeof *t->hidden);
    return WG_OK;
}

static wg_status compute_sequence(wg_target_rows *t, int sequence, wg_error *err)
{
    const int length = t->rows.length;
    const size_t at = (size_t)sequence * (size_t)length;
    for (int first = 0, n; first < length; first += n) {
        n = length - first < t->batch.cap ? length - first : t->batch.cap;
        WG_TRY(wg_kv_reserve(t->seq, n, err));
        softmax_job j = { t, add_block(t, at, first, n) };
        t->batch.taps = t->taps;
        WG_TRY(wg_lm_forward(t->o.lm, &t->batch, t->logits, err));
        WG_TRY(keep_hidden(t, at + (size_t)first, n, err));
        wg_kv_commit_chain(t->seq, n);
        wg_pool_run(t->o.pool, softmax_rows, &j);
        if (j.rows > 0) t->last = t->scored[j.rows - 1];
    }
    return WG_OK;
}

void wg_target_rows_begin(wg_target_rows *t, const wg_train_rows *rows)
{
    wg_assert(rows->sequences <= t->o.sequences && rows->length <= t->o.length);
    t->rows = *rows;
}

float *wg_target_rows_set(wg_target_rows *t, int row, double entropy)
{
    float *p = t->p + (size_t)row * (size_t)t->width;
    memset(p, 0, (size_t)t->width * sizeof *p);
    t->entropy[row] = entropy;
    t->last = row;
    return p;
}

wg_status wg_target_rows_compute(wg_target_rows *t, const wg_train_rows *rows, wg_error *err)
{
    wg_target_rows_begin(t, rows);
    for (int i = 0; i < rows->sequences; i++) {
        const wg_status s = compute_sequence(t, i, err);
        wg_kv_rollback(t->seq);
        wg_kv_truncate(t->seq, 0);
        WG_TRY(s);
    }
    return WG_OK;
}
