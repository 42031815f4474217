/* SPDX-License-Identifier: MIT
 * wager generate: continues a text and shows speculation: on a terminal accepted draft tokens are green, the target's own
 * are plain. The last line gives speed, tau and the digest of the output tokens. */
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/json.h"
#include "core/base/json_line.h"
#include "core/base/clock.h"
#include "core/base/hash.h"
#include "core/base/mem.h"
#include "core/base/read_file.h"
#include "core/engine/profile.h"
#include "core/engine/seq_rows.h"
#include "core/file/quantize.h"
#include "draft/compose/composite.h"
#include "draft/draft.h"
#include "experiments/cli/cli.h"
#include "core/setup/constrained.h"
#include "core/setup/spec.h"
#include "experiments/config/config.h"
#include "experiments/record/audit_json.h"

enum { PROMPT_MOST = 16 << 20 }; /* bytes of a prompt from standard input */

typedef struct generate {
    const char *grammar, *schema; /* files */
    const char *target, *kind, *draft_model, *draft, *prompt, *rule, *device, *kv_type, *quantize, *chat_name, *system, *date,
        *profile, *ranks;
    size_t prompt_bytes;
    wg_chat chat;
    long n, top_k, penalty_window, seed, threads;
    double temperature, top_p, min_p, repetition_penalty, frequency_penalty, presence_penalty;
    bool json, allow_nan, pin, audit, plugin_rule, law_only;
    wg_setup_target external; /* set if `kind` is */
} generate;

typedef struct printer {
    const wg_tokenizer *tokenizer;
    wg_stream stream;
    char *text; /* (room) text of one token */
    size_t room;
    bool colour, green, quiet;
    int from;       /* first token not yet printed */
    double seconds; /* seconds spent on printing */
} printer;

static void put_bytes(printer *p, const char *bytes, size_t n, bool drafted)
{
    if (p->quiet || !n) return;
    if (p->colour && drafted != p->green) fputs(drafted ? "\033[32m" : "\033[0m", stdout);
    p->green = drafted;
    fwrite(bytes, 1, n, stdout);
}

static bool put_tokens(void *printing, const wg_seq *s, const wg_tree *verified)
{
    (void)verified;
    printer *p = printing;
    const double start = wg_clock_now();
    for (; p->from < s->n; p->from++)
        put_bytes(p, p->text, wg_stream_put(&p->stream, p->tokenizer, s->token[p->from], p->text, p->room),
                  s->drafted[p->from]);
    if (!p->quiet) fflush(stdout);
    p->seconds += wg_clock_now() - start;
    return true;
}

static void put_end(printer *p)
{
    put_bytes(p, p->text, wg_stream_end(&p->stream, p->text, p->room), false);
    if (p->colour) fputs("\033[0m", stdout);
    p->green = false;
}

/* The relation of the text's law to plain decoding's. */
typedef struct law {
    bool lossless;
    const char *assumes;   /* the unproved assumption of that (wg_law_assumes); NULL: none */
    const char *withdrawn; /* why it is not lossless, or NULL */
    char words[200];
} law;

static void find_law(const generate *g, const wg_engine *e, const wg_seq *s, law *out)
{
    const wg_verifier_class *rule = wg_engine_verifier(e);
    const wg_drafter *d = wg_engine_drafter(e);
    const double temperature = wg_engine_options_of(e)->sampling.temperature;
    const bool outside = wg_component_is_outside(&wg_program_plugins, d->class, (const char *)d + d->class->options_at);
    out->withdrawn = wg_verifier_withdrawn(rule, temperature, &s->counts.audit, out->words, sizeof out->words);
    out->lossless = wg_verifier_lossless(rule, temperature) && !(g->device && wg_device_is_fast(g->device)) && !out->withdrawn;
    out->assumes = out->lossless ? wg_law_assumes(rule, g->plugin_rule, temperature, outside) : NULL;
}

/* Whether the text ended before its number of tokens because the context was full. */
static bool full_context(const generate *g, const wg_seq *s)
{
    return s->finish == WG_FINISH_LENGTH && s->n - s->prompt < g->n;
}

static void put_audit(const generate *g, const wg_audit *a, const law *l)
{
    if (!g->audit) return;
    const double draws = wg_audit_draws_log10(a), kept = wg_audit_kept_log10(a);
    printf("[audit: %ld draws, e-value 1e%.1f; %ld steps with a draft, e-value of what was kept 1e%.1f; %s%s]\n", a->draws,
           draws, a->roots, kept, l->withdrawn ? "NOT lossless: " : "nothing found", l->withdrawn ? l->withdrawn : "");
}

