/* SPDX-License-Identifier: MIT
 * Whole runs on a tiny pair: counts, files, and the state of the folder when a run is interrupted or the disk is full. */
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#include "core/base/json.h"
#include "core/base/mem.h"
#include "core/file/gguf_write.h"
#include "experiments/cli/cli.h"
#include "experiments/run/runner.h"
#include "experiments/run/summary.h"
#include "draft/draft.h"
#include "experiments/report/table.h"
#include "core/setup/target.h"
#include "scene.h"
#include "verify/verify.h"

static scene s;

/* Three prompts, the second one longer than the models' context of 64 tokens. */
static void setup(void)
{
    scene_make(&s);
    put("prompts.jsonl", SCENE_PROMPTS);
}
static void teardown(void) { scene_remove(&s); }
TestSuite(runner, .init = setup, .fini = teardown, .timeout = 120);

#define CONFIG(more)                                                                                                           \
    "{\"name\": \"t\", \"target\": {\"model\": \"target.gguf\", \"threads\": 1}, \"prompts\": {\"file\": \"prompts.jsonl\"}, " \
    "\"max_tokens\": 24," more "}"
#define MODEL "\"draft\": {\"kind\": \"model\", \"model\": \"draft.gguf\", \"length\": 3}"

/* Runs a config into a folder; the summary as written. */
static json_t *run(const char *text, const char *out, wg_status want)
{
    wg_error err = { 0 };
    wg_run r;
    char *path = NULL;
    wg_config *c = config_of(text);
    const wg_run_options o = { .out = out };
    cr_assert_eq(wg_run_config(c, &o, &r, &path, &err), want, "%s", err.text);
    wg_run_free(&r);
    wg_config_close(c);
    char file[256];
    snprintf(file, sizeof file, "%s/summary.json", path ? path : out);
    wg_free(path);
    return json_load_file(file, 0, NULL);
}

static json_t *cell(const json_t *summary, size_t i) { return json_array_get(json_object_get(summary, "cells"), i); }
static double real(const json_t *v, const char *key) { return json_number_value(json_object_get(v, key)); }
static const char *word(const json_t *v, const char *key) { return json_string_value(json_object_get(v, key)); }

/* All lines of a JSONL file; every one must be whole. */
static json_t *lines(const char *path)
{
    size_t n;
    char *text = file_read(path, &n);
    cr_assert_not_null(text, "%s", path);
    cr_assert(n == 0 || text[n - 1] == '\n', "%s: the last line is cut", path);
    json_t *all = json_array();
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        json_t *v = json_loads(line, 0, NULL);
        cr_assert_not_null(v, "%s: %s", path, line);
        json_array_append_new(all, v);
    }
    free(text);
    return all;
}

