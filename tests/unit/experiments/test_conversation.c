/* SPDX-License-Identifier: MIT
 * Prompts of several turns: the tokens fed for each, its records, and the consequences of a failed turn. */
#include "core/base/json.h"
#include "core/base/mem.h"
#include "core/model/lm_table.h"
#include "draft/draft.h"
#include "experiments/cli/cli.h"
#include "core/setup/conversation.h"
#include "experiments/run/exact_run.h"
#include "lab/replay.h"
#include "experiments/run/runner.h"
#include "core/setup/target.h"
#include "core/trace/trace.h"
#include "kernels/cpu.h"
#include "run_scene.h"
#include "verify/verify.h"

static scene s;
static void setup(void)
{
    scene_make(&s);
    put("prompts.jsonl", "{\"id\": \"three\", \"turns\": [\"The cat\", \" sat\", \" down\"]}\n"
                         "{\"id\": \"one\", \"prompt\": \"abab\"}\n"
                         "{\"id\": \"two\", \"turns\": [\"A dog\", \" ran\"]}\n");
}
static void teardown(void) { scene_remove(&s); }
TestSuite(conversation, .init = setup, .fini = teardown, .timeout = 120);

/* ---- what is fed */

static bool is_even(const void *user, int32_t token) { return (void)user, token % 2 == 0; }

/* An answer that said its end with the template's own token is not ended again; any other is, and keeps its tokens. */
Test(conversation, an_answer_ends_once)
{
    enum { V = 8, END = 4 };
    int32_t first[] = { 1, 2 }, later[] = { END, 5, 6 };
    const wg_question q[] = { { first, 2, 0 }, { later, 3, 1 } };
    int said = 0, cut = 0, other = 0;
    wg_lm_table *lm;
    wg_engine *e;
    wg_error err;
    cr_assert_eq(wg_lm_table_open(&lm, V, 2, 11, 1, 64, &err), WG_OK, "%s", err.text);
    const wg_engine_parts parts = { .target = &lm->lm,
                                    .ops = wg_ops_for(WG_CPU_REF),
                                    .is_eog = is_even,
                                    .drafter = &wg_drafter_none,
                                    .verifier = &wg_verifier_match };
    const wg_engine_options o = { .max_batch = 1, .seed = 3, .sampling = WG_SAMPLING(1, 0, 1, 0) };
    cr_assert_eq(wg_engine_open(&e, &parts, &o, &err), WG_OK, "%s", err.text);
    cr_assert_eq(wg_conversation_most(q, 2, 5), 2 + 5 + 3 + 5);
    for (uint32_t request = 0; request < 60; request++) {
        wg_seq *seq = NULL;
        cr_assert_eq(wg_conversation_ask(e, &seq, q, 0, request, 2, NULL, &err), WG_OK, "%s", err.text);
        cr_assert(seq->n == 2 && seq->asked == 0);
        while (seq->finish == WG_RUNNING) cr_assert_eq(wg_engine_step(e, &seq, 1, &err), WG_OK, "%s", err.text);
        const int n = seq->n;
        const bool ended = seq->token[n - 1] == END;
        cr_assert_eq(wg_conversation_ask(e, &seq, q, 1, request, 2, NULL, &err), WG_OK, "%s", err.text);
        cr_assert_eq(seq->n, n + (ended ? 2 : 3));
        cr_assert_eq(seq->token[seq->n - 2], 5);
        cr_assert_eq(seq->token[seq->n - 1], 6);
        cr_assert_eq(seq->token[seq->n - 3], END);
        said += ended;
        cut += !is_even(NULL, seq->token[n - 1]);
        other += !ended && is_even(NULL, seq->token[n - 1]);
        wg_seq_close(e, seq);
    }
    cr_assert(said && cut && other, "%d %d %d", said, cut, other);
    wg_engine_close(e);
    wg_lm_table_close(lm);
}

/* ---- runs */

#define CONFIG(more)                                                                                                           \
    "{\"name\": \"t\", \"target\": {\"model\": \"target.gguf\", \"threads\": 1},"                                              \
    "\"draft\": {\"kind\": \"model\", \"model\": \"draft.gguf\", \"length\": 3}, \"repeats\": 2," more "}"
#define PROMPTS(more) "\"prompts\": {\"file\": \"prompts.jsonl\" " more "}"
#define SWEPT "\"sweep\": {\"verify.rule\": [\"match\", \"rejection\"]}, \"sampling\": {\"temperature\": 0.8}"