/* Explains why a whole text was generated without drafts, and how to get them. */
static void put_undrafted(const generate *g, const wg_drafter *d, const wg_counts *c)
{
    const bool chosen = c->without_draft[WG_NO_DRAFT_POLICY] > 0;
    if (c->drafted || d->class == &wg_drafter_none) return;
    if (g->draft_model && chosen)
        printf("[no draft: auto expected none to pay here; to draft always: --draft model:model=%s,length=4]\n",
               g->draft_model);
    else if (chosen) printf("[no draft: the drafter expected none to pay here; name one with a length to draft always]\n");
    else if (c->without_draft[WG_NO_DRAFT_CONTEXT]) printf("[no draft: the text is longer than the draft model's context]\n");
    else if (c->without_draft[WG_NO_DRAFT_NOTHING]) printf("[no draft: the drafter found nothing to propose]\n");
}

static wg_status put_footer(const generate *g, const wg_engine *e, const wg_tokenizer *tokenizer, const wg_seq *s,
                            double prefill, double decode, wg_error *err)
{
    const wg_drafter *d = wg_engine_drafter(e);
    const char *rule = wg_engine_verifier(e)->name;
    char hash[WG_SHA256_HEX], drafter[WG_OPTION_STRING];
    const wg_counts *c = &s->counts;
    wg_drafter_title(d->class, (const char *)d + d->class->options_at, drafter, sizeof drafter);
    const int n = s->n - s->prompt;
    wg_sha256(s->token + s->prompt, (size_t)n * sizeof *s->token, hash);
    const double tau = c->passes ? (double)c->emitted / (double)c->passes : 0, rate = decode > 0 ? n / decode : 0;
    law l;
    find_law(g, e, s, &l);
    if (!g->json) {
        printf(
            "\n[%d tokens%s, %.1f tok/s, tau %.2f, accepted %ld of %ld drafted, prompt %d tokens in %.0f ms, %s, %s%s%s%s%s, "
            "output %.12s]\n",
            n, full_context(g, s) ? " (the context is full)" : "", rate, tau, c->accepted, c->drafted, s->prompt, prefill * 1e3,
            drafter, rule,
            !l.lossless ? " (LOSSY)"
            : l.assumes ? " (lossless if "
                        : "",
            l.assumes ? l.assumes : "", l.assumes ? ")" : "", g->law_only ? " (law only)" : "", hash);
        put_undrafted(g, d, c);
        put_audit(g, &c->audit, &l);
        return WG_OK;
    }
    char *text = NULL;
    size_t bytes = 0;
    WG_TRY(wg_tokenizer_decode(tokenizer, s->token + s->prompt, (size_t)n, false, &text, &bytes, err));
    json_t *ids = json_array();
    for (int i = s->prompt; i < s->n; i++) json_array_append_new(ids, json_integer(s->token[i]));
    json_t *valid = json_stringn(text, bytes); /* NULL: the text is cut inside a character */
    json_t *o = json_pack("{s:o, s:o, s:s, s:i, s:i, s:f, s:f, s:I, s:I, s:I, s:I, s:f, s:f, s:s, s:s, s:s, s:b}", "text",
                          valid ? valid : json_null(), "ids", ids, "finish",
                          s->finish == WG_FINISH_EOS ? "stop"
                          : full_context(g, s)       ? "context"
                                                     : "length",
                          "prompt_tokens", s->prompt, "tokens", n, "tok_s", rate, "tau", tau, "target_passes",
                          (json_int_t)c->passes, "drafted", (json_int_t)c->drafted, "accepted", (json_int_t)c->accepted,
                          "probes", (json_int_t)c->probes, "prefill_ms", prefill * 1e3, "decode_ms", decode * 1e3, "draft",
                          drafter, "rule", rule, "output_sha256", hash, "lossless", l.lossless);
    json_object_set_new(o, "law_only", json_boolean(g->law_only));
    const char *profile = wg_profile_name(wg_engine_env(e)->profile, hash);
    json_object_set_new(o, "profile", *profile ? json_string(profile) : json_null());
    if (g->grammar || g->schema) json_object_set_new(o, "whole", json_boolean(wg_seq_is_whole(s)));
    json_object_set_new(o, "lossless_if", l.assumes ? json_string(l.assumes) : json_null());
    json_object_set_new(o, "lossless_withdrawn", l.withdrawn ? json_string(l.withdrawn) : json_null());
    if (g->audit) json_object_set_new(o, "audit", wg_audit_verdict_json(&c->audit));
    wg_json_put_line(o, 0);
    wg_free(text);
    return WG_OK;
}

