/* SPDX-License-Identifier: MIT
 * wager bench draft: one sequence of `history` tokens over a skewed vocabulary, with repeated phrases, after a finished
 * request of the same kind. Four numbers: a proposal after each of ROUNDS further tokens (median and the slowest in a
 * hundred), learning a token (from the first proposal, which reads the whole history), learning from a step, and closing a
 * sequence, per token. */
#include "experiments/bench/bench_parts.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/json.h"
#include "core/base/json_line.h"
#include "core/base/mem.h"
#include "core/setup/spec.h"
#include "draft/draft.h"
#include "experiments/base/stats.h"
#include "kernels/cpu.h"
#include "kernels/philox.h"

enum { ROUNDS = 1000, VOCAB = 32000, TAUGHT = 4096 };

typedef struct bench {
    wg_env env;
    wg_lm lm;
    wg_drafter *drafter;
    wg_weights *weights;
    wg_tokenizer *tokenizer;
    int32_t *token; /* (history + ROUNDS) */
    float *logits;  /* (WG_TREE_MAX, vocab) */
    wg_rows q, p;
    wg_tree tree;
    double propose[ROUNDS], observe[ROUNDS], first, forget;
    long drafted;
    int history;
} bench;

/* Small ids are frequent; one token in ten begins a copy of 5 to 36 earlier ones. */
static void make_text(int32_t *t, int n, int vocab, uint32_t seed)
{
    for (int i = 0, copy = 0, from = 0; i < n; i++) {
        const wg_philox r = wg_philox_at(11, seed, (uint32_t)i, 0, 0);
        const double u = r.v[0] / 4294967296.0;
        if (copy == 0 && i > 100 && r.v[1] % 10 == 0) {
            copy = 5 + (int)(r.v[2] % 32);
            from = (int)(r.v[3] % (uint32_t)(i - 40));
        }
        t[i] = copy > 0 ? t[from++] : (int32_t)(u * u * u * u * vocab);
        copy -= copy > 0;
    }
}

static wg_status open_bench(bench *b, const wg_drafter_choice *c, const char *model, wg_error *err)
{
    if (model) {
        WG_TRY(wg_weights_open(&b->weights, model, err));
        WG_TRY(wg_tokenizer_open(&b->tokenizer, b->weights, err));
    }
    b->lm.vocab = b->tokenizer ? wg_tokenizer_size(b->tokenizer) : VOCAB;
    const size_t logits = (size_t)WG_TREE_MAX * (size_t)b->lm.vocab, tokens = (size_t)b->history + ROUNDS;
    b->token = wg_calloc(tokens, sizeof *b->token);
    b->logits = wg_alloc(logits, sizeof *b->logits);
    if (!b->token || !b->logits) return wg_nomem(err, logits * sizeof *b->logits, "logits");
    for (size_t i = 0; i < logits; i++) b->logits[i] = (float)wg_philox_at(12, (uint32_t)i, 0, 0, 0).v[0] * 1e-9f;
    WG_TRY(wg_rows_open(&b->q, WG_TREE_MAX, 1, err)); /* one-hot rows only: the width is not used */
    b->env = (wg_env){ .target = &b->lm,
                       .tokenizer = b->tokenizer,
                       .target_name = model ? model : "the benchmark (-m FILE names one)",
                       .max_batch = 2,
                       .ops = wg_ops_for(wg_cpu_chosen()),
                       .logits = b->logits };
    if (!(b->drafter = wg_calloc(1, c->class->size))) return wg_nomem(err, c->class->size, "a drafter");
    b->drafter->class = c->class;
    b->drafter->env = &b->env;
    if (c->options) memcpy((char *)b->drafter + c->class->options_at, c->options, c->class->size - c->class->options_at);
    return c->class->open ? c->class->open(b->drafter, &b->env, err) : WG_OK;
}

static void close_bench(bench *b)
{
    if (b->drafter && b->drafter->class->close) b->drafter->class->close(b->drafter);
    wg_free(b->drafter);
    wg_rows_close(&b->q);
    wg_free(b->token);
    wg_free(b->logits);
    wg_tokenizer_close(b->tokenizer);
    wg_weights_close(b->weights);
}

