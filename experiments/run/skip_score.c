/* SPDX-License-Identifier: MIT
 * A draft of length g that starts at token s of a text reads the target's keys and values before s, and its own for its
 * rows. Its first i tokens are all accepted with probability E[ prod_{j < i} min(1, q/p)(y_j) * sum min(p, q) at i ], where
 * y is a text drawn from p: exact for token-wise rejection, whatever the dependence between positions (methods.md, Exact tau).
 * Drafts start at every `length`th token of the continuations; the drafts of many texts share one pass, each in its own tail
 * slots. */
#include "experiments/run/skip_score.h"

#include <math.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/model/submodel.h"
#include "core/setup/spec.h"

enum { ROWS = 64, BATCH = 8, PAGE = 16 };

typedef struct text {
    int32_t *token;
    int n, prompt;
    wg_kv_seq *kv;
    long first; /* row of p of its first scored token, token `prompt` */
} text;

struct wg_skip_scorer {
    wg_target *t;
    wg_skip_options opt;
    text *text;
    int n;
    long scored;
    float *p; /* (scored, vocab) */
    wg_kv *kv;
    wg_submodel *part;
    wg_sampler sampler;
    wg_rows row; /* one row */
    wg_batch batch;
    float *logits; /* (ROWS, vocab) */
};

/* ---- the texts */

static wg_status read_prompt(const wg_skip_scorer *s, const wg_prompt *p, text *x, wg_error *err)
{
    size_t n;
    const wg_text asked = { p->text, p->bytes };
    wg_chat chat = s->opt.chat;
    chat.model = s->t->weights;
    WG_TRY(wg_chat_encode(s->t->tokenizer, &chat, &asked, 1, &x->token, &n, err));
    const int most = s->t->lm->context - s->opt.tokens;
    if (n == 0 || most < 1)
        return wg_fail(err, WG_EINVAL, "prompt %s: %zu tokens and %d more, in a context of %d: expected room for a prompt",
                       p->id, n, s->opt.tokens, s->t->lm->context);
    x->n = x->prompt = n < (size_t)most ? (int)n : most;
    return WG_OK;
}

static wg_status take_text(text *x, const wg_seq *seq, wg_error *err)
{
    int32_t *more = wg_realloc(x->token, (size_t)seq->n, sizeof *more);
    if (!more) return wg_nomem(err, (size_t)seq->n * sizeof *more, "a text");
    memcpy(more, seq->token, (size_t)seq->n * sizeof *more);
    x->token = more;
    x->n = seq->n;
    return WG_OK;
}

/* Decodes texts first .. first + n - 1 plainly. */
static wg_status continue_some(wg_skip_scorer *s, wg_engine *e, int first, int n, wg_error *err)
{
    wg_seq *seq[BATCH] = { 0 }, *running[BATCH];
    wg_status st = WG_OK;
    for (int i = 0; !st && i < n; i++) {
        const text *x = &s->text[first + i];
        st = wg_seq_open(e, &seq[i], (uint32_t)(first + i), x->token, x->prompt, s->opt.tokens, err);
    }
    while (!st) {
        int r = 0;
        for (int i = 0; i < n; i++)
            if (seq[i]->finish == WG_RUNNING) running[r++] = seq[i];
        if (r == 0) break;
        st = wg_engine_step(e, running, r, err);
    }
    for (int i = 0; i < n; i++) {
        if (!st) st = take_text(&s->text[first + i], seq[i], err);
        wg_seq_close(e, seq[i]);
    }
    return st;
}

static wg_status continue_all(wg_skip_scorer *s, wg_error *err)
{
    const wg_engine_options o = { .max_batch = BATCH, .seed = s->opt.seed, .sampling = s->opt.sampling };
    wg_engine *e = NULL;
    wg_engine_parts parts = wg_target_engine_parts(s->t);
    WG_TRY(wg_find_drafter(&wg_program_plugins, "none", &parts.drafter, err));
    WG_TRY(wg_find_verifier(&wg_program_plugins, "match", &parts.verifier, err));
    WG_TRY(wg_engine_open(&e, &parts, &o, err));
    wg_status st = WG_OK;
    for (int i = 0; !st && i < s->n; i += BATCH) st = continue_some(s, e, i, s->n - i < BATCH ? s->n - i : BATCH, err);
    wg_engine_close(e);
    return st;
}

/* ---- shared by all sets: the target's pages and p rows */

static void keep_row(wg_skip_scorer *s, const float *logits, float *to)
{
    const int vocab = s->row.vocab;
    wg_sampler_row(&s->sampler, logits, &s->row, 0);
    if (s->row.point[0] >= 0) {
        memset(to, 0, (size_t)vocab * sizeof *to);
        to[s->row.point[0]] = 1;
        return;
    }
    const double *p = wg_rows_at(&s->row, 0);
    for (int i = 0; i < vocab; i++) to[i] = (float)p[i];
}

