/* SPDX-License-Identifier: MIT
 * Perplexity over disjoint windows: each token is predicted from the tokens before it in its window, so early tokens count
 * as at the start of a text. */
#include "experiments/bench/bench_parts.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>

#include "core/base/json.h"
#include "core/base/json_line.h"
#include "core/base/mem.h"
#include "core/base/read_file.h"

enum { WINDOW = 256, TEXT_MOST = 256 << 20 };

typedef struct sum {
    double nats;
    long tokens;
} sum;

/* -log p of the token that follows each row, from logits. */
static void add_window(const wg_target *t, const int32_t *token, int n, const float *logits, double *p, sum *s)
{
    for (int i = 0; i + 1 < n; i++) {
        const float *x = logits + (size_t)i * (size_t)t->lm->vocab;
        const double all = t->ops->softmax64(x, t->lm->vocab, 1, p); /* p = exp(x - max) */
        const double max = x[t->ops->argmax(x, t->lm->vocab)];
        s->nats += log(all) - ((double)x[token[i + 1]] - max);
        s->tokens++;
    }
}

typedef struct scratch {
    wg_kv *kv;
    wg_kv_seq *seq;
    wg_batch batch;
    float *logits;
    double *p;
} scratch;

static wg_status scratch_open(scratch *x, const wg_target *t, int window, wg_error *err)
{
    const size_t vocab = (size_t)t->lm->vocab;
    WG_TRY(wg_kv_open(&x->kv, 16, window / 16 + 2, window, err));
    WG_TRY(wg_lm_attach(t->lm, x->kv, err));
    WG_TRY(wg_kv_seq_open(x->kv, &x->seq, err));
    WG_TRY(wg_batch_open(&x->batch, window, err));
    if (!(x->logits = wg_alloc((size_t)window * vocab, sizeof *x->logits)) || !(x->p = wg_alloc(vocab, sizeof *x->p)))
        return wg_nomem(err, (size_t)window * vocab * sizeof *x->logits, "logits");
    return WG_OK;
}

static void scratch_close(scratch *x)
{
    wg_free(x->p);
    wg_free(x->logits);
    wg_batch_close(&x->batch);
    wg_kv_seq_close(x->seq);
    wg_kv_close(x->kv);
}

static wg_status score(const wg_target *t, const int32_t *token, size_t n, sum *s, wg_error *err)
{
    const int window = t->lm->context < WINDOW ? t->lm->context : WINDOW;
    scratch x = { 0 };
    wg_status st = scratch_open(&x, t, window, err);
    for (size_t at = 0; !st && at + 1 < n; at += (size_t)window) {
        const int rows = n - at < (size_t)window ? (int)(n - at) : window;
        st = wg_kv_reserve(x.seq, rows, err);
        if (st) break;
        wg_batch_clear(&x.batch);
        wg_batch_chain(&x.batch, x.seq, 0, token + at, rows, rows);
        st = wg_lm_forward(t->lm, &x.batch, x.logits, err);
        wg_kv_rollback(x.seq);
        if (!st) add_window(t, token + at, rows, x.logits, x.p, s);
    }
    scratch_close(&x);
    return st;
}

wg_status wg_bench_perplexity(wg_target *t, const char *text, long most, bool json, wg_error *err)
{
    if (!text) return wg_fail(err, WG_EINVAL, "--text FILE is missing: the text to measure on");
    if (!t->tokenizer) return wg_fail(err, WG_EMODEL, "%s has no tokenizer: expected one, to read %s with", t->path, text);
    char *bytes;
    int32_t *token;
    size_t n_bytes, n;
    sum s = { 0 };
    WG_TRY(wg_read_file(text, TEXT_MOST, &bytes, &n_bytes, err));
    wg_status st = wg_tokenizer_encode(t->tokenizer, bytes, n_bytes, false, false, &token, &n, err);
    wg_free(bytes);
    if (st) return st;
    if (n < 2) st = wg_fail(err, WG_EINVAL, "%s has %zu tokens: expected at least 2", text, n);
    if (!st) st = score(t, token, n < (size_t)most ? n : (size_t)most, &s, err);
    wg_free(token);
    if (st) return st;
    const double nats = s.nats / (double)s.tokens;
    if (json) {
        json_t *o =
            json_pack("{s:I, s:f, s:f}", "tokens", (json_int_t)s.tokens, "nats_per_token", nats, "perplexity", exp(nats));
        wg_json_put_line(o, 0);
    } else {
        printf("%ld tokens: %.5f nats a token, perplexity %.4f\n", s.tokens, nats, exp(nats));
    }
    return WG_OK;
}
