/* SPDX-License-Identifier: MIT
 * The untimed second pass (second_pass.h) measures the same as measuring between the steps, for drafters of every kind, and
 * fails a request whose text or counts it does not repeat. */
#include "core/base/mem.h"
#include "core/engine/length_log.h"
#include "draft/draft.h"
#include "core/trace/trace.h"
#include "masked.h"
#include "run_scene.h"
#include "verify/verify.h"

static scene s;
static void setup(void)
{
    scene_make(&s);
    put("prompts.jsonl", SCENE_TURNS);
}
static void teardown(void) { scene_remove(&s); }
TestSuite(second_pass, .init = setup, .fini = teardown, .timeout = 120);

/* A drafter whose chains have lengths that are never the same twice, as if it measured time. */
typedef struct clocked_opt {
    bool log, once;
} clocked_opt;
typedef struct clocked {
    wg_drafter base;
    clocked_opt opt;
} clocked;
static const wg_option clocked_options[] = {
    WG_OPTION_BOOL(clocked_opt, log, 1, "its lengths are logged"),
    WG_OPTION_BOOL(clocked_opt, once, 0, "they are 1, and it plans in the timed pass alone"),
    WG_OPTION_END,
};

static wg_status clocked_propose(wg_drafter *d, wg_seq *const *seq, int n, wg_tree *out, wg_rows *q, wg_error *err)
{
    static int ticks; /* of all instances */
    (void)err;
    for (int i = 0; i < n; i++) {
        const int now = ++ticks % 5;
        const clocked_opt *o = &((clocked *)d)->opt;
        int length = o->once ? 1 : o->log ? wg_length_logged(d->env->lengths, now) : now;
        if (o->once && !d->env->lengths->repeats) wg_length_logged(d->env->lengths, 1);
        wg_tree_reset(&out[i], seq[i]->token[seq[i]->n - 1], WG_LAW_FIXED);
        if (length > wg_seq_room(seq[i])) length = wg_seq_room(seq[i]);
        for (int k = 0; k < length; k++) {
            const int row = wg_rows_push(q);
            q->point[row] = seq[i]->token[0];
            wg_tree_push(&out[i], k, seq[i]->token[0], row);
        }
    }
    return WG_OK;
}

static const wg_drafter_class clocked_class = {
    .name = "clocked",
    .doc = "of a test",
    .size = sizeof(clocked),
    .options = clocked_options,
    .options_at = offsetof(clocked, opt),
    .laws = WG_LAW_FIXED,
    .propose = clocked_propose,
};

/* Runs the config into `out`, with the test's own drafter among the program's; its summary. */
static json_t *run(const char *out, const char *more)
{
    const wg_drafter_class *drafters[64] = { &clocked_class };
    for (int i = 0; wg_drafters[i]; i++) drafters[i + 1] = wg_drafters[i];
    const wg_plugins plugins = { drafters, wg_verifiers };
    wg_error err = { 0 };
    wg_config *c = NULL;
    char text[2000];
    snprintf(text, sizeof text,
             "{\"name\": \"t\", \"target\": {\"model\": \"target.gguf\", \"threads\": 1}, \"max_tokens\": 12, \"repeats\": 2,"
             "\"prompts\": {\"file\": \"prompts.jsonl\", \"turns\": \"all\"}, %s}",
             more);
    put("config.json", text);
    cr_assert_eq(wg_config_open(&c, "config.json", NULL, 0, &plugins, &err), WG_OK, "%s", err.text);
    json_t *summary = scene_run(c, &(wg_run_options){ .out = out }, NULL);
    wg_config_close(c);
    return summary;
}

static json_t *cell(const json_t *sum, size_t i) { return json_array_get(json_object_get(sum, "cells"), i); }
static long whole(const json_t *v, const char *key) { return (long)json_integer_value(json_object_get(v, key)); }

