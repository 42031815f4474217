/* SPDX-License-Identifier: MIT
 * wager skip-search: finds the sub-layers of a target that a draft can skip (drafter layer_skip), on the given prompts. The
 * value of a set is the expected speed-up of Leviathan et al. 2023 (methods.md, Expected speed): tokens of a step / (length * c
 * + v), at the best length; the tokens from acceptance measured on the target's own texts (skip_score.h), c and v from
 * multiply-adds, or measured (--time). Deterministic by its seed, unless costs are measured. */
#include <jansson.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "core/base/json.h"
#include "core/base/json_line.h"
#include "core/base/clock.h"
#include "core/base/mem.h"
#include "core/base/save.h"
#include "core/engine/pass_time.h"
#include "core/file/quantize.h"
#include "core/model/submodel.h"
#include "experiments/cli/cli.h"
#include "experiments/run/skip_score.h"
#include "experiments/analysis/skip_search.h"

enum { LONGEST = (int)WG_TREE_MAX > (int)WG_SKIP_LENGTH ? (int)WG_SKIP_LENGTH : (int)WG_TREE_MAX - 1 };

/* Costs in units of a target pass over one row. */
typedef struct costs {
    double attention, mlp, head;     /* of one layer's sub-layers; head: with embedding and last norm */
    double pass[WG_SKIP_LENGTH + 2]; /* target pass over i rows; [1] == 1 */
} costs;

typedef struct outcome {
    wg_skip_score score;
    double c, speedup;
    int length;
} outcome;

typedef struct search {
    const char *model, *prompts, *category, *out, *chat_name, *system, *kv_name, *quantize;
    wg_chat chat;
    long limit, tokens, length, skip, tries, seed, threads, top_k;
    double temperature, top_p, verify_cost;
    int kv_type;
    bool time, json, pin, watched; /* watched: progress on a terminal */
    wg_target *t;
    wg_dataset *d;
    wg_skip_scorer *scorer;
    costs cost;
    int layers, exit; /* exit: the best early exit found; 0: none */
    outcome at_exit, best;
    uint8_t *skipped; /* (layers) the best set */
    long sets;
} search;

/* ---- costs */

static void count_costs(search *s)
{
    const wg_arch *a = wg_model_arch(s->t->model);
    const double all = (double)wg_arch_macs(a);
    s->cost = (costs){
        (double)wg_arch_attention_macs(a) / all, (double)wg_arch_mlp_macs(a) / all, (double)wg_arch_head_macs(a) / all, { 0 }
    };
    for (int i = 1; i <= WG_SKIP_LENGTH + 1; i++) s->cost.pass[i] = i == 1 ? 1 : s->verify_cost;
}

static const double TIMED = 0.7; /* seconds of timing for one kind of pass */

/* Times a pass without all sub-layers of one kind. */
static wg_status time_without(search *s, uint8_t bit, double *seconds, wg_error *err)
{
    wg_prices time;
    wg_skip_score ignored;
    memset(s->skipped, bit, (size_t)s->layers);
    WG_TRY(wg_skip_scorer_run(s->scorer, s->skipped, &ignored, err));
    WG_TRY(wg_time_passes(wg_skip_scorer_part(s->scorer), 1, TIMED, &time, err));
    *seconds = time.seconds[0];
    return WG_OK;
}

static wg_status measure_costs(search *s, wg_error *err)
{
    wg_prices time;
    double attention, mlp;
    WG_TRY(wg_time_passes(s->t->lm, (int)s->length + 1, TIMED, &time, err));
    WG_TRY(time_without(s, WG_SKIP_ATTENTION, &attention, err));
    WG_TRY(time_without(s, WG_SKIP_MLP, &mlp, err));
    attention = fmax(0, 1 - attention / time.seconds[0]);
    mlp = fmax(0, 1 - mlp / time.seconds[0]);
    s->cost = (costs){ attention / s->layers, mlp / s->layers, fmax(0, 1 - attention - mlp), { 0 } };
    for (int i = 1; i <= s->length + 1; i++) s->cost.pass[i] = wg_prices_of(&time, i) / time.seconds[0];
    return WG_OK;
}

/* ---- the value of a set */