/* Sets the constraint of the flags for a sequence. */
static wg_status constrain(const generate *g, wg_engine *e, const wg_tokenizer *t, wg_seq *s, wg_constrained *c, wg_error *err)
{
    WG_TRY(wg_constrained_open(c, g->grammar, g->schema, t, wg_engine_target(e)->vocab, err));
    const wg_seq_sampling how = { .acceptor = c->of.acceptor, .forced = wg_drafts_forced(e) };
    return how.acceptor ? wg_seq_sample(e, s, &how, err) : WG_OK;
}

static wg_status generate_with(const generate *g, wg_engine *e, const wg_target *t, wg_error *err)
{
    int32_t *ids = NULL;
    size_t n;
    wg_seq *s = NULL;
    const wg_text prompt = { g->prompt, g->prompt_bytes };
    wg_chat chat = g->chat;
    chat.model = t->weights;
    chat.date = g->date;
    WG_TRY(chat.family ? wg_chat_encode(t->tokenizer, &chat, &prompt, 1, &ids, &n, err)
                       : wg_tokenizer_encode(t->tokenizer, prompt.s, prompt.n, true, true, &ids, &n, err));
    wg_status status =
        n ? wg_seq_open(e, &s, 0, ids, (int)n, (int)g->n, err)
          : wg_fail(err, WG_EINVAL, "the prompt is empty and this model has no begin-of-text token; give a text with -p");
    wg_free(ids);
    wg_constrained by = { 0 };
    if (!status) status = constrain(g, e, t->tokenizer, s, &by, err);
    if (status) {
        if (s) wg_seq_close(e, s);
        wg_constrained_close(&by);
        return status;
    }
    printer p = { .tokenizer = t->tokenizer,
                  .quiet = g->json,
                  .colour = !g->json && wg_cli_terminal(STDOUT_FILENO) && !getenv("NO_COLOR") };
    p.room = wg_tokenizer_room(t->tokenizer);
    p.text = wg_alloc(p.room, 1);
    if (!p.text) {
        wg_seq_close(e, s);
        wg_constrained_close(&by);
        return wg_nomem(err, p.room, "the text of a token");
    }
    if (!g->json) fwrite(prompt.s, 1, prompt.n, stdout);
    if (!g->json && g->chat.family) fputs("\n\n", stdout); /* the answer begins a paragraph */
    p.stream.started = true;
    double start = wg_clock_now();
    status = wg_engine_prefill(e, s, err);
    const double prefill = wg_clock_now() - start;
    p.from = s->n;
    start = wg_clock_now();
    if (!status) status = wg_engine_rounds(e, &s, 1, INT_MAX, put_tokens, &p, err);
    const double decode = wg_clock_now() - start - wg_engine_phases(e)->measure -
                          (wg_engine_decodes_on_device(e) ? 0 : p.seconds); /* the device continues during printing */
    put_end(&p);
    wg_free(p.text);
    if (!status) status = put_footer(g, e, t->tokenizer, s, prefill, decode, err);
    wg_seq_close(e, s);
    wg_constrained_close(&by);
    return status;
}

/* Chooses the drafter of the flags. -d FILE means `auto` over that model if the target runs on a CPU; else `model`, since a
 * device drafts chains of one length without the host. */
static wg_status choose_draft(const generate *g, wg_drafter_choice *out, wg_error *err)
{
    const bool here = (!g->device || !strcmp(g->device, "cpu")) && !g->law_only;
    if (!g->draft_model) return wg_choose_draft_flag(g->draft ? g->draft : "none", out, err);
    return here ? wg_choose_auto(g->draft_model, out, err) : wg_choose_draft_model(g->draft_model, out, err);
}