/* Headers of traces hold the config, which differs; the records behind them must not, but for times. */
static void same_traces(void)
{
    wg_error err;
    wg_trace *t[2];
    wg_trace_round r[2];
    cr_assert_eq(wg_trace_open(&t[0], "auto/trace.wgt", &err), WG_OK, "%s", err.text);
    cr_assert_eq(wg_trace_open(&t[1], "always/trace.wgt", &err), WG_OK, "%s", err.text);
    cr_assert_gt(t[0]->rounds, 0);
    cr_assert_eq(t[0]->rounds, t[1]->rounds);
    cr_assert_eq(t[0]->requests, t[1]->requests);
    for (int i = 0; i < t[0]->requests; i++) cr_assert(t[0]->request[i].ended && t[1]->request[i].ended);
    for (int i = 0; i < t[0]->rounds; i++) {
        for (int k = 0; k < 2; k++) cr_assert_eq(wg_trace_get(t[k], i, &r[k], &err), WG_OK, "%s", err.text);
        cr_assert_eq(r[0].facts.step, r[1].facts.step);
        cr_assert_eq(r[0].facts.batch, r[1].facts.batch);
        cr_assert_gt(r[1].facts.verify, 0, "times are the timed pass's");
        cr_assert_eq(r[0].path.n, r[1].path.n);
        cr_assert_eq(r[0].tree.n, r[1].tree.n);
        for (int node = 0; node < r[0].tree.n; node++) {
            const wg_trace_row *a = &r[0].p[node], *b = &r[1].p[node];
            cr_assert_eq(a->kind, b->kind);
            cr_assert_eq(a->count, b->count);
            cr_assert_eq(memcmp(a->data, b->data, wg_trace_row_bytes(a->kind, a->count, t[0]->group[0].vocab)), 0);
        }
    }
    for (int k = 0; k < 2; k++) wg_trace_close(t[k]);
}

/* Lines of two folders without clocks, and without where the trace had come to. */
static void same_requests(const char *what)
{
    char *a = masked("auto", "requests.jsonl"), *b = masked("always", "requests.jsonl");
    for (char *x = a, *y = b, *next; *x; x = next) {
        json_t *u = json_loadb(x, strcspn(x, "\n"), 0, NULL), *v = json_loadb(y, strcspn(y, "\n"), 0, NULL);
        json_object_del(u, "trace_end");
        json_object_del(v, "trace_end");
        char *one = wg_json_canonical(u, false), *other = wg_json_canonical(v, false);
        cr_assert_str_eq(one, other, "%s", what);
        wg_free(one);
        wg_free(other);
        json_decref(u);
        json_decref(v);
        next = x + strcspn(x, "\n") + 1;
        y += strcspn(y, "\n") + 1;
    }
    free(a);
    free(b);
}

Test(second_pass, finds_what_is_found_between_steps)
{
    static const char *const ways[] = {
        "\"draft\": {\"kind\": \"model\", \"model\": \"draft.gguf\", \"length\": 3}, \"trace\": \"probs\","
        "\"sampling\": {\"temperature\": 0.9}, \"verify\": {\"rule\": \"rejection\"}",
        "\"draft\": {\"kind\": \"model\", \"model\": \"draft.gguf\", \"tree\": \"2-2\"}, \"batch\": 2, \"trace\": \"steps\","
        "\"sampling\": {\"temperature\": 0.9}, \"verify\": {\"rule\": \"rejection\"}",
        "\"draft\": {\"kind\": \"ngram_cache\", \"k\": 8}, \"batch\": 2, \"verify\": {\"rule\": \"match\"}", /* cross-request */
        "\"draft\": {\"kind\": \"synthetic\", \"ahead\": \"memory\"}, \"verify\": {\"rule\": \"match\"}",
        "\"draft\": {\"kind\": \"recycle\", \"nodes\": 24}, \"trace\": \"probs\", \"batch\": 3, \"verify\": {\"rule\": "
        "\"match\"}",
        "\"draft\": {\"kind\": \"best_of\", \"of\": \"ngram|suffix\"}, \"verify\": {\"rule\": \"rejection\"}",
        "\"draft\": {\"kind\": \"model\", \"model\": \"draft.gguf\", \"length\": 6, \"policy\": \"adaedl\", \"threshold\": 0, "
        "\"aim\": 0.1},"
        "\"sampling\": {\"temperature\": 0.9}, \"verify\": {\"rule\": \"rejection\"}",
    };
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        char always[1000];
        snprintf(always, sizeof always, "%s, \"second_pass\": \"always\"", ways[i]);
        json_t *a = run("auto", ways[i]), *b = run("always", always);
        cr_assert_eq(whole(cell(b, 0), "failed"), 0, "%s: %s", ways[i],
                     json_string_value(json_object_get(cell(b, 0), "first_failure")));
        cr_assert(json_is_number(json_object_get(cell(b, 0), "alpha")), "%s", ways[i]);
        cr_assert_null(json_object_get(a, "second_pass_seconds"));
        cr_assert_gt(json_number_value(json_object_get(b, "second_pass_seconds")), 0);
        same_requests(ways[i]);
        if (strstr(ways[i], "probs")) same_traces();
        json_decref(a);
        json_decref(b);
        teardown();
        setup();
    }
}