Test(runner, counts_what_it_writes)
{
    json_t *sum = run(CONFIG("\"repeats\": 2, \"trace\": \"steps\", \"sampling\": {\"temperature\": 0.9}," MODEL ","
                             "\"sweep\": {\"verify.rule\": [\"match\", \"rejection\"]}"),
                      "out", WG_OK);
    cr_assert_not_null(sum);
    cr_assert(json_is_true(json_object_get(sum, "complete")));
    cr_assert_eq(json_array_size(json_object_get(sum, "cells")), 2);
    json_t *requests = lines("out/requests.jsonl"), *steps = lines("out/steps.jsonl");
    cr_assert_eq(json_array_size(requests), 3 * 3 * 2); /* prompts, arms, repeats */
    for (int k = 0; k < 2; k++) {
        const json_t *c = cell(sum, (size_t)k);
        long ok = 0, failed = 0, tokens = 0, passes = 0, accepted = 0, drafted = 0, seen = 0, later = 0, first = 0;
        size_t i;
        json_t *v;
        json_array_foreach(requests, i, v) {
            if (!json_is_integer(json_object_get(v, "cell")) || json_integer_value(json_object_get(v, "cell")) != k) continue;
            const json_t *spec = json_object_get(v, "speculative_decoding");
            if (strcmp(word(v, "status"), "ok") != 0) {
                failed++;
                cr_assert_str_eq(word(v, "id"), "long");
                cr_assert_eq(strncmp(word(v, "error"), "ECONTEXT: ", 10), 0, "%s", word(v, "error"));
                continue;
            }
            ok++;
            tokens += json_integer_value(json_object_get(v, "tokens"));
            cr_assert_eq(json_array_size(json_object_get(v, "ids")), (size_t)real(v, "tokens"));
            passes += json_integer_value(json_object_get(spec, "target_passes"));
            accepted += json_integer_value(json_object_get(spec, "num_accepted_draft_tokens"));
            drafted += json_integer_value(json_object_get(spec, "num_draft_tokens"));
            cr_assert_eq(strlen(word(v, "output_sha256")), 64);
            const json_t *load = json_object_get(v, "load"), *events = json_object_get(v, "itl_tokens");
            const double steps_taken = real(spec, "target_passes");
            cr_assert_eq(real(load, "passes"), steps_taken); /* one at a time */
            cr_assert_eq(real(load, "rows"), steps_taken + real(spec, "num_draft_tokens"));
            cr_assert_eq(json_array_size(json_object_get(v, "itl_ms")), (size_t)steps_taken - 1);
            cr_assert_eq(json_array_size(events), (size_t)steps_taken - 1);
            size_t at;
            json_t *n;
            json_array_foreach(events, at, n) later += json_integer_value(n);
        }
        cr_assert_eq(ok, 4);
        cr_assert_eq(failed, 2);
        cr_assert_eq(real(c, "requests"), 4);
        cr_assert_eq(real(c, "failed"), 2);
        cr_assert(strstr(word(c, "first_failure"), "long: "), "%s", word(c, "first_failure"));
        cr_assert_eq(real(c, "tokens"), tokens);
        cr_assert_eq(real(c, "target_passes"), passes);
        cr_assert_eq(real(c, "accepted"), accepted);
        cr_assert_eq(real(c, "drafted"), drafted);
        cr_assert_float_eq(real(c, "tau"), (double)tokens / (double)passes, 1e-12);
        json_array_foreach(steps, i, v) {
            if (json_is_integer(json_object_get(v, "cell")) && json_integer_value(json_object_get(v, "cell")) == k)
                seen += (long)real(v, "emitted"), first += real(v, "step") == 0 ? (long)real(v, "emitted") : 0;
        }
        cr_assert_eq(seen, tokens, "steps.jsonl must add up to the output");
        cr_assert_eq(first + later, tokens, "and so must the events");
    }
    json_decref(requests);
    json_decref(steps);
    json_decref(sum);
}

