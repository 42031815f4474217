/* SPDX-License-Identifier: MIT
 * Predictions for a draft model (plan.h). */
#include "experiments/cli/plan.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/json.h"
#include "core/base/json_line.h"
#include "core/base/mem.h"
#include "core/setup/spec.h"
#include "core/setup/target.h"
#include "draft/lm/second_model.h"
#include "experiments/analysis/forecast.h"
#include "experiments/base/stats.h"
#include "experiments/base/timing.h"
#include "experiments/run/calibrate.h"

/* TIMED_ROWS: rows of the largest timed pass; larger ones are extrapolated in proportion, as they are bound by arithmetic. */
enum { KV_F16 = 1, CANDIDATES = WG_TREE_MAX + WG_BENCH_LIST, TIMED_ROWS = 1024 };

/* A candidate draft, and its predictions. */
typedef struct candidate {
    wg_shape shape; /* a chain is a tree of width 1 */
    bool tree;
    double tau, tau_lo, tau_hi; /* bounds are NaN if the acceptance was given */
    wg_step_cost step;
    wg_predicted speed;
} candidate;

typedef struct planner {
    const wg_plan_forecast *o;
    wg_target *t;
    wg_engine *plain;
    wg_model *draft;
    wg_cost target_cost, draft_cost;
    wg_fit fit[WG_FORECAST_TEXTS];
    int texts, context;
    double rest;                  /* seconds of a plain step besides its pass: sampling a row and committing */
    double accept[WG_ACCEPT_MAX]; /* acceptance by rank in q; n_accept 0: unknown */
    int n_accept, n;
    candidate c[CANDIDATES];
    int budget[WG_BENCH_LIST], budgets; /* of o->budgets */
} planner;

/* ---- inputs ------------------------------------------------------------------------------------------------------ */

static wg_status open_parts(planner *p, wg_error *err)
{
    const wg_plan_forecast *o = p->o;
    const wg_target_options want = { .threads = (int)o->threads,
                                     .pin = o->pin,
                                     .quantize = o->quantize,
                                     .need_tokenizer = o->alpha < 0,
                                     .model = { .kv_type = o->kv_type } };
    WG_TRY(wg_target_open(&p->t, o->model, &want, err));
    wg_engine_parts parts = wg_target_engine_parts(p->t);
    const wg_engine_options engine = { .max_batch = 1,
                                       .seed = (uint64_t)o->seed,
                                       .sampling = WG_SAMPLING(o->temperature, 0, 1, 0) };
    WG_TRY(wg_find_drafter(&wg_program_plugins, "none", &parts.drafter, err));
    WG_TRY(wg_find_verifier(&wg_program_plugins, "match", &parts.verifier, err));
    WG_TRY(wg_engine_open(&p->plain, &parts, &engine, err));
    const wg_second_model_spec spec = { .path = o->draft, .device = "cpu", .kv_type = KV_F16 };
    return wg_second_model_open(&p->draft, wg_engine_env(p->plain), &spec, err);
}

static wg_status read_prompt(planner *p, wg_fit_reader *r, const wg_text *prompt, wg_error *err)
{
    int32_t *ids;
    size_t n;
    wg_chat chat = p->o->chat;
    chat.model = p->t->weights;
    WG_TRY(wg_chat_encode(p->t->tokenizer, &chat, prompt, 1, &ids, &n, err));
    const int room = p->t->lm->context - (int)p->o->n - 1;
    const size_t skip = room > 0 && n > (size_t)room ? n - (size_t)room : 0; /* a long prompt keeps its end only */
    const wg_status s = wg_fit_read(r, (uint32_t)p->texts, ids + skip, (int)(n - skip), (int)p->o->n, &p->fit[p->texts], err);
    wg_free(ids);
    if (!s) p->texts++;
    return s;
}

/* Reads the file's prompts, or the first built-in ones. */
static wg_status read_prompts(planner *p, wg_fit_reader *r, wg_error *err)
{
    const wg_setup_prompts slice = { .limit = (int)p->o->limit, .shuffle = (int)p->o->seed };
    wg_status s = WG_OK;
    wg_dataset *d = NULL;
    if (p->o->prompts) WG_TRY(wg_dataset_open(&d, p->o->prompts, &slice, err));
    const int n = d ? d->n : p->o->limit < WG_PLAN_PROMPTS ? (int)p->o->limit : WG_PLAN_PROMPTS;
    for (int i = 0; i < n && !s; i++) {
        const char *own = wg_plan_prompts[i % WG_PLAN_PROMPTS].text;
        const wg_text text = d ? (wg_text){ d->prompt[i].text, d->prompt[i].bytes } : (wg_text){ own, strlen(own) };
        s = read_prompt(p, r, &text, err);
    }
    wg_dataset_close(d);
    return s;
}