static json_t *run(const char *text, const char *out)
{
    wg_run r;
    wg_config *c = config_of(text);
    json_t *summary = scene_run(c, &(wg_run_options){ .out = out }, &r);
    for (int i = 0; i < c->n; i++) cr_assert_eq(r.result[i].pairs.n, c->dataset[0]->n, "prompts are what intervals are over");
    wg_run_free(&r);
    wg_config_close(c);
    return summary;
}

static json_t *lines(const char *path)
{
    char *text = file_read(path, NULL);
    cr_assert_not_null(text, "%s", path);
    json_t *all = json_array();
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
        json_array_append_new(all, json_loads(line, 0, NULL));
    free(text);
    return all;
}

static int whole(const json_t *v, const char *key)
{
    const json_t *n = json_object_get(v, key);
    return json_is_integer(n) ? (int)json_integer_value(n) : -1;
}
static const char *word(const json_t *v, const char *key) { return json_string_value(json_object_get(v, key)); }
static const json_t *cell(const json_t *summary, size_t i) { return json_array_get(json_object_get(summary, "cells"), i); }

/* The line of a turn; NULL: there is none. */
static const json_t *line_of(const json_t *all, int cell, int prompt, int turn, int repeat)
{
    size_t i;
    json_t *v;
    json_array_foreach((json_t *)all, i, v)
        if (whole(v, "cell") == cell && whole(v, "prompt") == prompt && whole(v, "turn") == turn &&
            whole(v, "repeat") == repeat)
            return v;
    return NULL;
}

/* A line a turn, each behind what was said before it, which it finds in the cache. */
static void check_lines(const json_t *all, int cells)
{
    static const int turns[] = { 3, 1, 2 };
    cr_assert_eq(json_array_size(all), (size_t)((1 + cells) * 6 * 2));
    for (int c = -1; c < cells; c++)
        for (int prompt = 0; prompt < 3; prompt++)
            for (int repeat = 0; repeat < 2; repeat++)
                for (int turn = 0, before = 0; turn < turns[prompt]; turn++) {
                    const json_t *v = line_of(all, c, prompt, turn, repeat), *plain = line_of(all, -1, prompt, turn, repeat);
                    cr_assert_not_null(v, "cell %d, prompt %d, turn %d", c, prompt, turn);
                    cr_assert_str_eq(word(v, "status"), "ok");
                    cr_assert_gt(whole(v, "prompt_tokens"), before);
                    cr_assert_eq(whole(v, "cached_tokens"), turn ? before - 1 : 0);
                    cr_assert_str_eq(word(v, "prompt_sha256"), word(line_of(all, -1, prompt, 0, 0), "prompt_sha256"));
                    if (c == 0) cr_assert_str_eq(word(v, "output_sha256"), word(plain, "output_sha256"));
                    before = whole(v, "prompt_tokens") + whole(v, "tokens");
                }
}

Test(conversation, a_line_for_every_turn)
{
    json_t *texts[2];
    for (int batch = 1; batch <= 3; batch += 2) {
        char out[8], file[32], text[600];
        snprintf(out, sizeof out, "out%d", batch);
        snprintf(file, sizeof file, "out%d/requests.jsonl", batch);
        snprintf(text, sizeof text,
                 CONFIG("\"batch\": %d, \"trace\": \"steps\", \"max_tokens\": 9, " PROMPTS(", \"turns\": \"all\"") "," SWEPT),
                 batch);
        json_t *sum = run(text, out), *all = texts[batch / 2] = lines(file);
        check_lines(all, 2);
        for (size_t i = 0; i < 2; i++) {
            cr_assert_eq(whole(cell(sum, i), "requests"), 6 * 2);
            cr_assert_eq(whole(cell(sum, i), "failed"), 0);
        }
        cr_assert(json_is_true(json_object_get(cell(sum, 0), "equals_baseline")));
        json_decref(sum);
        snprintf(file, sizeof file, "out%d/steps.jsonl", batch);
        json_t *steps = lines(file), *v;
        size_t i;
        long emitted = 0, tokens = 0;
        json_array_foreach(steps, i, v) emitted += whole(v, "turn") == 1 ? whole(v, "emitted") : 0;
        json_array_foreach(all, i, v) tokens += whole(v, "turn") == 1 ? whole(v, "tokens") : 0;
        cr_assert(tokens > 0 && emitted == tokens, "%ld tokens of second turns in steps, %ld in requests", emitted, tokens);
        json_decref(steps);
    }
    for (size_t i = 0; i < json_array_size(texts[0]); i++) { /* for any other sequences in the batch */
        const json_t *a = json_array_get(texts[0], i);
        const json_t *b = line_of(texts[1], whole(a, "cell"), whole(a, "prompt"), whole(a, "turn"), whole(a, "repeat"));
        cr_assert_str_eq(word(a, "output_sha256"), word(b, "output_sha256"));
    }
    json_decref(texts[0]);
    json_decref(texts[1]);
}

