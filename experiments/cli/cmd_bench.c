/* SPDX-License-Identifier: MIT
 * wager bench: timings of the parts of the program.
 *   forward  one pass of n rows at a context: ms, tokens/s, v(n) = T(n)/T(1), bytes and multiply-adds per second
 *   perplexity  of a text, to see what a weight type costs
 *   draft    a proposal of a drafter without a model, on a long text
 *   round    plain decoding and speculative rounds of the same target, interleaved
 *   verify   from logits to the next root, without a model: sampler, accept, draw (bench_verify.c)
 *   tokenizer  encoding and decoding a text, and texts made to be slow
 *   train    a pass of training forward and backward beside the library of its products alone
 *   load     opening a model that is on the disk alone, beside reading its files once, and the memory it takes
 *   comm     messages between ranks: latency and bandwidth
 *   kernels  products, the preparing of inputs and attention, each alone, beside what the machine gives
 * Medians of repeats in which the arms alternate; nothing here is asserted anywhere. */
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "core/base/json.h"
#include "core/base/json_line.h"
#include "core/base/clock.h"
#include "core/base/mem.h"
#include "core/engine/profile.h"
#include "core/file/quantize.h"
#include "experiments/base/timing.h"
#include "experiments/bench/bench_parts.h"
#include "experiments/cli/cli.h"
#include "core/setup/spec.h"
#include "core/setup/target.h"

typedef struct bench {
    const char *model, *draft_model, *draft, *rule, *rows, *context, *device, *ranks, *kv_name, *quantize, *profile;
    long history, threads, repeats, n, seed, vocab;
    double temperature, top_p;
    const char *text, *op, *type;
    long tokens, megabytes, sequences, length;
    bool json, stages, pin, steps;
} bench;

/* ---- round */

typedef struct arm {
    wg_engine *engine;
    double seconds[WG_BENCH_REPEATS];
    long passes, emitted, accepted, drafted;
    const wg_device *device; /* the target's device, if it counts its passes */
    wg_passes_made made;     /* passes in the timed repeats */
    const wg_model *model;
    double waited; /* in them, for rows of other stages */
} arm;

static wg_passes_made made_by(const arm *a) { return a->device ? a->device->class->made(a->device) : (wg_passes_made){ 0 }; }

static wg_status arm_run(const bench *b, arm *a, int32_t root, int repeat, wg_error *err)
{
    wg_seq *s;
    WG_TRY(wg_seq_open(a->engine, &s, (uint32_t)(repeat < 0 ? 0 : repeat), &root, 1, (int)b->n, err));
    wg_status status = WG_OK;
    const wg_passes_made before = made_by(a);
    const double start = wg_clock_now(), waited = wg_ranks_waited(a->model);
    if (!b->steps) status = wg_engine_rounds(a->engine, &s, 1, INT_MAX, NULL, NULL, err);
    while (!status && s->finish == WG_RUNNING) status = wg_engine_step(a->engine, &s, 1, err);
    if (repeat < 0) {
        wg_engine_phases_clear(a->engine); /* a warm-up */
    } else {
        const wg_passes_made after = made_by(a);
        a->seconds[repeat] = (wg_clock_now() - start) / (double)s->counts.emitted;
        a->made.launched += after.launched - before.launched;
        a->made.looped += after.looped - before.looped;
        a->waited += wg_ranks_waited(a->model) - waited;
        a->passes += s->counts.passes;
        a->emitted += s->counts.emitted;
        a->accepted += s->counts.accepted;
        a->drafted += s->counts.drafted;
    }
    wg_seq_close(a->engine, s);
    return status;
}

/* Prints an arm. recorded: only first passes of a shape were launched kernel by kernel. looped: the device decoded all rounds.
 * null: the device counts neither. wait_ms: of verify_ms, rank 0 without rows of the other stages; null: no stages. */