Test(runner, summary_has_every_field)
{
    static const char *const numbers[] = { "requests",
                                           "tokens",
                                           "target_passes",
                                           "drafted",
                                           "accepted",
                                           "tau",
                                           "acceptance_rate",
                                           "alpha",
                                           "speedup",
                                           "tok_s",
                                           "baseline_tok_s",
                                           "predicted_speedup",
                                           "overhead_us_per_token",
                                           "mean_acceptance_length",
                                           "mean_itl_ms",
                                           "draft_acceptance_rate",
                                           "spec_decode_num_drafts",
                                           "spec_decode_num_draft_tokens",
                                           "spec_decode_num_accepted_tokens" };
    static const char *const pairs[] = { "tau_ci", "speedup_ci" };
    static const char *const quantiles[] = { "ttft_ms", "tpot_ms", "itl_ms", "itl_per_token_ms" };
    static const char *const phases[] = { "draft", "verify", "accept", "kv", "other" };
    put("prompts.jsonl", "{\"prompt\": \"The cat\"}\n{\"prompt\": \"A dog\"}\n{\"prompt\": \"abab\"}\n{\"prompt\": \"one\"}\n"
                         "{\"prompt\": \"two\"}\n"); /* as many as an interval needs */
    json_t *sum = run(CONFIG("\"sampling\": {\"temperature\": 1}," MODEL), "out", WG_OK);
    const json_t *c = cell(sum, 0);
    cr_assert_eq(real(sum, "schema"), 2);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        cr_assert(json_is_number(json_object_get(c, numbers[i])), "%s", numbers[i]);
    for (size_t i = 0; i < 2; i++) {
        const json_t *v = json_object_get(c, pairs[i]);
        cr_assert_eq(json_array_size(v), 2, "%s", pairs[i]);
        cr_assert_leq(json_number_value(json_array_get(v, 0)), json_number_value(json_array_get(v, 1)));
    }
    for (size_t i = 0; i < sizeof quantiles / sizeof *quantiles; i++) {
        const json_t *v = json_object_get(c, quantiles[i]);
        cr_assert(real(v, "p50") > 0 && real(v, "p50") <= real(v, "p90") && real(v, "p90") <= real(v, "p99"), "%s",
                  quantiles[i]);
    }
    static const char *const rates[] = { "mbu",  "mfu",     "baseline_mbu", "baseline_mfu",
                                         "gb_s", "gflop_s", "stream_gb_s",  "peak_gflop_s" };
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++)
        cr_assert(real(json_object_get(c, "efficiency"), rates[i]) > 0, "%s", rates[i]);
    const json_t *rejected = json_object_get(c, "rejected"), *slots = json_object_get(c, "kv_slots");
    cr_assert_eq(real(rejected, "tokens"), real(c, "drafted") - real(c, "accepted"));
    cr_assert(real(rejected, "flop_share") > 0 && real(rejected, "flop_share") < 1);
    cr_assert(real(slots, "held") > real(slots, "unused") + real(slots, "rolled_back"));
    cr_assert_float_eq(real(slots, "waste"), (real(slots, "unused") + real(slots, "rolled_back")) / real(slots, "held"), 1e-9);
    cr_assert(json_is_null(json_object_get(c, "energy")) == json_is_string(json_object_get(sum, "energy_unknown")));
    for (size_t i = 0; i < 5; i++)
        cr_assert(json_is_number(json_object_get(json_object_get(c, "phase_ms"), phases[i])), "%s", phases[i]);
    cr_assert(json_is_object(json_object_get(c, "cell")));
    cr_assert(json_is_true(json_object_get(c, "lossless")));
    cr_assert(json_is_null(json_object_get(c, "equals_baseline")));   /* rejection at temperature 1: equal in law */
    cr_assert(fabs(real(c, "alpha_star") - real(c, "alpha")) < 1e-9); /* a chain: rejection is the best rule of a node */
    cr_assert_eq(json_array_size(json_object_get(c, "acceptance_by_position")), 3);
    cr_assert(real(c, "alpha") > 0 && real(c, "alpha") < 1);
    cr_assert_eq(strlen(word(c, "output_sha256")), 64);
    json_decref(sum);
}

/* A middle model whose context ends before the texts do: the rounds after that are counted, in the requests as in the summary,
 * and the table warns of them. */