/* ---- by turn */

static double real(const json_t *v, const char *key) { return json_number_value(json_object_get(v, key)); }

/* Each turn's totals are those of its lines, and the later ones are held against the first turns of those that have them. */
Test(conversation, the_summary_tells_turns_apart)
{
    json_t *sum = run(CONFIG("\"max_tokens\": 9, " PROMPTS(", \"turns\": \"all\"") "," SWEPT), "out");
    json_t *all = lines("out/requests.jsonl");
    for (int c = 0; c < 2; c++) {
        const json_t *turns = json_object_get(cell(sum, (size_t)c), "turns");
        double tokens_of_all = 0;
        cr_assert_eq(json_array_size(turns), 3);
        for (int turn = 0; turn < 3; turn++) {
            const json_t *t = json_array_get(turns, (size_t)turn);
            double tokens[2] = { 0 }, passes[2] = { 0 }, ms = 0, base_tokens = 0, base_ms = 0; /* of the turn; of their first */
            cr_assert_eq(whole(t, "turn"), turn);
            cr_assert_eq(whole(t, "prompts"), 3 - turn);
            for (int prompt = 0; prompt < 3; prompt++)
                for (int repeat = 0; repeat < 2 && line_of(all, c, prompt, turn, 0); repeat++) {
                    const json_t *base = line_of(all, -1, prompt, turn, repeat), *own = line_of(all, c, prompt, turn, repeat);
                    for (int first = 0; first < 2; first++) {
                        const json_t *v = first ? line_of(all, c, prompt, 0, repeat) : own;
                        tokens[first] += whole(v, "tokens");
                        passes[first] += whole(json_object_get(v, "speculative_decoding"), "target_passes");
                    }
                    ms += real(own, "decode_ms");
                    base_ms += real(base, "decode_ms");
                    base_tokens += whole(base, "tokens");
                }
            cr_assert_float_eq(real(t, "tokens"), tokens[0], 1e-12);
            cr_assert_float_eq(real(t, "tau"), tokens[0] / passes[0], 1e-12);
            cr_assert_float_eq(real(t, "speedup"), base_ms / base_tokens / (ms / tokens[0]), 0.05, "microseconds are rounded");
            cr_assert_eq(json_object_get(t, "tau_over_first") != NULL, turn > 0);
            if (turn) cr_assert_float_eq(real(t, "tau_over_first"), tokens[0] / passes[0] / (tokens[1] / passes[1]), 1e-12);
            tokens_of_all += tokens[0];
        }
        cr_assert_eq(tokens_of_all, whole(cell(sum, (size_t)c), "tokens"));
    }
    json_decref(all);
    json_decref(sum);
    char *page[] = { "report", "out", NULL };
    cr_assert_eq(wg_cmd_report(2, page), 0);
    json_t *document = page_of("out/report.html"), *turns = json_object_get(json_object_get(document, "tables"), "turns");
    cr_assert_gt(json_array_size(json_object_get(turns, "rows")), 1);
    json_decref(document);
    sum = run(CONFIG("\"max_tokens\": 4, " PROMPTS("") "," SWEPT), "first");
    cr_assert_eq(json_array_size(json_object_get(cell(sum, 0), "turns")), 0, "no prompt has several");
    json_decref(sum);
}

static double sum_of(const double *v, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++) sum += v[i];
    return sum;
}

/* Greedy, every round is certain: replay --exact must count the very passes of the run, conversation by conversation, that of a
 * turn which does not fit left out. */