static void print_arm(const bench *b, arm *a, const char *name, double plain)
{
    const double per_token = wg_bench_median(a->seconds, (int)b->repeats), tau = (double)a->emitted / (double)a->passes;
    const wg_phases *ph = wg_engine_phases(a->engine);
    const double rounds = (double)a->passes;
    if (b->json) {
        json_t *o = json_pack("{s:s, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:I, s:I, s:I}", "arm", name, "tok_s",
                              1 / per_token, "tau", tau, "round_ms", per_token * tau * 1e3, "speedup", plain / per_token,
                              "draft_ms", ph->draft / rounds * 1e3, "verify_ms", ph->verify / rounds * 1e3, "accept_ms",
                              ph->accept / rounds * 1e3, "kv_ms", ph->kv / rounds * 1e3, "rounds", (json_int_t)a->passes,
                              "drafted", (json_int_t)a->drafted, "accepted", (json_int_t)a->accepted);
        json_object_set_new(o, "recorded", a->device ? json_boolean(a->made.launched == 0) : json_null());
        char hex[WG_SHA256_HEX];
        const char *profile = wg_profile_name(wg_engine_env(a->engine)->profile, hex);
        json_object_set_new(o, "profile", *profile ? json_string(profile) : json_null());
        json_object_set_new(o, "wait_ms", a->waited > 0 ? json_real(a->waited / rounds * 1e3) : json_null());
        json_object_set_new(o, "looped", a->device ? json_boolean(a->made.looped == a->passes) : json_null());
        wg_json_put_line(o, 0);
        return;
    }
    printf("%-8s %10.1f %6.2f %9.4f %8.2f   %8.4f %8.4f %8.4f %8.4f\n", name, 1 / per_token, tau, per_token * tau * 1e3,
           plain / per_token, ph->draft / rounds * 1e3, ph->verify / rounds * 1e3, ph->accept / rounds * 1e3,
           ph->kv / rounds * 1e3);
    if (a->waited > 0) printf("%44s of it %8.4f waiting for rows of other ranks\n", "", a->waited / rounds * 1e3);
}

static wg_status arm_open(const bench *b, const wg_target *t, const wg_drafter_choice *draft, const char *rule,
                          wg_profile *profile, arm *a, wg_error *err)
{
    const wg_engine_options opt = { .max_batch = 1,
                                    .seed = (uint64_t)b->seed,
                                    .sampling = { .temperature = b->temperature, .top_p = 1 } };
    wg_engine_parts parts = wg_target_engine_parts(t);
    a->model = t->model;
    a->device = t->device.class->made ? &t->device : NULL;
    parts.drafter = draft->class;
    parts.drafter_options = draft->options;
    parts.rules = wg_program_plugins.verifiers;
    parts.profile = profile;
    WG_TRY(wg_find_verifier(&wg_program_plugins, rule, &parts.verifier, err));
    return wg_engine_open(&a->engine, &parts, &opt, err);
}

static wg_status bench_round(const bench *b, wg_target *t, wg_error *err)
{
    wg_drafter_choice none = { 0 }, draft = { 0 };
    arm plain = { 0 }, spec = { 0 };
    wg_profile *profile = NULL;
    const bool speculate = b->draft_model || b->draft;
    const int32_t root = t->tokenizer && wg_tokenizer_bos(t->tokenizer) >= 0 ? wg_tokenizer_bos(t->tokenizer) : 1;
    wg_status s = wg_choose_drafter("none", &none, err);
    if (!s && speculate)
        s = b->draft_model ? wg_choose_draft_model(b->draft_model, &draft, err) : wg_choose_draft_flag(b->draft, &draft, err);
    if (!s) s = arm_open(b, t, &none, "match", NULL, &plain, err);
    if (!s) s = wg_profile_open(&profile, &(wg_profile_options){ .use = b->profile, .say = wg_cli_say_profile }, err);
    if (!s && speculate) s = arm_open(b, t, &draft, b->rule, profile, &spec, err);
    const int warm = t->device.class->finish ? 2 : 1; /* a device records a graph in the second run of a pass */
    for (int r = -warm; !s && r < b->repeats; r++) {
        s = arm_run(b, &plain, root, r, err);
        if (!s && speculate) s = arm_run(b, &spec, root, r, err);
    }
    if (!s) {
        double copy[WG_BENCH_REPEATS];
        memcpy(copy, plain.seconds, sizeof copy);
        const double base = wg_bench_median(copy, (int)b->repeats);
        if (!b->json) printf("arm           tok/s    tau  ms/round speed-up   ms/round: draft   verify   accept       kv\n");
        print_arm(b, &plain, "plain", base);
        if (speculate) print_arm(b, &spec, draft.class->name, base);
    }
    wg_engine_close(plain.engine);
    wg_engine_close(spec.engine);
    wg_profile_close(profile);
    wg_choice_close(&none);
    wg_choice_close(&draft);
    return s;
}