Test(runner, the_context_of_a_draft_ends)
{
    enum { SHORT = 16 };
    wg_synth_shape draft = scene_draft;
    draft.context = SHORT;
    wg_error err;
    cr_assert_eq(wg_synth_write(&draft, WG_F32, 2, "short.gguf", &err), WG_OK, "%s", err.text);
    json_t *sum = run(CONFIG("\"sampling\": {\"temperature\": 0}, \"trace\": \"steps\", \"sweep\": {\"draft\": ["
                             "{\"kind\": \"ngram\"}, {\"kind\": \"cascade\", \"model\": \"short.gguf\", \"length\": 3, "
                             "\"inner\": \"ngram\"}]}"),
                      "out", WG_OK);
    json_t *requests = lines("out/requests.jsonl"), *steps = lines("out/steps.jsonl"), *v;
    const json_t *c = cell(sum, 1), *without = json_object_get(c, "rounds_without_draft");
    long ended = 0, of_requests = 0;
    size_t i;
    json_array_foreach(steps, i, v) {
        const bool last = real(v, "height") == 0 && real(v, "emitted") == 1;
        if (real(v, "cell") == 1 && last && real(v, "position") >= SHORT) ended++;
    }
    json_array_foreach(requests, i, v) {
        const json_t *spec = json_object_get(v, "speculative_decoding");
        if (!spec || real(v, "cell") != 1) continue;
        const json_t *reasons = json_object_get(spec, "rounds_without_draft");
        of_requests += (long)real(reasons, "draft_context");
        ended -= (long)real(reasons, "room"); /* the last passes, which the steps do not tell apart */
        cr_assert_eq(real(spec, "target_passes"), real(spec, "num_spec_steps") + real(reasons, "draft_context") +
                                                      real(reasons, "room") + real(reasons, "nothing_found") +
                                                      real(reasons, "length_policy"));
    }
    cr_assert(ended > 10 && of_requests == ended && real(without, "draft_context") == ended, "%ld, %ld, %g", ended, of_requests,
              real(without, "draft_context"));
    cr_assert(real(c, "draft_context") == SHORT && json_is_null(json_object_get(cell(sum, 0), "draft_context")));
    char *text, want[200];
    size_t n;
    FILE *f = open_memstream(&text, &n);
    wg_table_print(f, sum, NULL, 0);
    fclose(f);
    snprintf(want, sizeof want,
             "\nwarning: cell 1, cascade: %ld of %.0f rounds had no draft: the draft's context of 16 positions had "
             "ended\n",
             ended, real(c, "target_passes"));
    cr_assert(strstr(text, want) && !strstr(text, "cell 0, ngram: "), "%s", text);
    free(text);
    json_decref(requests);
    json_decref(steps);
    json_decref(sum);
}

/* Where the rule repeats plain decoding, it must be seen to; and the digest must not depend on batch, threads or drafter. */
Test(runner, outputs_equal_the_baseline_whatever_the_batch)
{
    static const char *const temperatures[] = { "0", "1" };
    for (int k = 0; k < 2; k++) {
        char first[80] = "", text[1024];
        static const char *const how[] = { "\"batch\": 1", "\"batch\": 2",
                                           "\"batch\": 3, \"target\": {\"model\": \"target.gguf\", \"threads\": 3}" };
        static const char *const drafts[] = { MODEL, "\"draft\": {\"kind\": \"ngram\"}", "\"draft\": {\"kind\": \"none\"}" };
        for (int i = 0; i < 9; i++) {
            const bool target = i % 3 == 2;
            snprintf(text, sizeof text,
                     "{\"name\": \"t\", %s \"prompts\": {\"file\": \"prompts.jsonl\"}, \"max_tokens\": 20, \"repeats\": 2, "
                     "\"verify\": "
                     "{\"rule\": \"match\"}, \"sampling\": {\"temperature\": %s}, %s, %s}",
                     target ? "" : "\"target\": {\"model\": \"target.gguf\"},", temperatures[k], drafts[i / 3], how[i % 3]);
            char out[32];
            snprintf(out, sizeof out, "out-%d-%d", k, i);
            json_t *sum = run(text, out, WG_OK);
            const json_t *c = cell(sum, 0);
            cr_assert(json_is_true(json_object_get(c, "equals_baseline")), "%s", text);
            if (!*first) snprintf(first, sizeof first, "%s", word(c, "output_sha256"));
            cr_assert_str_eq(word(c, "output_sha256"), first, "%s", text);
            if (i == 6) cr_assert_eq(real(c, "tau"), 1); /* plain decoding beside itself */
            json_decref(sum);
        }
    }
}