static wg_status propose(bench *b, wg_seq *s, double *seconds, wg_error *err)
{
    const double start = wg_clock_now();
    wg_rows_clear(&b->q);
    WG_TRY(b->drafter->class->propose(b->drafter, &s, 1, &b->tree, &b->q, err));
    *seconds = wg_clock_now() - start;
    b->tree.row = 0;
    return WG_OK;
}

/* Observes a step that accepted nothing. */
static double observe(bench *b, const wg_seq *s)
{
    const wg_path root = { .n = 1 };
    const double start = wg_clock_now();
    if (b->drafter->class->observe) b->drafter->class->observe(b->drafter, s, &b->tree, &root, &b->p);
    return wg_clock_now() - start;
}

static void forget(bench *b, const wg_seq *s)
{
    const double start = wg_clock_now();
    if (b->drafter->class->forget) b->drafter->class->forget(b->drafter, s);
    b->forget = wg_clock_now() - start;
}

static wg_status time_all(bench *b, wg_error *err)
{
    const int all = b->history + ROUNDS;
    wg_seq s = { .slot = 1, .token = b->token, .n = b->history, .cap = all, .limit = all + 100, .finish = WG_FINISH_LENGTH };
    make_text(b->token, all, b->lm.vocab, 1);
    WG_TRY(propose(b, &s, &b->first, err));
    forget(b, &s); /* the whole sequence counts as output */
    for (int i = 0; i < TAUGHT && i < b->history; i++) {
        wg_tree_reset(&b->tree, b->token[i], WG_LAW_FIXED);
        b->tree.row = i % WG_TREE_MAX;
        observe(b, &s);
    }
    make_text(b->token, all, b->lm.vocab, 2);
    s.slot = 0;
    s.prompt = b->history;
    WG_TRY(propose(b, &s, &b->first, err));
    for (int i = 0; i < ROUNDS; i++) {
        s.n++;
        b->observe[i] = observe(b, &s);
        WG_TRY(propose(b, &s, &b->propose[i], err));
        b->drafted += b->tree.n - 1;
    }
    forget(b, &s);
    return WG_OK;
}

static void print(bench *b, bool json)
{
    const char *name = b->drafter->class->name;
    const double us = 1e6, median = wg_quantile(b->propose, ROUNDS, 0.5) * us,
                 slow = wg_quantile(b->propose, ROUNDS, 0.99) * us;
    const double token = fmax(0, b->first * us - median) / b->history, step = wg_quantile(b->observe, ROUNDS, 0.5) * us,
                 close = b->forget * us / ROUNDS, drafted = (double)b->drafted / ROUNDS;
    if (!json) {
        printf("%-12s %8s %12s %9s %12s %12s %12s %8s\n", "drafter", "history", "us/proposal", "99 %", "us/token in",
               "us/step in", "us/token out", "drafted");
        printf("%-12s %8d %12.2f %9.2f %12.3f %12.2f %12.3f %8.2f\n", name, b->history, median, slow, token, step, close,
               drafted);
        return;
    }
    json_t *o =
        json_pack("{s:s, s:i, s:f, s:f, s:f, s:f, s:f, s:f}", "drafter", name, "history", b->history, "propose_us", median,
                  "propose_p99_us", slow, "token_us", token, "observe_us", step, "forget_token_us", close, "drafted", drafted);
    wg_json_put_line(o, 0);
}

wg_status wg_bench_draft(const char *spec, const char *model, int history, bool json, wg_error *err)
{
    wg_drafter_choice c = { 0 };
    WG_TRY(wg_choose_draft_flag(spec, &c, err));
    wg_status s = WG_OK;
    bench *b = wg_calloc(1, sizeof *b);
    if (!b) s = wg_nomem(err, sizeof *b, "a benchmark");
    else if (!c.class->stands_alone)
        s = wg_fail(err, WG_EINVAL, "bench draft: the drafter %s needs a target to run beside; time it with: wager bench round",
                    c.class->name);
    else {
        b->history = history;
        s = open_bench(b, &c, model, err);
        if (!s) s = time_all(b, err);
        if (!s) print(b, json);
        close_bench(b);
    }
    wg_free(b);
    wg_choice_close(&c);
    return s;
}
