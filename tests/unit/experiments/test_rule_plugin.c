/* SPDX-License-Identifier: MIT
 * A rule from a shared object where rules are named: in a config, and as --rule of generate and replay. The object is that of
 * examples/plugin-verifier, which on chains decides as `rejection` does. */
#include <math.h>

#include "core/base/mem.h"
#include "lab/replay.h"
#include "experiments/config/schema.h"
#include "run_scene.h"

static scene s;
static void setup(void)
{
    scene_make(&s);
    put("prompts.jsonl", "{\"prompt\": \"The cat sat\"}\n{\"prompt\": \"abababab\"}\n");
}
static void teardown(void) { scene_remove(&s); }
TestSuite(rule_plugin, .init = setup, .fini = teardown, .timeout = 120);

#define CONFIG(verify)                                                                                                         \
    "{\"name\": \"t\", \"target\": {\"model\": \"target.gguf\", \"threads\": 1}, \"prompts\": {\"file\": \"prompts.jsonl\"}, " \
    "\"max_tokens\": 24, \"trace\": \"probs\", \"sampling\": {\"temperature\": 1}, "                                           \
    "\"draft\": {\"kind\": \"model\", \"model\": \"draft.gguf\", \"length\": 3}, \"verify\": {" verify "}}"
#define BY_PATH "\"rule\": \"plugin\", \"path\": \"" RULE "\""

static json_t *run(const char *text, const char *out)
{
    wg_config *c = config_of(text);
    json_t *summary = scene_run(c, &(wg_run_options){ .out = out }, NULL);
    wg_config_close(c);
    return summary;
}

static const char *word(const json_t *summary, const char *key)
{
    const char *text = json_string_value(json_object_get(json_array_get(json_object_get(summary, "cells"), 0), key));
    return text ? text : "";
}

Test(rule_plugin, runs_from_a_config)
{
    json_t *own = run(CONFIG("\"rule\": \"rejection\""), "own"), *loaded = run(CONFIG(BY_PATH), "loaded");
    cr_assert_str_eq(word(loaded, "rule"), "first_child");
    cr_assert_str_eq(word(loaded, "output_sha256"), word(own, "output_sha256"));
    cr_assert_str_eq(word(loaded, "lossless_if"), "the plug-in rule is exact");
    cr_assert_str_eq(word(own, "lossless_if"), "");
    json_decref(own);
    json_decref(loaded);
    json_t *config = json_load_file("loaded/config.json", 0, NULL), *verify = json_object_get(config, "verify");
    cr_assert_str_eq(json_string_value(json_object_get(verify, "rule")), "plugin");
    cr_assert_str_eq(json_string_value(json_object_get(verify, "path")), RULE);
    json_decref(config);
}

/* A trace of the rule opens with it, and replays under it and under another. */
Test(rule_plugin, replays)
{
    json_decref(run(CONFIG(BY_PATH), "loaded"));
    wg_trace *t;
    wg_replay *r;
    wg_rule_choice again, other;
    wg_error err = { 0 };
    cr_assert_eq(wg_trace_open(&t, "loaded/trace.wgt", &err), WG_OK, "%s", err.text);
    cr_assert_eq(wg_replay_open(&r, t, 0, NAN, &err), WG_OK, "%s", err.text);
    cr_assert_str_eq(r->rule.class->name, "first_child");
    cr_assert_eq(wg_choose_rule("plugin:path=" RULE, &again, &err), WG_OK, "%s", err.text);
    cr_assert_eq(wg_choose_rule("rejection", &other, &err), WG_OK);
    cr_assert(again.object && again.class->lossless && !other.object);
    wg_rule_choice_close(&again);
    wg_rule_choice_close(&other);
    wg_replay_close(r);
    wg_trace_close(t);
}

/* A rule whose answers are no paths: an error that names it, of the requests of a run and of a replay. */
Test(rule_plugin, answers_that_are_no_paths)
{
    wg_error err = { 0 };
    json_decref(run(CONFIG("\"rule\": \"plugin\", \"path\": \"" BAD_RULE "\""), "bad")); /* all of its requests fail */
    char *requests = file_read("bad/requests.jsonl", NULL);
    cr_assert(strstr(requests, "rule empty, request 0: a path of 0 nodes in a tree of "), "%s", requests);
    free(requests);

    json_decref(run(CONFIG(BY_PATH), "loaded"));
    wg_trace *t;
    wg_replay *replay;
    wg_rule_choice bad;
    wg_path answer;
    cr_assert_eq(wg_trace_open(&t, "loaded/trace.wgt", &err), WG_OK, "%s", err.text);
    cr_assert_eq(wg_replay_open(&replay, t, 0, NAN, &err), WG_OK, "%s", err.text);
    cr_assert_eq(wg_choose_rule("plugin:path=" BAD_RULE, &bad, &err), WG_OK, "%s", err.text);
    cr_assert_eq(wg_replay_load(replay, 0, &err), WG_OK, "%s", err.text);
    cr_assert_eq(wg_replay_rule(replay, bad.class, bad.options, 0, &answer, &err), WG_EINVAL);
    cr_assert(strstr(err.text, "trace.wgt: rule empty: a path of 0 nodes in a tree of "), "%s", err.text);
    wg_rule_choice_close(&bad);
    wg_replay_close(replay);
    wg_trace_close(t);
}

Test(rule_plugin, is_in_the_schema)
{
    json_t *schema = wg_config_schema(&wg_program_plugins);
    const json_t *rule = json_object_get(json_object_get(schema, "$defs"), "verify.plugin");
    cr_assert_not_null(json_object_get(json_object_get(rule, "properties"), "path"));
    json_decref(schema);
}

Test(rule_plugin, refusals)
{
    static const struct {
        const char *spec, *says;
    } bad[] = {
        { "plugin", "rule plugin: no shared object is named; set its option path=FILE" },
        { "plugin:path=", "option 'path' has no value; give one, or leave the option out" },
        { "plugin:path=/nowhere.so", "rule plug-in /nowhere.so: no such file, or it cannot be read" },
        { "plugin:path=" RULE ",options=k=3", "rule first_child has no options, but here are some: k=3" },
        { "plugin:file=x", "file" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        wg_rule_choice c;
        wg_error err = { 0 };
        cr_assert_neq(wg_choose_rule(bad[i].spec, &c, &err), WG_OK, "%s", bad[i].spec);
        cr_assert(strstr(err.text, bad[i].says), "%s: %s", bad[i].spec, err.text);
        cr_assert(!c.options && !c.object);
    }
    wg_config *c = NULL;
    wg_error err = { 0 };
    put("config.json", CONFIG("\"rule\": \"plugin\", \"path\": \"prompts.jsonl\""));
    cr_assert_eq(wg_config_open(&c, "config.json", NULL, 0, &wg_program_plugins, &err), WG_ECONFIG);
    cr_assert(strstr(err.text, "verify: rule plug-in prompts.jsonl: not a shared object (no ELF header)"), "%s", err.text);
}