static double cost_of(const search *s, const uint8_t *skip)
{
    double c = s->cost.head;
    for (int i = 0; i < s->layers; i++)
        c += (skip[i] & WG_SKIP_ATTENTION ? 0 : s->cost.attention) + (skip[i] & WG_SKIP_MLP ? 0 : s->cost.mlp);
    return c;
}

/* The layer after which the set skips everything and before which nothing; 0: it is not an early exit. */
static int exit_of(const uint8_t *skip, int layers)
{
    int e = 0;
    while (e < layers && !skip[e]) e++;
    for (int i = e; i < layers; i++)
        if (skip[i] != (WG_SKIP_ATTENTION | WG_SKIP_MLP)) return 0;
    return e;
}

static wg_status value(void *user, const uint8_t *skip, double *out, wg_error *err)
{
    search *s = user;
    outcome o = { .c = cost_of(s, skip) };
    WG_TRY(wg_skip_scorer_run(s->scorer, skip, &o.score, err));
    for (int i = 1; i <= s->length; i++) {
        const double speedup = o.score.tokens[i] / (i * o.c + s->cost.pass[i + 1]);
        if (speedup > o.speedup) o.speedup = speedup, o.length = i;
    }
    const int exit = exit_of(skip, s->layers);
    if (exit && o.speedup > s->at_exit.speedup) s->at_exit = o, s->exit = exit;
    if (o.speedup > s->best.speedup) s->best = o;
    if (s->watched) fprintf(stderr, "\r%ld sets, the best %.2f ", ++s->sets, s->best.speedup);
    *out = o.speedup;
    return WG_OK;
}

static wg_status find(search *s, wg_error *err)
{
    const wg_target_options want = { .threads = (int)s->threads,
                                     .pin = s->pin,
                                     .quantize = s->quantize,
                                     .need_tokenizer = true,
                                     .model = { .kv_type = s->kv_type } };
    wg_skip_options o = { .tokens = (int)s->tokens,
                          .length = (int)s->length,
                          .seed = (uint64_t)s->seed,
                          .chat = s->chat,
                          .sampling = WG_SAMPLING(s->temperature, (int)s->top_k, s->top_p, 0) };
    wg_setup_prompts taken = { .limit = (int)s->limit };
    if (s->category) WG_TRY(wg_option_set(wg_setup_prompts_table, &taken, "category", s->category, err));
    WG_TRY(wg_dataset_open(&s->d, s->prompts, &taken, err));
    WG_TRY(wg_target_open(&s->t, s->model, &want, err));
    s->layers = wg_model_arch(s->t->model)->layers;
    if (s->skip >= 2 * s->layers)
        return wg_fail(err, WG_EINVAL,
                       "--skip %ld: the target has %d sub-layers (an attention and an MLP a layer); expected "
                       "1..%d, or 0 for the best number",
                       s->skip, 2 * s->layers, 2 * s->layers - 1);
    if (!(s->skipped = wg_calloc((size_t)s->layers, sizeof *s->skipped))) return wg_nomem(err, (size_t)s->layers, "a set");
    WG_TRY(wg_skip_scorer_open(&s->scorer, s->t, s->d, &o, err));
    count_costs(s);
    if (s->time) WG_TRY(measure_costs(s, err));
    const wg_skip_problem p = {
        .layers = s->layers, .size = (int)s->skip, .tries = s->tries, .seed = (uint64_t)s->seed, .value = value, .user = s
    };
    double best;
    WG_TRY(wg_skip_search(&p, s->skipped, &best, &s->sets, err));
    if (s->watched) fputs("\r\033[K", stderr);
    s->watched = false;
    s->best = (outcome){ 0 }; /* sets evaluated on the way may have another size */
    return value(s, s->skipped, &best, err);
}

/* ---- results */

static json_t *as_draft(const search *s)
{
    char attention[2048], mlp[2048];
    json_t *o = json_pack("{s:s}", "kind", "layer_skip");
    if (*wg_skip_list(s->skipped, s->layers, WG_SKIP_ATTENTION, attention, sizeof attention))
        json_object_set_new(o, "attention", json_string(attention));
    if (*wg_skip_list(s->skipped, s->layers, WG_SKIP_MLP, mlp, sizeof mlp)) json_object_set_new(o, "mlp", json_string(mlp));
    json_object_set_new(o, "length", json_integer(s->best.length));
    return o;
}