/* Lengths that are planned by measured costs are repeated as they were logged, also those of drafters inside others; without
 * the log the request fails, with a name. */
Test(second_pass, repeats_logged_lengths)
{
    static const char *const ways[] = {
        "\"kind\": \"clocked\"",
        "\"kind\": \"best_of\", \"of\": \"ngram:k=6;policy=cost|suffix\"",
        "\"kind\": \"ngram\", \"k\": 6, \"policy\": \"cost\"",
        "\"kind\": \"model\", \"model\": \"draft.gguf\", \"length\": 6, \"policy\": \"cost\"",
        "\"kind\": \"cascade\", \"model\": \"draft.gguf\", \"inner\": \"ngram:policy=cost\"",
        "\"kind\": \"auto\", \"of\": \"model:model=draft.gguf;length=6|ngram\", \"costs\": \"measured\", \"live\": \"yes\"",
        "\"kind\": \"clocked\", \"log\": false",
        "\"log\": false, \"once\": true, \"kind\": \"clocked\"", /* same text and counts, but plans are left over */
        "\"log\": false, \"kind\": \"clocked\"", /* under match the text is plain decoding's: only counts differ */
    };
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        char more[600];
        snprintf(more, sizeof more,
                 "\"draft\": {%s}, \"verify\": {\"rule\": \"%s\"}, \"second_pass\": \"always\","
                 "\"sampling\": {\"temperature\": 0.8}, \"batch\": %d",
                 ways[i], i == sizeof ways / sizeof *ways - 1 ? "match" : "rejection", i % 2 ? 2 : 1);
        json_t *sum = run("out", more);
        const char *why = json_string_value(json_object_get(cell(sum, 0), "first_failure"));
        const bool logged = !strstr(ways[i], "false");
        const long ok = whole(cell(sum, 0), "requests"), failed = whole(cell(sum, 0), "failed");
        cr_assert_eq(ok + failed, 12);
        cr_assert(logged ? failed == 0 : failed > 0, "%s: %s", ways[i], why ? why : "no failure");
        cr_assert(strncmp(ways[i], "\"log\"", 5) ||
                      strstr(why, strstr(ways[i], "once") ? " lengths that were planned" : " drafted and "),
                  "%s", why);
        if (!logged) {
            cr_assert(why && strstr(why, "the second pass, which measures alpha and traces, differs from the timed one: "),
                      "%s", why);
            char *text = file_read("out/requests.jsonl", NULL);
            cr_assert(strstr(text, "\"error\":\"EREPLAY: "));
            free(text);
        }
        json_decref(sum);
        teardown();
        setup();
    }
}

/* With alpha off nothing measures, and no second pass is made unless a trace requires one. */
Test(second_pass, alpha_can_be_off)
{
    static const char config[] = "\"draft\": {\"kind\": \"model\", \"model\": \"draft.gguf\", \"length\": 4}, \"alpha\": false";
    for (int i = 0; i < 3; i++) {
        char more[300];
        snprintf(more, sizeof more, "%s%s%s", config, i ? ", \"second_pass\": \"always\"" : "",
                 i == 2 ? ", \"trace\": \"probs\"" : "");
        json_t *sum = run("out", more);
        const json_t *c = cell(sum, 0), *acceptance = json_object_get(c, "acceptance");
        cr_assert_eq(whole(c, "failed"), 0);
        cr_assert(json_is_null(json_object_get(c, "alpha")) && json_is_null(json_object_get(c, "alpha_star")));
        cr_assert(json_is_null(json_object_get(acceptance, "independent_acceptance")));
        cr_assert_gt(whole(c, "drafted"), 0);
        cr_assert_eq(json_object_get(sum, "second_pass_seconds") != NULL, i == 2);
        json_decref(sum);
        teardown();
        setup();
    }
}