Test(conversation, exact_rounds_are_the_runs)
{
    static const char *const text = CONFIG("\"max_tokens\": 9, \"sampling\": {\"temperature\": 0}, " PROMPTS(
        ", \"turns\": \"all\"") ", \"sweep\": "
                                "{\"draft\": [{\"kind\": \"ngram\", \"k\": 3, \"n_min\": 1}, "
                                "{\"kind\": \"model\", \"model\": \"target.gguf\", \"length\": 3}]}");
    put("prompts.jsonl",
        "{\"id\": \"three\", \"turns\": [\"The cat\", \" sat\", \" down\"]}\n"
        "{\"id\": \"much\", \"turns\": [\"abab\", \"0123456789012345678901234567890123456789012345678901\"]}\n");
    json_t *sum = run(text, "out"), *all = lines("out/requests.jsonl"), *v;
    wg_config *c = config_of(text);
    wg_exact_shape shape;
    wg_error err;
    cr_assert_eq(wg_exact_shape_read(&shape, "3", false, &err), WG_OK);
    for (int k = 0; k < 2; k++) {
        wg_exact_run x;
        cr_assert_eq(wg_exact_cell(c, k, &shape, 1, NULL, 0, &x, &err), WG_OK, "%s", err.text);
        cr_assert(x.n >= 1 && x.texts == 4 * 2, "%d rows, %d texts", x.n, x.texts);
        for (int i = 0; i < x.n; i++) {
            size_t at;
            double tokens[2] = { 0 }, passes[2] = { 0 };
            json_array_foreach(all, at, v) {
                if (whole(v, "cell") != k || strcmp(word(v, "status"), "ok")) continue;
                tokens[whole(v, "prompt")] += whole(v, "tokens");
                passes[whole(v, "prompt")] += whole(json_object_get(v, "speculative_decoding"), "target_passes");
            }
            for (int p = 0; p < 2; p++) {
                cr_assert_eq(x.result[i].tokens[p], tokens[p]);
                cr_assert_float_eq(x.result[i].rounds[p], passes[p], 1e-9, "%s of cell %d, prompt %d: %g rounds, %g passes",
                                   x.result[i].rule, k, p, x.result[i].rounds[p], passes[p]);
            }
            cr_assert_lt(sum_of(passes, 2), sum_of(tokens, 2), "cell %d: nothing was accepted", k);
        }
        wg_exact_run_free(&x);
    }
    json_decref(all);
    json_decref(sum);
    wg_config_close(c);
}

/* The first turn is the prompt alone, whatever follows it. */
Test(conversation, first_turns_are_what_they_were)
{
    json_t *one = run(CONFIG("\"max_tokens\": 9, " PROMPTS("") "," SWEPT), "one");
    json_t *all = run(CONFIG("\"max_tokens\": 9, " PROMPTS(", \"turns\": 0") "," SWEPT), "all");
    json_t *a = lines("one/requests.jsonl"), *b = lines("all/requests.jsonl");
    cr_assert_eq(json_array_size(a), 3 * 3 * 2);
    for (size_t i = 0; i < json_array_size(a); i++) {
        const json_t *v = json_array_get(a, i);
        cr_assert_eq(whole(v, "turn"), 0);
        cr_assert_str_eq(word(v, "output_sha256"),
                         word(line_of(b, whole(v, "cell"), whole(v, "prompt"), 0, whole(v, "repeat")), "output_sha256"));
    }
    json_decref(a);
    json_decref(b);
    json_decref(one);
    json_decref(all);
}

/* A turn that does not fit fails by its number and takes the later ones along; the earlier ones count. */
Test(conversation, a_turn_that_does_not_fit)
{
    put("prompts.jsonl",
        "{\"id\": \"much\", \"turns\": [\"abcd\", \"0123456789012345678901234567890123456789012345678901\", \"ef\"]}\n"
        "{\"id\": \"little\", \"turns\": [\"ab\", \"cd\", \"ef\"]}\n");
    json_t *sum =
        run(CONFIG("\"batch\": 2, \"max_tokens\": 9, " PROMPTS(", \"turns\": 3") ", \"verify\": {\"rule\": \"match\"}"), "out");
    json_t *all = lines("out/requests.jsonl");
    cr_assert_eq(json_array_size(all), 2 * 6 * 2);
    cr_assert_str_eq(word(line_of(all, 0, 0, 0, 1), "status"), "ok");
    const char *second = word(line_of(all, 0, 0, 1, 1), "error"), *third = word(line_of(all, 0, 0, 2, 1), "error");
    cr_assert(second && !strncmp(second, "ECONTEXT: turn 2 of 3: the conversation has ", 44), "%s", second);
    cr_assert_str_eq(third, "EINVAL: turn 3 of 3: it was not run, because the one before it failed");
    cr_assert_eq(whole(cell(sum, 0), "requests"), 4 * 2);
    cr_assert_eq(whole(cell(sum, 0), "failed"), 2 * 2);
    cr_assert(strstr(word(cell(sum, 0), "first_failure"), "much: turn 2 of 3: "), "%s", word(cell(sum, 0), "first_failure"));
    for (int turn = 0; turn < 3; turn++) cr_assert_str_eq(word(line_of(all, 0, 1, turn, 0), "status"), "ok");
    json_decref(all);
    json_decref(sum);
}