static wg_status generate_run(generate *g, wg_error *err)
{
    wg_target *t = NULL;
    wg_engine *e = NULL;
    wg_profile *profile = NULL;
    wg_drafter_choice draft = { 0 };
    wg_target_options want = { .device = g->device,
                               .threads = (int)g->threads,
                               .pin = g->pin,
                               .quantize = g->quantize,
                               .ranks = g->ranks,
                               .need_tokenizer = true,
                               .model = { .kv_type = wg_cli_kv_type(g->kv_type), .allow_nan = g->allow_nan } };
    const wg_engine_options opt = { .max_batch = 1,
                                    .seed = (uint64_t)g->seed,
                                    .measure_alpha = g->audit,
                                    .audit = g->audit,
                                    .sampling = { .temperature = g->temperature,
                                                  .top_k = (int)g->top_k,
                                                  .top_p = g->top_p,
                                                  .min_p = g->min_p,
                                                  .repetition_penalty = g->repetition_penalty,
                                                  .frequency_penalty = g->frequency_penalty,
                                                  .presence_penalty = g->presence_penalty,
                                                  .penalty_window = (int)g->penalty_window } };
    wg_engine_parts parts;
    wg_rule_choice rule;
    if (g->kind) {
        WG_TRY(wg_target_parse(&g->external, g->kind, err));
        want.external = wg_setup_target_options(&g->external).external;
        want.model.context = g->external.context;
    }
    wg_status s = wg_choose_rule_flag(g->rule, &rule, err);
    g->plugin_rule = rule.object;
    g->law_only = want.external.kind != WG_TARGET_MODEL;
    if (!s) s = choose_draft(g, &draft, err);
    if (!s) s = wg_target_open(&t, g->target, &want, err);
    if (!s) {
        parts = wg_target_engine_parts(t);
        parts.drafter = draft.class;
        parts.drafter_options = draft.options;
        parts.verifier = rule.class;
        parts.verifier_options = rule.options;
        parts.rules = wg_program_plugins.verifiers;
        s = wg_profile_open(&profile, &(wg_profile_options){ .use = g->profile, .say = wg_cli_say_profile }, err);
    }
    if (!s) {
        parts.profile = profile;
        s = wg_engine_open(&e, &parts, &opt, err);
    }
    if (!s && g->device && wg_device_is_fast(g->device))
        fprintf(stderr, "wager generate: %s " WG_DEVICE_FAST_SAYS "\n", g->device);
    if (!s) s = generate_with(g, e, t, err);
    wg_engine_close(e);
    wg_profile_close(profile);
    wg_target_close(t);
    wg_choice_close(&draft);
    wg_rule_choice_close(&rule);
    return s;
}

static wg_status read_prompt(generate *g, char **input, wg_error *err)
{
    WG_TRY(wg_read_file("/dev/stdin", PROMPT_MOST, input, &g->prompt_bytes, err));
    const size_t mark = wg_byte_order_mark(*input, g->prompt_bytes);
    g->prompt = *input + mark;
    g->prompt_bytes -= mark;
    if (g->prompt_bytes && g->prompt[g->prompt_bytes - 1] == '\n') g->prompt_bytes--;
    return WG_OK;
}

