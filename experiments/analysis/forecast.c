/* SPDX-License-Identifier: MIT
 * Expected tokens of drafts on texts (forecast.h). */
#include "experiments/analysis/forecast.h"

#include <string.h>

#include "core/base/mem.h"

enum { ROWS = 32 }; /* tokens of one reading pass */

/* ---- yields of drafts -------------------------------------------------------------------------------------------- */

void wg_fit_close(wg_fit *f)
{
    wg_free(f->overlap);
    wg_free(f->rank);
    *f = (wg_fit){ 0 };
}

double wg_forecast_chain(const wg_fit *f, int length, int *begun)
{
    double tokens = 0;
    *begun = 0;
    for (int t = 0; t + length <= f->n; t++, ++*begun) {
        double reach = 1;
        tokens += 1;
        for (int i = 0; i < length; i++) tokens += reach *= f->overlap[t + i];
    }
    return tokens;
}

double wg_forecast_tree(const wg_fit *f, const wg_shape *s, int *begun)
{
    double tokens = 0;
    *begun = 0;
    for (int t = 0; t + s->levels <= f->n; t++, ++*begun) {
        int node = 0, depth = 0;
        while (depth < s->levels && f->rank[t + depth] < s->children[node]) node = s->first[node] + f->rank[t + depth++];
        tokens += 1 + depth;
    }
    return tokens;
}

void wg_forecast_ranks(const wg_fit *f, int texts, double accept[WG_ACCEPT_MAX], int *n)
{
    long all = 0;
    memset(accept, 0, WG_ACCEPT_MAX * sizeof *accept);
    for (int i = 0; i < texts; i++) {
        all += f[i].n;
        for (int t = 0; t < f[i].n; t++)
            if (f[i].rank[t] < WG_ACCEPT_MAX) accept[f[i].rank[t]]++;
    }
    for (int r = 0; r < WG_ACCEPT_MAX; r++) accept[r] /= all ? (double)all : 1;
    *n = WG_ACCEPT_MAX;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

wg_status wg_fit_reader_open(wg_fit_reader *r, wg_engine *plain, const wg_engine_parts *parts, wg_lm *draft, wg_error *err)
{
    *r = (wg_fit_reader){ .plain = plain, .target = parts->target, .draft = draft };
    const int vocab = parts->target->vocab, context = wg_engine_options_of(plain)->max_tokens;
    if (draft->vocab != vocab)
        return wg_fail(err, WG_EVOCAB,
                       "the draft model has a vocabulary of %d tokens, the target one of %d; a forecast needs equal ones",
                       draft->vocab, vocab);
    const size_t logits = (size_t)2 * ROWS * (size_t)vocab * sizeof *r->logits;
    if (!(r->logits = wg_alloc(logits, 1))) return wg_nomem(err, logits, "the logits of two models");
    WG_TRY(wg_kv_open(&r->kv, 16, (context + ROWS) / 16 + 1, context + ROWS, err));
    WG_TRY(wg_lm_attach(r->target, r->kv, err)); /* first, as in the engine's cache: the same space in both */
    WG_TRY(wg_lm_attach(draft, r->kv, err));
    WG_TRY(wg_batch_open(&r->batch, ROWS, err));
    WG_TRY(wg_rows_open(&r->p, 1, vocab, err));
    WG_TRY(wg_rows_open(&r->q, 1, vocab, err));
    return wg_sampler_open(&r->sampler, &wg_engine_options_of(plain)->sampling, parts->ops, vocab, err);
}

void wg_fit_reader_close(wg_fit_reader *r)
{
    wg_sampler_close(&r->sampler);
    wg_rows_close(&r->p);
    wg_rows_close(&r->q);
    wg_batch_close(&r->batch);
    wg_kv_close(r->kv);
    wg_free(r->logits);
    *r = (wg_fit_reader){ 0 };
}

/* The number of tokens with a larger logit; the smaller id first among equals. */
static int rank_of(const float *logits, int vocab, int32_t token)
{
    int rank = 0;
    for (int i = 0; i < vocab; i++) rank += logits[i] > logits[token] || (logits[i] == logits[token] && i < token);
    return rank;
}

/* Runs both models over tokens at .. at+n-1; from `first` on each is followed by a token of the output. */
static wg_status read_some(wg_fit_reader *r, wg_kv_seq *kv, const int32_t *token, int at, int n, int first, wg_fit *out,
                           wg_error *err)
{
    const int asked = at + n > first ? (at + n - first < n ? at + n - first : n) : 0, vocab = r->target->vocab;
    float *p = r->logits, *q = r->logits + (size_t)ROWS * (size_t)vocab;
    WG_TRY(wg_kv_reserve(kv, n, err));
    wg_batch_clear(&r->batch);
    wg_batch_chain(&r->batch, kv, at, token + at, n, asked);
    WG_TRY(wg_lm_forward(r->target, &r->batch, p, err));
    WG_TRY(wg_lm_forward(r->draft, &r->batch, q, err));
    wg_kv_commit_chain(kv, n);
    for (int i = 0; i < asked; i++, p += vocab, q += vocab) {
        wg_sampler_row(&r->sampler, p, &r->p, 0);
        wg_sampler_row(&r->sampler, q, &r->q, 0);
        out->overlap[out->n] = wg_rows_overlap(&r->p, 0, &r->q, 0);
        out->rank[out->n++] = rank_of(q, vocab, token[at + n - asked + i + 1]);
    }
    return WG_OK;
}

wg_status wg_fit_read(wg_fit_reader *r, uint32_t request, const int32_t *prompt, int n, int max_new, wg_fit *out, wg_error *err)
{
    wg_seq *s = NULL;
    wg_kv_seq *kv = NULL;
    *out = (wg_fit){ .prompt = n,
                     .overlap = wg_calloc((size_t)max_new, sizeof *out->overlap),
                     .rank = wg_calloc((size_t)max_new, sizeof *out->rank) };
    wg_status st = out->overlap && out->rank ? wg_seq_open(r->plain, &s, request, prompt, n, max_new, err)
                                             : wg_nomem(err, (size_t)max_new * 16, "a text");
    while (!st && s->finish == WG_RUNNING) st = wg_engine_step(r->plain, &s, 1, err);
    if (!st) st = wg_kv_seq_open(r->kv, &kv, err);
    for (int at = 0; !st && at < s->n - 1; at += ROWS)
        st = read_some(r, kv, s->token, at, s->n - 1 - at < ROWS ? s->n - 1 - at : ROWS, n - 1, out, err);
    wg_kv_seq_close(kv);
    wg_seq_close(r->plain, s);
    if (st) wg_fit_close(out);
    return st;
}