static json_t *as_json(const search *s)
{
    json_t *o = json_pack("{s:o, s:f, s:f, s:f, s:f, s:s, s:f, s:I, s:i, s:I, s:s, s:s, s:s, s:f, s:I}", "draft", as_draft(s),
                          "alpha", s->best.score.alpha, "c", s->best.c, "tokens_per_step", s->best.score.tokens[s->best.length],
                          "expected_speedup", s->best.speedup, "costs", s->time ? "measured" : "multiply-adds", "verify_cost",
                          s->cost.pass[s->best.length + 1], "sets", (json_int_t)s->sets, "texts", s->d->n, "scored_tokens",
                          (json_int_t)wg_skip_scorer_tokens(s->scorer), "model", s->model, "prompts", s->prompts,
                          "prompts_sha256", s->d->sha256, "temperature", s->temperature, "seed", (json_int_t)s->seed);
    if (s->exit)
        json_object_set_new(o, "best_exit",
                            json_pack("{s:i, s:f, s:f, s:i, s:f}", "layer", s->exit, "alpha", s->at_exit.score.alpha, "c",
                                      s->at_exit.c, "length", s->at_exit.length, "expected_speedup", s->at_exit.speedup));
    return o;
}

static void print_row(const char *what, const outcome *o)
{
    printf("%-24s %6.3f %6.3f %7d %7.2f %9.2f\n", what, o->score.alpha, o->c, o->length, o->score.tokens[o->length],
           o->speedup);
}

static void print_text(const search *s, double seconds)
{
    char exit[40], attention[2048], mlp[2048];
    wg_skip_list(s->skipped, s->layers, WG_SKIP_ATTENTION, attention, sizeof attention);
    wg_skip_list(s->skipped, s->layers, WG_SKIP_MLP, mlp, sizeof mlp);
    printf(
        "%d layers, an attention block and an MLP each; %d texts, %ld tokens scored at temperature %g; %ld sets in %.1f s\n\n",
        s->layers, s->d->n, wg_skip_scorer_tokens(s->scorer), s->temperature, s->sets, seconds);
    printf("%-24s %6s %6s %7s %7s %9s\n", "", "alpha", "c", "length", "tokens", "speed-up");
    snprintf(exit, sizeof exit, "early_exit:layer=%d", s->exit);
    if (s->exit) print_row(exit, &s->at_exit);
    print_row("layer_skip, below", &s->best);
    printf("\nspeed-up: expected, tokens of a step / (length * c + v), with c and v %s\n",
           s->time ? "measured here" : "from multiply-adds (--time measures them)");
    if (s->best.speedup <= 1) puts("no set is expected to be faster than plain decoding");
    json_t *draft = as_draft(s);
    char *line = json_dumps(draft, JSON_PRESERVE_ORDER);
    printf("\n\"draft\": %s\n--draft layer_skip:%s%s%s%s%slength=%d\n", line ? line : "", *attention ? "attention=" : "",
           attention, *attention ? "," : "", *mlp ? "mlp=" : "", *mlp ? (strcat(mlp, ","), mlp) : "", s->best.length);
    free(line);
    json_decref(draft);
}