/* The recorded ids are the output of the engine, driven by hand. */
Test(runner, the_baseline_is_plain_decoding)
{
    json_decref(run(CONFIG("\"seed\": 3, \"repeats\": 2, \"sampling\": {\"temperature\": 1}"), "out", WG_OK));
    json_t *requests = lines("out/requests.jsonl");
    wg_error err;
    wg_target *t;
    wg_engine *e;
    const wg_target_options to = { .threads = 1, .need_tokenizer = true, .model = { .kv_type = WG_F16 } };
    cr_assert_eq(wg_target_open(&t, "target.gguf", &to, &err), WG_OK, "%s", err.text);
    wg_engine_parts parts = wg_target_engine_parts(t);
    parts.drafter = &wg_drafter_none;
    parts.verifier = &wg_verifier_match;
    const wg_engine_options o = { .max_batch = 1, .seed = 3, .sampling = { .temperature = 1, .top_p = 1 } };
    cr_assert_eq(wg_engine_open(&e, &parts, &o, &err), WG_OK, "%s", err.text);
    size_t i;
    json_t *v;
    int seen = 0;
    json_array_foreach(requests, i, v) {
        if (strcmp(word(v, "id"), "dog") != 0) continue;
        int32_t *ids;
        size_t n;
        wg_seq *seq;
        const uint32_t request = 2 * 2 + (uint32_t)real(v, "repeat"); /* prompt 2 of two repeats */
        cr_assert_eq(wg_tokenizer_encode(t->tokenizer, "abababab", 8, true, false, &ids, &n, &err), WG_OK);
        cr_assert_eq(wg_seq_open(e, &seq, request, ids, (int)n, 24, &err), WG_OK, "%s", err.text);
        while (seq->finish == WG_RUNNING) cr_assert_eq(wg_engine_step(e, &seq, 1, &err), WG_OK, "%s", err.text);
        const json_t *out = json_object_get(v, "ids");
        cr_assert_eq(json_array_size(out), (size_t)(seq->n - seq->prompt));
        for (int k = 0; k < seq->n - seq->prompt; k++)
            cr_assert_eq(json_integer_value(json_array_get(out, (size_t)k)), seq->token[seq->prompt + k], "token %d", k);
        wg_seq_close(e, seq);
        wg_free(ids);
        seen++;
    }
    cr_assert_eq(seen, 4); /* baseline and cell, twice */
    wg_engine_close(e);
    wg_target_close(t);
    json_decref(requests);
}

/* Vicuna's template for one question is words alone: the run is the one over prompts in which they are written out. */
Test(runner, a_chat_template_is_what_is_asked)
{
    put("prompts.jsonl", "{\"prompt\": \"The cat sat\"}\n");
    json_t *plain = run(CONFIG(MODEL), "plain", WG_OK);
    json_t *chat = run("{\"name\": \"t\", \"target\": {\"model\": \"target.gguf\"}, \"max_tokens\": 24, " MODEL ", "
                       "\"prompts\": {\"file\": \"prompts.jsonl\", \"chat\": \"vicuna\", \"system\": \"Hi.\"}}",
                       "chat", WG_OK);
    put("prompts.jsonl", "{\"prompt\": \"Hi. USER: The cat sat ASSISTANT:\"}\n");
    json_t *written = run(CONFIG(MODEL), "written", WG_OK);
    cr_expect_str_eq(word(cell(chat, 0), "output_sha256"), word(cell(written, 0), "output_sha256"));
    cr_expect_str_neq(word(cell(chat, 0), "output_sha256"), word(cell(plain, 0), "output_sha256"));
    json_decref(plain);
    json_decref(chat);
    json_decref(written);
}

static wg_status same_bytes(void *user, const wg_tensor *t, void *dst, wg_error *err)
{
    const wg_tensor *from = wg_weights_find(user, t->name);
    WG_TRY(wg_weights_need(user, from, err));
    memcpy(dst, from->data, t->bytes);
    return WG_OK;
}

/* Writes target.gguf again, with a chat template, as templated.gguf. */
static void write_template(const char *text)
{
    wg_weights *w;
    wg_gguf_writer *g;
    wg_error err;
    cr_assert_eq(wg_weights_open(&w, "target.gguf", &err), WG_OK, "%s", err.text);
    cr_assert_eq(wg_gguf_writer_open(&g, "templated.gguf", &err), WG_OK, "%s", err.text);
    for (int i = 0; i < wg_meta_count(w); i++) wg_gguf_copy_meta(g, w, i);
    wg_gguf_set_string(g, "tokenizer.chat_template", text, strlen(text));
    for (int i = 0; i < wg_weights_count(w); i++) wg_gguf_add(g, wg_weights_at(w, i), same_bytes, w);
    cr_assert_eq(wg_gguf_writer_finish(g, &err), WG_OK, "%s", err.text);
    wg_weights_close(w);
}