static wg_status read_texts(planner *p, wg_error *err)
{
    const wg_engine_parts parts = wg_target_engine_parts(p->t);
    wg_fit_reader r;
    wg_status s = wg_fit_reader_open(&r, p->plain, &parts, wg_model_lm(p->draft), err);
    if (!s) s = read_prompts(p, &r, err);
    wg_fit_reader_close(&r);
    if (s) return s;
    double tokens = 0, steps = 0;
    for (int i = 0; i < p->texts; i++) {
        tokens += p->fit[i].prompt + p->fit[i].n / 2.0;
        steps += p->fit[i].n;
    }
    p->context = p->o->context ? (int)p->o->context : (int)(tokens / p->texts);
    const wg_phases *phases = wg_engine_phases(p->plain);
    p->rest = (phases->accept + phases->kv + phases->draft) / fmax(1, steps);
    wg_forecast_ranks(p->fit, p->texts, p->accept, &p->n_accept);
    return WG_OK;
}

/* What the flags say, before anything is opened. */
static wg_status read_flags(planner *p, wg_error *err)
{
    if (p->o->accept) WG_TRY(wg_accept_parse(p->o->accept, p->accept, &p->n_accept, err));
    return wg_bench_numbers("budgets", p->o->budgets, 1, WG_DRAFT_MAX, p->budget, &p->budgets, err);
}

static wg_status learn(planner *p, wg_error *err)
{
    const wg_plan_forecast *o = p->o;
    p->context = o->context ? (int)o->context : p->t->lm->context / 2 < 256 ? p->t->lm->context / 2 : 256;
    if (o->alpha < 0) WG_TRY(read_texts(p, err));
    return WG_OK;
}

/* ---- candidates -------------------------------------------------------------------------------------------------- */

static wg_status add_candidates(planner *p, wg_error *err)
{
    const wg_plan_forecast *o = p->o;
    for (int g = 1; g <= o->length; g++) WG_TRY(wg_shape_chain(&p->c[p->n++].shape, g, err));
    for (int i = 0; p->n_accept && i < p->budgets; i++) {
        candidate *c = &p->c[p->n];
        const int most =
            p->budget[i] < WG_TREE_MAX ? p->budget[i] : WG_TREE_MAX - 1; /* as chains are cut to what a tree holds */
        WG_TRY(wg_shape_sequoia(&c->shape, p->accept, p->n_accept, most, (int)o->length, err));
        bool chain = true;
        for (int k = 0; k < c->shape.n; k++) chain = chain && c->shape.children[k] < 2;
        c->tree = true;
        p->n += !chain; /* chains are candidates already */
    }
    return WG_OK;
}

static double expect(const planner *p, const candidate *c, int text, int *begun)
{
    return c->tree ? wg_forecast_tree(&p->fit[text], &c->shape, begun)
                   : wg_forecast_chain(&p->fit[text], c->shape.levels, begun);
}

/* Predicts tau, with an interval over texts if acceptance was measured. */
static void foretell_tau(const planner *p, candidate *c)
{
    double tokens[WG_FORECAST_TEXTS], begun[WG_FORECAST_TEXTS];
    c->tau_lo = c->tau_hi = NAN;
    if (p->o->alpha >= 0) {
        c->tau = 1;
        for (int i = 1; i <= c->shape.levels; i++) c->tau += pow(p->o->alpha, i);
        if (c->tree) c->tau = wg_shape_expected(&c->shape, p->accept, p->n_accept);
        return;
    }
    for (int i = 0; i < p->texts; i++) {
        int n;
        tokens[i] = expect(p, c, i, &n);
        begun[i] = n;
    }
    const wg_ratio r = { .a = tokens, .b = begun, .n = p->texts };
    c->tau = wg_ratio_value(&r);
    if (!wg_ratio_interval(&r, &c->tau_lo, &c->tau_hi)) c->tau_lo = c->tau_hi = NAN;
}