static wg_status read_text(wg_skip_scorer *s, text *x, wg_error *err)
{
    const size_t vocab = (size_t)s->row.vocab;
    WG_TRY(wg_kv_seq_open(s->kv, &x->kv, err));
    for (int at = 0; at < x->n - 1;) {
        const int n = x->n - 1 - at < ROWS ? x->n - 1 - at : ROWS, before = x->prompt - 1 - at;
        const int asked = before <= 0 ? n : before < n ? n - before : 0;
        wg_batch_clear(&s->batch);
        WG_TRY(wg_kv_reserve(x->kv, n, err));
        wg_batch_chain(&s->batch, x->kv, at, x->token + at, n, asked);
        WG_TRY(wg_lm_forward(s->t->lm, &s->batch, s->logits, err));
        for (int i = 0; i < asked; i++)
            keep_row(s, s->logits + (size_t)i * vocab, s->p + (size_t)(x->first + at + n - asked + i + 1 - x->prompt) * vocab);
        wg_kv_commit_chain(x->kv, n);
        at += n;
    }
    return WG_OK;
}

static wg_status open_buffers(wg_skip_scorer *s, wg_error *err)
{
    const size_t vocab = (size_t)s->t->lm->vocab;
    long pages = 0;
    int longest = 0;
    for (int i = 0; i < s->n; i++) {
        s->text[i].first = s->scored;
        s->scored += s->text[i].n - s->text[i].prompt;
        pages += (s->text[i].n + ROWS) / PAGE + 1;
        if (s->text[i].n > longest) longest = s->text[i].n;
    }
    size_t floats;
    if (!wg_size_mul((size_t)s->scored, vocab, &floats) || !(s->p = wg_alloc(floats, sizeof *s->p)))
        return wg_nomem(err, (size_t)s->scored * vocab * sizeof *s->p, "the target's rows; give fewer prompts or tokens");
    if (!(s->logits = wg_alloc(ROWS * vocab, sizeof *s->logits)))
        return wg_nomem(err, ROWS * vocab * sizeof *s->logits, "logits");
    WG_TRY(wg_rows_open(&s->row, 1, (int)vocab, err));
    wg_rows_push(&s->row);
    WG_TRY(wg_sampler_open(&s->sampler, &s->opt.sampling, s->t->ops, (int)vocab, err));
    WG_TRY(wg_batch_open(&s->batch, ROWS, err));
    WG_TRY(wg_kv_open(&s->kv, PAGE, (int)pages, longest + ROWS, err));
    WG_TRY(wg_lm_attach(s->t->lm, s->kv, err));
    return wg_submodel_open(&s->part, s->t->lm, &(wg_layer_plan){ .layers = wg_model_arch(s->t->model)->layers }, err);
}

static wg_status open_all(wg_skip_scorer *s, const wg_dataset *d, wg_error *err)
{
    if (!(s->text = wg_calloc((size_t)d->n, sizeof *s->text))) return wg_nomem(err, (size_t)d->n * sizeof *s->text, "texts");
    for (; s->n < d->n; s->n++) {
        const wg_status st = read_prompt(s, &d->prompt[s->n], &s->text[s->n], err);
        if (st) return s->n++, st;
    }
    WG_TRY(continue_all(s, err));
    WG_TRY(open_buffers(s, err));
    for (int i = 0; i < s->n; i++) WG_TRY(read_text(s, &s->text[i], err));
    return WG_OK;
}

wg_status wg_skip_scorer_open(wg_skip_scorer **out, wg_target *t, const wg_dataset *d, const wg_skip_options *o, wg_error *err)
{
    wg_skip_scorer *s = wg_calloc(1, sizeof *s);
    if (!s) return wg_nomem(err, sizeof *s, "a search");
    s->t = t;
    s->opt = *o;
    const wg_status st = open_all(s, d, err);
    if (st) wg_skip_scorer_close(s);
    else *out = s;
    return st;
}

void wg_skip_scorer_close(wg_skip_scorer *s)
{
    if (!s) return;
    for (int i = 0; i < s->n; i++) {
        wg_kv_seq_close(s->text[i].kv);
        wg_free(s->text[i].token);
    }
    wg_submodel_close(s->part);
    wg_kv_close(s->kv);
    wg_batch_close(&s->batch);
    wg_sampler_close(&s->sampler);
    wg_rows_close(&s->row);
    wg_free(s->logits);
    wg_free(s->p);
    wg_free(s->text);
    wg_free(s);
}

long wg_skip_scorer_tokens(const wg_skip_scorer *s) { return s->scored; }
wg_lm *wg_skip_scorer_part(wg_skip_scorer *s) { return wg_submodel_lm(s->part); }