/* Runs bench verify, for which shared flags have other defaults. */
static wg_status bench_verify(const bench *b, bool temperature_given, wg_error *err)
{
    int rows = 17, n = 1;
    if (b->rows) WG_TRY(wg_bench_numbers("rows", b->rows, 1, WG_TREE_MAX, &rows, &n, err));
    const wg_verify_bench v = { .vocab = (int)b->vocab,
                                .rows = rows,
                                .repeats = (int)b->repeats,
                                .rule = b->rule ? b->rule : "all",
                                .temperature = temperature_given ? b->temperature : 0.8,
                                .top_p = b->top_p,
                                .seed = (uint64_t)b->seed,
                                .json = b->json };
    return wg_bench_verify(&v, err);
}

static wg_status bench_kernels(const bench *b, wg_error *err)
{
    int context[WG_BENCH_LIST] = { 4096 }, n = 1;
    if (b->context) WG_TRY(wg_bench_numbers("context", b->context, 1, 1 << 20, context, &n, err));
    if (n != 1) return wg_fail(err, WG_EINVAL, "--context %s: bench kernels takes one number", b->context);
    const wg_kernels_bench k = { .op = b->op,
                                 .type = b->type,
                                 .rows = b->rows ? b->rows : "1,4,8,16,32,64",
                                 .context = context[0],
                                 .megabytes = (int)b->megabytes,
                                 .threads = (int)b->threads,
                                 .repeats = (int)b->repeats,
                                 .pin = b->pin,
                                 .json = b->json };
    return wg_bench_kernels(&k, err);
}

static wg_status bench_train(const bench *b, wg_error *err)
{
    const wg_bench_train_options o = { .model = b->model,
                                       .device = b->device,
                                       .threads = (int)b->threads,
                                       .sequences = (int)b->sequences,
                                       .length = (int)b->length,
                                       .repeats = (int)b->repeats,
                                       .json = b->json };
    return wg_bench_train(&o, err);
}

static wg_status bench_target(bench *b, const char *what, wg_error *err)
{
    wg_target *t = NULL;
    const int kv_type = wg_cli_kv_type(b->kv_name);
    const wg_target_options want = { .device = b->device,
                                     .ranks = b->ranks,
                                     .threads = (int)b->threads,
                                     .pin = b->pin,
                                     .quantize = b->quantize,
                                     .model = { .kv_type = kv_type } };
    if (!strcmp(what, "load")) return wg_bench_load(b->model, &want, (int)b->repeats, b->json, err);
    if (!b->rule) b->rule = "rejection";
    if (b->temperature < 0) b->temperature = 1;
    const wg_forward_bench passes = { .rows = b->rows ? b->rows : "1,2,4,8,16,32,64",
                                      .context = b->context ? b->context : "0",
                                      .kv_type = kv_type,
                                      .repeats = (int)b->repeats,
                                      .stages = b->stages,
                                      .json = b->json };
    wg_status s = wg_target_open(&t, b->model, &want, err);
    if (!s && !strcmp(what, "perplexity")) s = wg_bench_perplexity(t, b->text, b->tokens, b->json, err);
    else if (!s) s = !strcmp(what, "forward") ? wg_bench_forward(&passes, t, err) : bench_round(b, t, err);
    wg_target_close(t);
    return s;
}

static int run(bench *b, const char *what)
{
    wg_error err;
    wg_status s;
    if (!strcmp(what, "verify")) s = bench_verify(b, b->temperature >= 0, &err);
    else if (!strcmp(what, "draft"))
        s = wg_bench_draft(b->draft ? b->draft : "ngram", b->model, (int)b->history, b->json, &err);
    else if (!strcmp(what, "kernels")) s = bench_kernels(b, &err);
    else if (!strcmp(what, "comm")) s = wg_bench_comm(b->ranks, (int)b->repeats, b->json, &err);
    else if (!b->model)
        return wg_cli_refuse("bench", "-m FILE is missing: the model to time (wager synth makes one of any shape)");
    else if (!strcmp(what, "tokenizer")) s = wg_bench_tokenizer(b->model, b->text, (int)b->repeats, b->json, &err);
    else if (!strcmp(what, "train")) s = bench_train(b, &err);
    else s = bench_target(b, what, &err);
    return s ? wg_cli_fail(&err) : WG_EXIT_OK;
}