#define OWN(chat)                                                                                                              \
    "{\"name\": \"t\", \"target\": {\"model\": \"templated.gguf\"}, \"max_tokens\": 24, "                                      \
    "\"prompts\": {\"file\": \"prompts.jsonl\", \"turns\": \"all\", \"system\": \"Hi.\", " chat "}}"

/* Vicuna's template as the model's own one: the same run, over two turns. */
Test(runner, the_template_of_the_file)
{
    write_template(
        "{{ bos_token }}{% for m in messages %}{% if m.role == 'user' %}USER: {{ m.content }} "
        "{% elif m.role == 'assistant' %}ASSISTANT: {{ m.content }}{{ eos_token }}{% else %}{{ m.content }} {% endif %}"
        "{% endfor %}ASSISTANT:{{ strftime_now('') }}");
    put("prompts.jsonl", "{\"turns\": [\"The cat sat\", \"And then?\"]}\n");
    json_t *own = run(OWN("\"chat\": \"model\", \"date\": \"2026-01-31\""), "own", WG_OK);
    json_t *vicuna = run(OWN("\"chat\": \"vicuna\""), "vicuna", WG_OK);
    cr_expect_str_eq(word(cell(own, 0), "output_sha256"), word(cell(vicuna, 0), "output_sha256"));
    json_decref(own);
    json_decref(vicuna);
}

Test(runner, lossy_is_said_to_be_lossy)
{
    json_t *sum = run(CONFIG("\"sampling\": {\"temperature\": 1}, \"verify\": {\"rule\": \"greedy\"}," MODEL), "out", WG_OK);
    cr_assert(json_is_false(json_object_get(cell(sum, 0), "lossless")));
    cr_assert(json_is_false(json_object_get(cell(sum, 0), "equals_baseline")));
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    wg_table_print(f, sum, NULL, 0);
    fclose(f);
    cr_assert(strstr(text, "no (lossy)"), "%s", text);
    cr_assert(strstr(text, "1 request failed and counts on neither side; the first: long: "), "%s", text);
    free(text);
    json_decref(sum);
}

/* The folder's config.json runs again to the same outputs, in a default folder named after the digest. */
Test(runner, a_folder_can_be_run_again)
{
    json_t *a = run(CONFIG("\"sampling\": {\"temperature\": 1}," MODEL), "out", WG_OK);
    char *text = file_read("out/config.json", NULL);
    json_t *b = run(text, NULL, WG_OK);
    cr_assert_str_eq(word(cell(a, 0), "output_sha256"), word(cell(b, 0), "output_sha256"));
    cr_assert_str_eq(word(a, "config_sha256"), word(b, "config_sha256"));
    cr_assert_eq(dir_count("results/t"), 1);
    free(text);
    json_decref(a);
    json_decref(b);
}

Test(runner, nothing_is_made_when_a_part_does_not_open)
{
    wg_synth_shape other = scene_draft;
    other.vocab = 400;
    wg_error err;
    cr_assert_eq(wg_synth_write(&other, WG_F32, 2, "draft.gguf", &err), WG_OK);
    const int before = dir_count(".");
    cr_assert_null(run(CONFIG(MODEL), "out", WG_EVOCAB));
    cr_assert_eq(dir_count("."), before + 1); /* config.json */
}