const int32_t *wg_skip_scorer_text(const wg_skip_scorer *s, int i, int *n, int *prompt)
{
    *n = s->text[i].n;
    *prompt = s->text[i].prompt;
    return s->text[i].token;
}

/* ---- one set */

typedef struct sums {
    double alpha, survived[WG_SKIP_LENGTH + 1];
    long starts[WG_SKIP_LENGTH + 1]; /* number of drafts that reach each depth before their text ends */
} sums;

/* Returns sum min(p, q); *keeps: min(1, q/p) of the text's token. */
static double overlap(wg_skip_scorer *s, const float *logits, const float *p, int32_t token, double *keeps)
{
    wg_rows *q = &s->row;
    wg_sampler_row(&s->sampler, logits, &s->row, 0);
    const double own = wg_rows_prob(q, 0, token), want = (double)p[token];
    *keeps = own >= want ? 1 : own / want;
    if (q->point[0] >= 0) return (double)p[q->point[0]];
    const wg_support all = wg_rows_support(q, 0);
    const double *mass = wg_rows_at(q, 0);
    double sum = 0;
    for (int k = 0; k < all.n; k++) {
        const int32_t x = wg_support_at(&all, k);
        sum += fmin((double)p[x], mass[x]);
    }
    return sum < 1 ? sum : 1; /* p is rounded to f32 */
}

/* Scores the drafts whose rows are in the batch; depth[i]: the draft position that row i predicts, from 1. */
static void sum_drafts(wg_skip_scorer *s, const text *x, const int *depth, sums *sum)
{
    const size_t vocab = (size_t)s->row.vocab;
    double survives = 1, keeps;
    for (int i = 0; i < s->batch.n; i++) {
        const int next = s->batch.row[i].position + 1; /* the token that this row predicts */
        if (depth[i] == 1) survives = 1;
        const double a = overlap(s, s->logits + (size_t)i * vocab, s->p + (size_t)(x->first + next - x->prompt) * vocab,
                                 x->token[next], &keeps);
        sum->alpha += a;
        sum->survived[depth[i]] += survives * a;
        sum->starts[depth[i]]++;
        survives *= keeps;
    }
}

static wg_status flush(wg_skip_scorer *s, const text *x, const int *depth, sums *sum, wg_error *err)
{
    if (s->batch.n == 0) return WG_OK;
    WG_TRY(wg_lm_forward(wg_submodel_lm(s->part), &s->batch, s->logits, err));
    sum_drafts(s, x, depth, sum);
    wg_batch_clear(&s->batch);
    return WG_OK;
}

/* Scores all drafts of one text. Rows of a draft see the target's slots before it, then each other. */
static wg_status score_text(wg_skip_scorer *s, const text *x, sums *sum, wg_error *err)
{
    const int len = wg_kv_len(x->kv), g = s->opt.length;
    int depth[ROWS];
    WG_TRY(wg_kv_reserve(x->kv, ROWS, err));
    wg_batch_clear(&s->batch);
    for (int start = x->prompt - 1; start < x->n - 1; start += g) {
        const int n = x->n - 1 - start < g ? x->n - 1 - start : g;
        if (s->batch.n + n > ROWS) WG_TRY(flush(s, x, depth, sum, err));
        const int tail = len + s->batch.n;
        wg_mask anc = { { 0 } };
        for (int i = 0; i < n; i++) {
            wg_row *r = &s->batch.row[s->batch.n];
            anc = wg_mask_with(anc, i);
            *r = (wg_row){ .token = x->token[start + i],
                           .position = start + i,
                           .slot = tail + i,
                           .prefix = start,
                           .tail = tail,
                           .anc = anc,
                           .logits = s->batch.logits++,
                           .kv = x->kv };
            depth[s->batch.n++] = i + 1;
        }
    }
    return flush(s, x, depth, sum, err);
}

wg_status wg_skip_scorer_run(wg_skip_scorer *s, const uint8_t *skip, wg_skip_score *out, wg_error *err)
{
    sums sum = { 0 };
    wg_status st = WG_OK;
    wg_submodel_set_skip(s->part, skip);
    for (int i = 0; !st && i < s->n; i++) {
        if (s->text[i].n == s->text[i].prompt) continue;
        st = score_text(s, &s->text[i], &sum, err);
        wg_kv_rollback(s->text[i].kv);
    }
    if (st) return st;
    *out = (wg_skip_score){ .alpha = sum.alpha / (double)s->scored, .tokens = { 1 } };
    for (int i = 1; i <= s->opt.length; i++)
        out->tokens[i] = out->tokens[i - 1] + (sum.starts[i] ? sum.survived[i] / (double)sum.starts[i] : 0);
    return WG_OK;
}