int wg_cmd_bench(int argc, char **argv)
{
    bench b = { .tokens = 1 << 24,
                .history = 32768,
                .megabytes = 300,
                .sequences = 4,
                .repeats = 7,
                .n = 128,
                .seed = 1,
                .temperature = -1,
                .vocab = 128256,
                .top_p = 0.95 };
    const char *what;
    const wg_flag flags[] = {
        WG_MODEL_ROW(WG_FLAG_MODEL_IF, &b.model, "the target model"),
        { "rows", 0, WG_FLAG_STRING, &b.rows, "1,8,16", "forward, kernels: rows of a pass; verify: of a chain (17)", 0, 0 },
        { "vocab", 0, WG_FLAG_INT, &b.vocab, "N", "verify: tokens of the vocabulary", 2, 10000000 },
        { "context", 0, WG_FLAG_STRING, &b.context, "0,1024",
          "forward: tokens before them (0); kernels: keys of attention (4096)", 0, 0 },
        { "op", 0, WG_FLAG_CHOICE, &b.op, "matmul|prepare|attention", "kernels: time only this operation", 0, 0 },
        { "type", 0, WG_FLAG_STRING, &b.type, "TYPE", "kernels: time only this type of weights or cache", 0, 0 },
        { "megabytes", 0, WG_FLAG_INT, &b.megabytes, "N", "kernels: size of the weights in MB, more than caches hold", 1,
          16000 },
        { "steps", 0, WG_FLAG_BOOL, &b.steps, NULL,
          "round: the host runs every step, also where the device could run rounds alone", 0, 0 },
        { "stages", 0, WG_FLAG_BOOL, &b.stages, NULL, "forward: print the time of each stage", 0, 0 },
        { "text", 0, WG_FLAG_STRING, &b.text, "FILE", "perplexity, tokenizer: the text", 0, 0 },
        { "tokens", 0, WG_FLAG_INT, &b.tokens, "N", "perplexity: most tokens of the text", 2, 1 << 24 },
        { "draft-model", 'd', WG_FLAG_STRING, &b.draft_model, "FILE", "round: a draft model", 0, 0 },
        { "draft", 0, WG_FLAG_STRING, &b.draft, "KIND[:k=v,...]", "round, draft: a drafter and its options", 0, 0 },
        { "history", 0, WG_FLAG_INT, &b.history, "N", "draft: length of the text, in tokens", 256, 10000000 },
        { "sequences", 0, WG_FLAG_INT, &b.sequences, "N", "train: sequences of a pass", 1, 4096 },
        { "length", 0, WG_FLAG_INT, &b.length, "N", "train: tokens of a sequence; 0: the model's context", 0, 1 << 20 },
        { "rule", 0, WG_FLAG_STRING, &b.rule, "RULE", "verification rule (round: rejection; verify: all)", 0, 0 },
        { "temp", 't', WG_FLAG_FLOAT, &b.temperature, "T", "temperature (round: 1; verify: 0.8)", 0, 100 },
        { "top-p", 0, WG_FLAG_FLOAT, &b.top_p, "P", "verify: mass of the nucleus", 0, 1 },
        { "n", 'n', WG_FLAG_INT, &b.n, "N", "round: new tokens of a repeat", 2, 1e6 },
        { "seed", 0, WG_FLAG_INT, &b.seed, "S", "round: seed of all randomness", 0, 0 },
        { "repeats", 0, WG_FLAG_INT, &b.repeats, "N", "number of repeats; results are medians", 1, WG_BENCH_REPEATS },
        { "device", 0, WG_FLAG_STRING, &b.device, "DEVICE", "forward, round, perplexity, train: " WG_DEVICE_NAMES, 0, 0 },
        { "ranks", 0, WG_FLAG_STRING, &b.ranks, "RANKS", "forward, round, perplexity, load, comm: " WG_RANKS_DOC, 0, 0 },
        { "threads", 0, WG_FLAG_INT, &b.threads, "N", "number of threads; 0: all cores", 0, 256 },
        { "pin", 0, WG_FLAG_BOOL, &b.pin, NULL, "bind each worker thread to a processor of its own", 0, 0 },
        { "kv-type", 0, WG_FLAG_CHOICE, &b.kv_name, WG_KV_TYPE_VALUES, WG_KV_TYPE_DOC " (f16)", 0, 0 },
        { "quantize", 0, WG_FLAG_STRING, &b.quantize, "T[,P=T]...", "forward, round, perplexity, load: " WG_QUANTIZE_DOC, 0,
          0 },
        { "profile", 0, WG_FLAG_STRING, &b.profile, "FILE|new|nominal", "round: " WG_PROFILE_DOC, 0, 0 },
        { "json", 0, WG_FLAG_BOOL, &b.json, NULL, "one JSON object a line", 0, 0 },
        { 0 },
    };
    const int done = wg_cli_parse("bench", flags, argc, argv, &what, 1, 1);
    return done >= 0 ? done : run(&b, what);
}