/* Prices a candidate: each sampled row costs as much as in a plain step, each level of a draft one pass of the draft model. */
static void price(const planner *p, candidate *c, int batch, const wg_step_cost *plain)
{
    const double k = batch, rows = c->shape.n;
    c->step = (wg_step_cost){ 0, wg_cost_pass(&p->target_cost, rows * k, p->context, k) / k, p->rest * rows };
    for (int level = 0; level < c->shape.levels; level++) {
        const int wide = c->shape.above[level + 1] - c->shape.above[level];
        c->step.draft += wg_cost_pass(&p->draft_cost, wide * k, p->context, k) / k + p->rest * wide;
    }
    c->speed = wg_cost_speedup(c->tau, &c->step, plain, fmax(p->target_cost.error, p->draft_cost.error), p->draft_cost.error);
    if (isfinite(c->tau_lo)) { /* combines both errors as independent */
        const double lo = log(c->speed.lo / c->speed.speedup), hi = log(c->speed.hi / c->speed.speedup);
        const double down = log(c->tau_lo / c->tau), up = log(c->tau_hi / c->tau);
        c->speed.lo = c->speed.speedup * exp(-sqrt(lo * lo + down * down));
        c->speed.hi = c->speed.speedup * exp(sqrt(hi * hi + up * up));
    }
}

static void price_all(planner *p, int batch, wg_step_cost *plain)
{
    *plain = (wg_step_cost){ 0, wg_cost_pass(&p->target_cost, batch, p->context, batch) / batch, p->rest };
    for (int i = 0; i < p->n; i++) price(p, &p->c[i], batch, plain);
}

static wg_status foretell(planner *p, wg_step_cost *plain, wg_error *err)
{
    int rows = 1, wide = 1;
    const int batch = p->o->last_batch;
    for (int i = 0; i < p->n; i++) {
        const wg_shape *s = &p->c[i].shape;
        rows = s->n > rows ? s->n : rows;
        for (int l = 0; l < s->levels; l++) wide = s->above[l + 1] - s->above[l] > wide ? s->above[l + 1] - s->above[l] : wide;
    }
    WG_TRY(wg_cost_measure(&p->target_cost, p->t->lm, rows * batch < TIMED_ROWS ? rows * batch : TIMED_ROWS, p->context, batch,
                           err));
    WG_TRY(wg_cost_measure(&p->draft_cost, wg_model_lm(p->draft), wide * batch < TIMED_ROWS ? wide * batch : TIMED_ROWS,
                           p->context, batch, err));
    for (int i = 0; i < p->n; i++) foretell_tau(p, &p->c[i]);
    price_all(p, p->o->batch, plain);
    return WG_OK;
}

/* ---- printing ---------------------------------------------------------------------------------------------------- */

static int best_of(const planner *p)
{
    int best = -1;
    for (int i = 0; i < p->n; i++)
        if (p->c[i].speed.speedup > (best < 0 ? 1 : p->c[best].speed.speedup)) best = i;
    return best;
}

/* Writes the flags that select the candidate. Trees of ranked tokens need a rule that is lossless for them. */
static void put_flags(char *b, size_t n, const wg_plan_forecast *o, const candidate *c)
{
    if (!c->tree) snprintf(b, n, "--draft model:model=%s,length=%d --rule rejection", o->draft, c->shape.levels);
    else {
        char parents[WG_TREE_MAX * 4] = "";
        for (int i = 0; i < c->shape.n; i++)
            snprintf(parents + strlen(parents), sizeof parents - strlen(parents), "%s%d", i ? "," : "", c->shape.parent[i]);
        snprintf(b, n, "--draft model:model=%s,grow=file,tree=TREE,temperature=0 --rule topk   # TREE: a file with [%s]",
                 o->draft, parents);
    }
}

static void print_json(const planner *p, int i, bool best)
{
    const candidate *c = &p->c[i];
    char flags[1200];
    put_flags(flags, sizeof flags, p->o, c);
    json_t *ci = isfinite(c->tau_lo) ? json_pack("[f,f]", c->tau_lo, c->tau_hi) : json_null();
    json_t *v =
        json_pack("{s:s, s:i, s:i, s:f, s:o, s:f, s:f, s:f, s:f, s:[f,f], s:b, s:s}", "kind", c->tree ? "tree" : "chain",
                  "draft_tokens", c->shape.n - 1, "levels", c->shape.levels, "tau", c->tau, "tau_ci", ci, "draft_ms",
                  c->step.draft * 1e3, "verify_ms", c->step.verify * 1e3, "rest_ms", c->step.rest * 1e3, "predicted_speedup",
                  c->speed.speedup, "predicted_speedup_range", c->speed.lo, c->speed.hi, "best", best, "flags", flags);
    wg_json_put_line(v, JSON_REAL_PRECISION(9));
}