/* A drafting program that dies over one request of a batch costs that request and no other. */
Test(runner, a_failing_request_fails_alone)
{
    put("fussy.sh", "while read -r line; do case $line in\n*'\"request\":2,'*) exit 3;;\n*forget*) ;;\n"
                    "*) echo '{\"tokens\":[5]}';; esac; done\n");
    json_t *sum = run(CONFIG("\"batch\": 3, \"draft\": {\"kind\": \"process\", \"command\": \"sh fussy.sh\"}"), "out", WG_OK);
    json_t *requests = lines("out/requests.jsonl"), *v;
    size_t i;
    int failed = 0, ok = 0;
    json_array_foreach(requests, i, v) {
        if (!json_is_integer(json_object_get(v, "cell"))) continue;
        if (!strcmp(word(v, "status"), "ok")) {
            cr_assert_str_eq(word(v, "id"), "cat");
            cr_assert_eq(real(v, "tokens"), 24);
            ok++;
        } else if (!strcmp(word(v, "id"), "dog")) {
            cr_assert(strstr(word(v, "error"), "'sh fussy.sh' ended with status 3"), "%s", word(v, "error"));
            failed++;
        }
    }
    cr_assert_eq(ok, 1);
    cr_assert_eq(failed, 1);
    json_decref(requests);
    json_decref(sum);
}

/* ---- processes --------------------------------------------------------------------------------------------------- */

/* `wager run config.json --out out` in a child; its exit status, or -signal. stop_after > 0: SIGINT once so many requests are
 * there. */
