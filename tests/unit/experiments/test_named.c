/* SPDX-License-Identifier: MIT
 * A comparison of drafters that are named without a length: rows have the names of the config, and nothing in them but times
 * changes from run to run. */
#include "experiments/report/table.h"
#include "run_scene.h"

static scene s;
static void setup(void)
{
    scene_make(&s);
    put("prompts.jsonl", SCENE_TURNS);
}
static void teardown(void) { scene_remove(&s); }
TestSuite(named, .init = setup, .fini = teardown, .timeout = 120);

enum { NAMED = 5 };
static const char *const names[NAMED] = { "model", "suffix", "sam", "ngram", "recycle" };

static json_t *run(const char *config, const char *out)
{
    wg_config *c = config_of(config);
    json_t *summary = scene_run(c, &(wg_run_options){ .out = out }, NULL);
    wg_config_close(c);
    return summary;
}

static json_t *cell(const json_t *summary, size_t i) { return json_array_get(json_object_get(summary, "cells"), i); }
static const char *word(const json_t *v, const char *key) { return json_string_value(json_object_get(v, key)); }

/* The lines of the table on the terminal. */
static char *table_of(const json_t *summary)
{
    char *text = NULL;
    size_t n;
    FILE *f = open_memstream(&text, &n);
    wg_table_print(f, summary, NULL, 0);
    fclose(f);
    return text;
}

Test(named, five_drafters_run_twice)
{
    static const char *const config =
        "{\"name\": \"t\", \"target\": {\"model\": \"target.gguf\", \"threads\": 1}, \"max_tokens\": 24, \"repeats\": 1,"
        "\"prompts\": {\"file\": \"prompts.jsonl\"}, \"verify\": {\"rule\": \"%s\"}, \"sampling\": {\"temperature\": %s},"
        "\"sweep\": {\"draft\": [{\"kind\": \"model\", \"model\": \"draft.gguf\"}, {\"kind\": \"suffix\"}, {\"kind\": \"sam\"},"
        "{\"kind\": \"ngram\"}, {\"kind\": \"recycle\"}]}}";
    static const char *const counted[] = { "tau",    "drafted",         "accepted",     "target_passes",
                                           "tokens", "acceptance_rate", "output_sha256" };
    for (int way = 0; way < 2; way++) {
        char text[1000], out[2][16];
        json_t *sum[2];
        snprintf(text, sizeof text, config, way ? "rejection" : "match", way ? "0.8" : "0");
        for (int k = 0; k < 2; k++) {
            snprintf(out[k], sizeof out[k], "out-%d-%d", way, k);
            sum[k] = run(text, out[k]);
            cr_assert_eq(json_array_size(json_object_get(sum[k], "cells")), NAMED);
        }
        long drafted = 0;
        for (size_t i = 0; i < NAMED; i++) {
            const json_t *a = cell(sum[0], i), *b = cell(sum[1], i);
            cr_assert_str_eq(word(a, "drafter"), names[i]);
            for (size_t k = 0; k < sizeof counted / sizeof *counted; k++) {
                cr_assert_not_null(json_object_get(a, counted[k]), "%s", counted[k]);
                cr_assert(json_equal(json_object_get(a, counted[k]), json_object_get(b, counted[k])), "%s: %s", names[i],
                          counted[k]);
            }
            cr_assert(i != 0 || json_integer_value(json_object_get(a, "drafted")) > 0);
            drafted += json_integer_value(json_object_get(a, "drafted"));
        }
        cr_assert_gt(drafted, 100);
        for (int k = 0; k < 2; k++) json_decref(sum[k]);
    }
}

/* What `auto` chooses among is part of its name in summaries and tables. */
Test(named, auto_says_what_it_runs)
{
    json_t *sum =
        run("{\"name\": \"t\", \"target\": {\"model\": \"target.gguf\", \"threads\": 1}, \"max_tokens\": 8, \"repeats\": 1,"
            "\"prompts\": {\"file\": \"prompts.jsonl\"}, \"verify\": {\"rule\": \"match\"}, \"sweep\": {\"draft\": ["
            "{\"kind\": \"auto\", \"of\": \"model:model=draft.gguf;length=8\", \"costs\": \"1\", \"draft_costs\": \"0\"},"
            "{\"kind\": \"auto\", \"of\": \"ngram|suffix\", \"costs\": \"1\", \"draft_costs\": \"0/0\"}]}}",
            "out");
    cr_assert_str_eq(word(cell(sum, 0), "drafter"), "auto (model)");
    cr_assert_str_eq(word(cell(sum, 1), "drafter"), "auto (ngram, suffix)");
    char *text = table_of(sum);
    cr_assert(strstr(text, "\nauto (model)  ") && strstr(text, "\nauto (ngram, suffix)  "), "%s", text);
    cr_assert(strstr(text, "auto, which chooses drafter and length"), "%s", text);
    cr_assert_null(strstr(text, "no draft at all"), "%s", text);
    free(text);
    json_decref(sum);
    sum = run("{\"name\": \"t\", \"target\": {\"model\": \"target.gguf\", \"threads\": 1}, \"max_tokens\": 8, \"repeats\": 1,"
              "\"prompts\": {\"file\": \"prompts.jsonl\"}, \"verify\": {\"rule\": \"match\"}, \"draft\": {\"kind\": \"auto\", "
              "\"of\": \"model:model=draft.gguf;length=8\", \"costs\": \"1/9\", \"draft_costs\": \"1\"}}",
              "never");
    text = table_of(sum);
    cr_assert(strstr(text, "auto (model), rule match, temperature 0: no draft at all, since none was expected to pay"), "%s",
              text);
    free(text);
    json_decref(sum);
}