static void print_head(const planner *p, const wg_step_cost *plain)
{
    const double one = wg_cost_pass(&p->target_cost, 1, p->context, 1);
    printf("target  %s: %.4g ms for one row after %d tokens;", p->o->model, one * 1e3, p->context);
    for (int rows = 2; rows <= 16; rows *= 2)
        printf(" v(%d) %.2f%s", rows, wg_cost_pass(&p->target_cost, rows, p->context, 1) / one, rows < 16 ? "," : "\n");
    printf("draft   %s: %.4g ms a row, c = %.3f\n", p->o->draft, wg_cost_pass(&p->draft_cost, 1, p->context, 1) * 1e3,
           wg_cost_pass(&p->draft_cost, 1, p->context, 1) / one);
    double overlap = 0, n = 0;
    for (int i = 0; i < p->texts; i++)
        for (int t = 0; t < p->fit[i].n; t++) overlap += p->fit[i].overlap[t], n++;
    if (p->texts)
        printf("alpha   %.3f over %.0f tokens of %d texts at temperature %g\n", overlap / n, n, p->texts, p->o->temperature);
    else printf("alpha   %.3f, as given\n", p->o->alpha);
    printf("plain   %.4g ms a token, batch %d\n\n", (plain->verify + plain->rest) * 1e3, p->o->batch);
}

static void print_plan(const planner *p, const wg_step_cost *plain)
{
    const int best = best_of(p);
    char flags[1200];
    print_head(p, plain);
    printf("draft         tokens  levels                tau  draft ms  verify ms  rest ms            speed-up\n");
    for (int i = 0; i < p->n; i++) {
        const candidate *c = &p->c[i];
        char tau[64], speed[64];
        snprintf(tau, sizeof tau, isfinite(c->tau_lo) ? "%.2f [%.2f, %.2f]" : "%.2f", c->tau, c->tau_lo, c->tau_hi);
        snprintf(speed, sizeof speed, "%.2fx [%.2f, %.2f]", c->speed.speedup, c->speed.lo, c->speed.hi);
        printf("%-13s %6d  %6d  %17s  %8.4f  %9.4f  %7.4f  %18s%s\n", c->tree ? "tree" : "chain", c->shape.n - 1,
               c->shape.levels, tau, c->step.draft * 1e3, c->step.verify * 1e3, c->step.rest * 1e3, speed,
               i == best ? "  <- best" : "");
    }
    if (p->texts && p->texts < WG_INTERVAL_PROMPTS)
        printf("\nno interval of tau: it takes %d texts; the range of the speed-up is that of the costs alone\n",
               WG_INTERVAL_PROMPTS);
    if (best < 0) printf("\nplain decoding is the fastest here\n");
    else put_flags(flags, sizeof flags, p->o, &p->c[best]), printf("\n%s\n", flags);
}

/* ---- a range of batches ------------------------------------------------------------------------------------------ */

wg_status wg_plan_batches(const char *text, int *first, int *last, wg_error *err)
{
    char *end;
    const long a = strtol(text, &end, 10);
    const bool range = end != text && !strncmp(end, "..", 2);
    const char *second = end + 2;
    const long b = range ? strtol(second, &end, 10) : a;
    if (end == text || (range && end == second) || *end || a < 1 || b < a || b > WG_PLAN_BATCHES)
        return wg_fail(err, WG_EINVAL, "--batch %s: expected 1..%d sequences of a step: a number, or a range such as 1..%d",
                       text, WG_PLAN_BATCHES, WG_PLAN_BATCHES);
    *first = (int)a;
    *last = (int)b;
    return WG_OK;
}

/* Whether a size is printed: the first, the last, powers of two, and sizes whose draft differs from the previous size's. */
static bool shown(const wg_batch_choice *c, int n, int i)
{
    const wg_batch_choice *x = &c[i], *y = i ? &c[i - 1] : x;
    return i == 0 || i == n - 1 || (x->batch & (x->batch - 1)) == 0 || x->tokens != y->tokens || x->levels != y->levels ||
           x->tree != y->tree || x->chain != y->chain;
}

void wg_plan_batch_print(const wg_batch_choice *c, int n)
{
    puts("batch  draft  tokens  levels    tau            speed-up  plain tok/s     tok/s  best chain  speed-up");
    for (int i = 0; i < n; i++) {
        const wg_batch_choice *x = &c[i];
        char speed[64];
        if (!shown(c, n, i)) continue;
        if (x->tokens) snprintf(speed, sizeof speed, "%.2fx [%.2f, %.2f]", x->speedup, x->lo, x->hi);
        else snprintf(speed, sizeof speed, "1.00x");
        printf("%5d  %-5s  %6d  %6d  %5.2f  %18s  %11.1f  %8.1f  %10d     %.2fx\n", x->batch,
               !x->tokens ? "none"
               : x->tree  ? "tree"
                          : "chain",
               x->tokens, x->levels, x->tau, speed, x->plain, x->drafted, x->chain, x->chain_speedup);
    }
}