static int child(const char *config, rlim_t file_size, int stop_after)
{
    put("config.json", config);
    const pid_t pid = fork();
    if (pid == 0) {
        char *argv[] = { "run", "config.json", "--out", "out", NULL };
        const struct rlimit limit = { file_size, file_size };
        const int to = open("stderr", O_WRONLY | O_CREAT | O_TRUNC, 0666), null = open("/dev/null", O_WRONLY);
        dup2(to, STDERR_FILENO);
        dup2(null, STDOUT_FILENO);
        if (file_size) setrlimit(RLIMIT_FSIZE, &limit);
        _exit(wg_cmd_run(4, argv));
    }
    for (int tries = 0; stop_after > 0 && tries < 3000; tries++) {
        size_t n = 0;
        int count = 0;
        char *text = file_read("out/requests.jsonl", &n);
        for (size_t i = 0; text && i < n; i++) count += text[i] == '\n';
        free(text);
        if (count >= stop_after) break;
        nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
    }
    if (stop_after > 0) kill(pid, SIGINT);
    int status;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

Test(runner, interrupted_runs_keep_what_had_finished)
{
    cr_assert_eq(child(CONFIG("\"repeats\": 10000," MODEL), 0, 5), 130);
    json_t *requests = lines("out/requests.jsonl"), *sum = json_load_file("out/summary.json", 0, NULL);
    cr_assert_geq(json_array_size(requests), 5);
    cr_assert_lt(json_array_size(requests), 60000);
    cr_assert_not_null(sum);
    cr_assert(json_is_false(json_object_get(sum, "complete")));
    cr_assert(real(cell(sum, 0), "requests") <= (double)json_array_size(requests) / 2);
    char *text = file_read("stderr", NULL);
    cr_assert(strstr(text, "interrupted; requests that had finished are kept"), "%s", text);
    cr_assert(strstr(text, "to go on: the same command with --resume --out 'out'\n"), "%s", text);
    free(text);
    json_decref(requests);
    json_decref(sum);
}

Test(runner, a_full_disk_is_an_error_and_leaves_whole_lines)
{
    cr_assert_eq(child(CONFIG("\"repeats\": 100," MODEL), 8000, 0), 1);
    json_t *requests = lines("out/requests.jsonl");
    cr_assert_geq(json_array_size(requests), 3);
    cr_assert_eq(access("out/summary.json", F_OK), -1, "no summary of half a run");
    char *text = file_read("stderr", NULL);
    cr_assert(strstr(text, "out/requests.jsonl: cannot write: File too large; the requests before this one are kept, there is "
                           "no summary. Free some space (or raise the limit), or write elsewhere with --out DIR"),
              "%s", text);
    free(text);
    json_decref(requests);
    scene_unlink("out/requests.jsonl", NULL, 0, NULL);
}

/* A terminal has its width, COLUMNS another, a file none; TERM=dumb is no terminal that takes escape sequences. */
Test(runner, terminals)
{
    const struct winsize size = { .ws_row = 24, .ws_col = 93 };
    const int master = posix_openpt(O_RDWR | O_NOCTTY), file = open("file", O_WRONLY | O_CREAT, 0666);
    cr_assert(master >= 0 && file >= 0 && !grantpt(master) && !unlockpt(master));
    const int tty = open(ptsname(master), O_RDWR | O_NOCTTY);
    cr_assert(tty >= 0 && ioctl(tty, TIOCSWINSZ, &size) == 0);
    unsetenv("COLUMNS");
    setenv("TERM", "xterm", 1);
    cr_expect_eq(wg_cli_width(tty), 93);
    cr_expect_eq(wg_cli_width(file), 0);
    cr_expect(wg_cli_terminal(tty) && !wg_cli_terminal(file));
    setenv("TERM", "dumb", 1);
    cr_expect(!wg_cli_terminal(tty));
    setenv("COLUMNS", "80", 1);
    cr_expect(wg_cli_width(tty) == 80 && wg_cli_width(file) == 80);
    setenv("COLUMNS", "many", 1);
    cr_expect_eq(wg_cli_width(file), 0);
    unsetenv("COLUMNS");
    close(tty), close(master), close(file);
}

Test(runner, no_room_at_all)
{
    cr_assert_eq(child(CONFIG(MODEL), 400, 0), 1); /* bytes of a file: standard error, with its warning, has fewer */
    cr_assert_eq(dir_count("out"), 0, "nothing half-written");
    char *text = file_read("stderr", NULL);
    cr_assert(strstr(text, "out/config.json"), "%s", text);
    free(text);
}

Test(runner, a_folder_in_use_is_refused)
{
    if (mkdir("out", 0777)) cr_assert_fail();
    put("out/notes.txt", "mine");
    cr_assert_eq(child(CONFIG(MODEL), 0, 0), 2);
    cr_assert_eq(dir_count("out"), 1);
    char *text = file_read("stderr", NULL);
    cr_assert(strstr(text, "out: the folder is not empty"), "%s", text);
    free(text);
}

/* Whatever allocation fails, the run fails with a message, no summary appears, and nothing leaks. */
Test(runner, survives_failing_allocations)
{
    put("prompts.jsonl", "{\"prompt\": \"abababab\"}\n");
    wg_config *c = config_of("{\"name\": \"t\", \"target\": {\"model\": \"target.gguf\", \"threads\": 1}, \"prompts\": "
                             "{\"file\": \"prompts.jsonl\"},"
                             "\"max_tokens\": 3," MODEL "}");
    wg_status status = WG_ENOMEM;
    for (uint64_t nth = 1; status != WG_OK && nth < 20000; nth += 1 + nth / 40) {
        wg_error err = { 0 };
        wg_run r;
        char out[32], file[64], *path = NULL;
        snprintf(out, sizeof out, "out-%d", (int)nth);
        snprintf(file, sizeof file, "%s/summary.json", out);
        const size_t before = wg_mem_read().live_blocks;
        const wg_run_options o = { .out = out };
        wg_mem_fail_at(nth, true);
        status = wg_run_config(c, &o, &r, &path, &err);
        const bool reached = status != WG_OK || r.result[0].failed > 0;
        wg_mem_fail_at(0, false);
        cr_assert(status == WG_OK || err.text[0], "allocation %d: no message", (int)nth);
        cr_assert_eq(access(file, F_OK) == 0, status == WG_OK, "allocation %d", (int)nth);
        wg_run_free(&r);
        wg_free(path);
        cr_assert_eq(wg_mem_read().live_blocks, before, "allocation %d of a run: %s", (int)nth, err.text);
        if (status == WG_OK && reached) status = WG_ENOMEM; /* the failure met a request, which is a result */
    }
    cr_assert_eq(status, WG_OK);
    wg_config_close(c);
}