static wg_status write_json(const search *s, wg_save *f, wg_error *err)
{
    json_t *o = as_json(s);
    char *text = json_dumps(o, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
    json_decref(o);
    if (!text) return wg_nomem(err, 1000, s->out);
    wg_status st = wg_save_write(f, text, strlen(text), err);
    if (!st) st = wg_save_write(f, "\n", 1, err);
    free(text);
    return st;
}

static wg_status run(search *s, wg_error *err)
{
    const double start = wg_clock_now();
    wg_save *f = NULL; /* opened first, since a search is long */
    if (s->out) WG_TRY(wg_save_open(&f, s->out, err));
    wg_status st = find(s, err);
    if (!st && f) st = write_json(s, f, err);
    if (st) wg_save_abort(f);
    else if (f) st = wg_save_commit(f, err);
    WG_TRY(st);
    if (!s->json) {
        print_text(s, wg_clock_now() - start);
        return WG_OK;
    }
    json_t *o = as_json(s);
    wg_json_put_line(o, 0);
    return WG_OK;
}

int wg_cmd_skip_search(int argc, char **argv)
{
    search s = {
        .limit = 24, .tokens = 48, .length = 5, .tries = 200, .seed = 1, .temperature = 1, .top_p = 1, .verify_cost = 1
    };
    const wg_flag flags[] = {
        WG_MODEL_ROW(WG_FLAG_MODEL, &s.model, "the target model"),
        { "prompts", 'p', WG_FLAG_STRING, &s.prompts, "FILE", "prompts like those that the draft will meet (JSONL)", 0, 0 },
        { "category", 0, WG_FLAG_STRING, &s.category, "NAME", "only prompts of this category", 0, 0 },
        { "chat", 0, WG_FLAG_CHOICE, &s.chat_name, WG_CHAT_VALUES, WG_CHAT_DOC, 0, 0 },
        { "system", 0, WG_FLAG_STRING, &s.system, "TEXT", WG_SYSTEM_DOC, 0, 0 },
        { "limit", 0, WG_FLAG_INT, &s.limit, "N", "use the first N prompts; 0: all", 0, 1e6 },
        { "tokens", 'n', WG_FLAG_INT, &s.tokens, "N", "continue each prompt by N tokens, which are scored", 1, 1e6 },
        { "length", 'l', WG_FLAG_INT, &s.length, "N", "length of the longest draft, in tokens", 1, LONGEST },
        { "skip", 0, WG_FLAG_INT, &s.skip, "N", "number of sub-layers to leave out; 0: the best number", 0, 1e6 },
        { "tries", 0, WG_FLAG_INT, &s.tries, "N", "number of sets that the last stage tries; all where there are fewer", 0,
          1e5 },
        { "temp", 't', WG_FLAG_FLOAT, &s.temperature, "T", "temperature of texts and acceptance", 0, 100 },
        { "top-k", 0, WG_FLAG_INT, &s.top_k, "K", "keep the K most probable tokens; 0 keeps all", 0, 1e9 },
        { "top-p", 0, WG_FLAG_FLOAT, &s.top_p, "P", "keep the most probable tokens up to mass P", 0, 1 },
        { "verify-cost", 0, WG_FLAG_FLOAT, &s.verify_cost, "V", "cost of a target pass over a draft, in passes over one row",
          0.01, 1000 },
        { "time", 0, WG_FLAG_BOOL, &s.time, NULL, "measure costs on this machine instead of counting multiply-adds", 0, 0 },
        { "seed", 0, WG_FLAG_INT, &s.seed, "S", "seed of the texts and of the search", 0, 0 },
        { "threads", 0, WG_FLAG_INT, &s.threads, "N", "number of threads; 0: all cores", 0, 256 },
        { "pin", 0, WG_FLAG_BOOL, &s.pin, NULL, "bind each worker thread to a processor of its own", 0, 0 },
        { "kv-type", 0, WG_FLAG_CHOICE, &s.kv_name, WG_KV_TYPE_VALUES, WG_KV_TYPE_DOC " (f16)", 0, 0 },
        { "quantize", 0, WG_FLAG_STRING, &s.quantize, "T[,P=T]...", WG_QUANTIZE_DOC, 0, 0 },
        { "out", 'o', WG_FLAG_STRING, &s.out, "FILE", "write the set to FILE, as JSON", 0, 0 },
        { "json", 0, WG_FLAG_BOOL, &s.json, NULL, "one JSON object instead of text", 0, 0 },
        { 0 },
    };
    const int done = wg_cli_parse("skip-search", flags, argc, argv, NULL, 0, 0);
    if (done >= 0) return done;
    if (!wg_cli_chat("skip-search", s.chat_name, s.system, &s.chat)) return WG_EXIT_USAGE;
    if (!s.model || !s.prompts)
        return wg_cli_refuse("skip-search", "%s",
                             !s.model ? "-m FILE is missing: the target model"
                                      : "--prompts FILE is missing: texts like those it will meet");
    s.kv_type = wg_cli_kv_type(s.kv_name);
    wg_error err;
    s.watched = wg_cli_terminal(STDERR_FILENO);
    const wg_status st = run(&s, &err);
    wg_skip_scorer_close(s.scorer);
    wg_target_close(s.t);
    wg_dataset_close(s.d);
    wg_free(s.skipped);
    return st ? wg_cli_fail(&err) : WG_EXIT_OK;
}