void wg_plan_batch_json(const wg_batch_choice *c, int n)
{
    for (int i = 0; i < n; i++) {
        const wg_batch_choice *x = &c[i];
        json_t *v = json_pack("{s:s, s:i, s:s, s:i, s:i, s:f, s:f, s:[f,f], s:i, s:f, s:f, s:f}", "kind", "batch", "batch",
                              x->batch, "draft",
                              !x->tokens ? "none"
                              : x->tree  ? "tree"
                                         : "chain",
                              "draft_tokens", x->tokens, "levels", x->levels, "tau", x->tau, "predicted_speedup", x->speedup,
                              "predicted_speedup_range", x->lo, x->hi, "chain_tokens", x->chain, "chain_predicted_speedup",
                              x->chain_speedup, "plain_tok_s", x->plain, "tok_s", x->drafted);
        wg_json_put_line(v, JSON_REAL_PRECISION(9));
    }
}

void wg_plan_batch_vllm(const wg_batch_choice *c, int n, const char *draft)
{
    json_t *ranges = json_array();
    int most = 1; /* vLLM requires a window even if it is unused */
    for (int i = 0, from = 0; i < n; i++) {
        if (c[i].chain > most) most = c[i].chain;
        if (i + 1 < n && c[i + 1].chain == c[i].chain) continue;
        json_array_append_new(ranges, json_pack("[i,i,i]", from ? c[from].batch : 1, c[i].batch, c[i].chain));
        from = i + 1;
    }
    json_t *v = json_pack("{s:s, s:s, s:i, s:o}", "method", "draft_model", "model", draft, "num_speculative_tokens", most,
                          "num_speculative_tokens_per_batch_size", ranges);
    wg_json_put_line(v, 0);
}

static wg_batch_choice choose_at(planner *p, int batch)
{
    wg_step_cost plain;
    price_all(p, batch, &plain);
    const double share = plain.verify + plain.rest;
    const int best = best_of(p);
    wg_batch_choice c = {
        .batch = batch, .tau = 1, .speedup = 1, .lo = 1, .hi = 1, .chain_speedup = 1, .plain = 1 / share, .drafted = 1 / share
    };
    for (int i = 0; i < p->n; i++)
        if (!p->c[i].tree && p->c[i].speed.speedup > c.chain_speedup)
            c.chain = p->c[i].shape.levels, c.chain_speedup = p->c[i].speed.speedup;
    if (best < 0) return c;
    const candidate *b = &p->c[best];
    c.tree = b->tree;
    c.tokens = b->shape.n - 1;
    c.levels = b->shape.levels;
    c.tau = b->tau;
    c.speedup = b->speed.speedup;
    c.lo = b->speed.lo;
    c.hi = b->speed.hi;
    c.drafted = b->tau / (b->step.draft + b->step.verify + b->step.rest);
    return c;
}

static void plan_batches(planner *p, const wg_step_cost *plain)
{
    wg_batch_choice c[WG_PLAN_BATCHES];
    const int n = p->o->last_batch - p->o->batch + 1;
    if (!p->o->json && !p->o->vllm) print_head(p, plain);
    for (int i = 0; i < n; i++) c[i] = choose_at(p, p->o->batch + i);
    if (p->o->vllm) wg_plan_batch_vllm(c, n, p->o->draft);
    else if (p->o->json) wg_plan_batch_json(c, n);
    else wg_plan_batch_print(c, n);
}

static wg_status run(planner *p, wg_error *err)
{
    wg_step_cost plain;
    WG_TRY(read_flags(p, err));
    WG_TRY(open_parts(p, err));
    WG_TRY(learn(p, err));
    WG_TRY(add_candidates(p, err));
    WG_TRY(foretell(p, &plain, err));
    if (p->o->last_batch > p->o->batch || p->o->vllm) {
        plan_batches(p, &plain);
        return WG_OK;
    }
    if (!p->o->json) print_plan(p, &plain);
    for (int i = 0; i < p->n && p->o->json; i++) print_json(p, i, i == best_of(p));
    return WG_OK;
}

wg_status wg_plan_foretell(const wg_plan_forecast *o, wg_error *err)
{
    planner *p = wg_calloc(1, sizeof *p);
    if (!p) return wg_nomem(err, sizeof *p, "a plan");
    p->o = o;
    const wg_status s = run(p, err);
    for (int i = 0; i < p->texts; i++) wg_fit_close(&p->fit[i]);
    wg_engine_close(p->plain);
    wg_model_close(p->draft);
    wg_target_close(p->t);
    wg_free(p);
    return s;
}