int wg_cmd_generate(int argc, char **argv)
{
    generate g = { .prompt = "", .rule = "match", .n = 128, .top_p = 1, .repetition_penalty = 1, .seed = 1 };
    const wg_flag flags[] = {
        WG_MODEL_ROW(WG_FLAG_MODEL, &g.target, "the target model"),
        { "target", 0, WG_FLAG_STRING, &g.kind, "KIND:k=v,...",
          "a target that wager does not compute, such as process:command=PROGRAM; FILE then has the tokenizer", 0, 0 },
        { "draft-model", 'd', WG_FLAG_STRING, &g.draft_model, "FILE",
          "a draft model: at each round auto takes the length that pays here, or no draft; --draft model:model=FILE,length=N "
          "drafts "
          "always",
          0, 0 },
        { "draft", 0, WG_FLAG_STRING, &g.draft, "KIND[:k=v,...]", "a drafter and its options (wager list drafters)", 0, 0 },
        { "prompt", 'p', WG_FLAG_STRING, &g.prompt, "TEXT",
          "the text to continue; -: standard input, without its last line end", 0, 0 },
        { "chat", 0, WG_FLAG_CHOICE, &g.chat_name, WG_CHAT_VALUES, WG_CHAT_DOC, 0, 0 },
        { "system", 0, WG_FLAG_STRING, &g.system, "TEXT", WG_SYSTEM_DOC, 0, 0 },
        { "date", 0, WG_FLAG_STRING, &g.date, "YYYY-MM-DD", WG_DATE_DOC, 0, 0 },
        { "grammar", 0, WG_FLAG_STRING, &g.grammar, "FILE",
          "constrain the text to a grammar, a file in GBNF (docs/constrained.md)", 0, 0 },
        { "schema", 0, WG_FLAG_STRING, &g.schema, "FILE",
          "constrain the text to JSON that is valid under a JSON schema, a file", 0, 0 },
        { "n", 'n', WG_FLAG_INT, &g.n, "N", "number of new tokens", 1, 1e6 },
        { "temp", 't', WG_FLAG_FLOAT, &g.temperature, "T", "temperature; 0 is greedy", 0, 100 },
        { "top-k", 0, WG_FLAG_INT, &g.top_k, "K", "keep the K most probable tokens; 0 keeps all", 0, 1e9 },
        { "top-p", 0, WG_FLAG_FLOAT, &g.top_p, "P", "keep the most probable tokens up to mass P", 0, 1 },
        { "min-p", 0, WG_FLAG_FLOAT, &g.min_p, "P", "drop tokens less probable than P times the most probable one; 0 keeps all",
          0, 1 },
        { "repetition-penalty", 0, WG_FLAG_FLOAT, &g.repetition_penalty, "R",
          "divide positive logits of tokens of prompt and text by R, multiply negative ones; 1: none", 0, 100 },
        { "frequency-penalty", 0, WG_FLAG_FLOAT, &g.frequency_penalty, "F",
          "subtract F from a token's logit for each time it was generated", -100, 100 },
        { "presence-penalty", 0, WG_FLAG_FLOAT, &g.presence_penalty, "F",
          "subtract F from the logit of each token that was generated", -100, 100 },
        { "penalty-window", 0, WG_FLAG_INT, &g.penalty_window, "N", "penalties count the last N tokens only; 0: all", 0, 1e9 },
        { "rule", 0, WG_FLAG_STRING, &g.rule, "RULE",
          "verification rule (wager list rules); match gives plain decoding's very text", 0, 0 },
        { "seed", 0, WG_FLAG_INT, &g.seed, "S", "seed of all randomness", 0, 0 },
        { "device", 0, WG_FLAG_STRING, &g.device, "DEVICE", "where the target runs: " WG_DEVICE_NAMES, 0, 0 },
        { "threads", 0, WG_FLAG_INT, &g.threads, "N", "number of threads; 0: all cores", 0, 256 },
        { "ranks", 0, WG_FLAG_STRING, &g.ranks, "RANKS", WG_RANKS_DOC, 0, 0 },
        { "pin", 0, WG_FLAG_BOOL, &g.pin, NULL, "bind each worker thread to a processor of its own", 0, 0 },
        { "kv-type", 0, WG_FLAG_CHOICE, &g.kv_type, WG_KV_TYPE_VALUES, WG_KV_TYPE_DOC " (f16)", 0, 0 },
        { "quantize", 0, WG_FLAG_STRING, &g.quantize, "T[,P=T]...", WG_QUANTIZE_DOC, 0, 0 },
        { "profile", 0, WG_FLAG_STRING, &g.profile, "FILE|new|nominal", WG_PROFILE_DOC, 0, 0 },
        { "allow-nan", 0, WG_FLAG_BOOL, &g.allow_nan, NULL, "accept NaN and infinities in weights", 0, 0 },
        { "audit", 0, WG_FLAG_BOOL, &g.audit, NULL, "test whether drafts were drawn from the declared rows of q", 0, 0 },
        { "json", 0, WG_FLAG_BOOL, &g.json, NULL, "one JSON object instead of text", 0, 0 },
        { 0 },
    };
    const int done = wg_cli_parse("generate", flags, argc, argv, NULL, 0, 0);
    if (done >= 0) return done;
    if (!wg_cli_chat("generate", g.chat_name, g.system, &g.chat)) return WG_EXIT_USAGE;
    if (g.grammar && g.schema) return wg_cli_refuse("generate", "give --grammar FILE or --schema FILE, not both");
    if (g.draft && g.draft_model) return wg_cli_refuse("generate", "give -d FILE or --draft KIND, not both");
    wg_error err;
    char *input = NULL; /* text of standard input */
    wg_status s = WG_OK;
    g.prompt_bytes = strlen(g.prompt);
    if (!strcmp(g.prompt, "-")) s = read_prompt(&g, &input, &err);
    if (!s) s = generate_run(&g, &err);
    wg_free(input);
    return s ? wg_cli_fail(&err) : WG_EXIT_OK;
}