/* A trace has a record a turn; the recorded rule verifies all its rounds as recorded, and the page shows the turns in order. */
Test(conversation, traces_and_pages)
{
    json_decref(run(CONFIG("\"trace\": \"probs\", \"max_tokens\": 9, " PROMPTS(", \"turns\": \"all\"") "," SWEPT), "out"));
    wg_trace *t;
    wg_error err;
    cr_assert_eq(wg_trace_open(&t, "out/trace.wgt", &err), WG_OK, "%s", err.text);
    cr_assert_eq(t->requests, 2 * 6 * 2);
    cr_assert_str_eq(t->damage, "");
    for (int c = 0; c < 2; c++) {
        wg_replay *r;
        cr_assert_eq(wg_replay_open(&r, t, c, -1, &err), WG_OK, "%s", err.text);
        wg_replayed replayed = { .rule = r->rule.class, .options = r->rule.options };
        cr_assert_eq(wg_replay_all(r, &replayed, 1, &err), WG_OK, "%s", err.text);
        cr_assert(replayed.rounds > 0 && replayed.same == replayed.rounds, "cell %d: %ld of %ld", c, replayed.same,
                  replayed.rounds);
        cr_assert_eq(replayed.prompts, 3);
        wg_replayed_free(&replayed);
        wg_replay_close(r);
    }
    wg_trace_close(t);
    char *report[] = { "report", "out", NULL };
    cr_assert_eq(wg_cmd_report(2, report), 0);
    json_t *document = page_of("out/report.html");
    const json_t *answers = json_object_get(json_object_get(document, "texts"), "answers");
    static const struct {
        const char *id, *prompt;
        int turn;
    } order[] = { { "three", "The cat", 0 }, { "three", " sat", 1 }, { "three", " down", 2 },
                  { "one", "abab", 0 },      { "two", "A dog", 0 },  { "two", " ran", 1 } };
    cr_assert_eq(json_array_size(answers), 6);
    for (size_t i = 0; i < 6; i++) {
        const json_t *a = json_array_get(answers, i);
        cr_assert(!strcmp(wg_json_word(a, "id"), order[i].id) && strstr(wg_json_word(a, "prompt"), order[i].prompt), "%zu", i);
        cr_assert_eq(whole(a, "turn"), order[i].turn);
    }
    json_decref(document);
}

Test(conversation, survives_failing_allocations)
{
    wg_status status = WG_ENOMEM;
    wg_error err;
    wg_config *c = config_of(CONFIG("\"max_tokens\": 3, " PROMPTS(", \"turns\": \"all\", \"chat\": \"vicuna\"")));
    wg_target *t;
    const wg_target_options o = { .threads = 1, .need_tokenizer = true };
    cr_assert_eq(wg_target_open(&t, "target.gguf", &o, &err), WG_OK, "%s", err.text);
    const wg_prompt *p = &c->dataset[0]->prompt[0];
    const wg_chat chat = wg_setup_chat(&c->cell[0].setup.prompts, t->weights);
    for (uint64_t nth = 1; status != WG_OK && nth < 200; nth++) {
        wg_question q[3] = { { 0 } };
        const size_t before = wg_mem_read().live_blocks;
        wg_mem_fail_at(nth, false);
        status = wg_prompt_encode(q, t->tokenizer, &chat, p, &err);
        wg_mem_fail_at(0, false);
        cr_assert(status == WG_OK || status == WG_ENOMEM);
        for (int i = 1; i < 3 && !status; i++)
            cr_assert(q[i].closed == 1 && q[i].token[0] == wg_tokenizer_eos(t->tokenizer) && q[i].n > 3);
        wg_conversation_free(q, 3);
        cr_assert_eq(wg_mem_read().live_blocks, before);
    }
    cr_assert_eq(status, WG_OK);
    wg_target_close(t);
    wg_config_close(c);
}
