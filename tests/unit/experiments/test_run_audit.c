/* SPDX-License-Identifier: MIT
 * The audit in whole runs: an honest plug-in (examples/plugin-drafter/followers.c) and two that lie about q, what the summary
 * and the table say of them, and that the sums are read back. */
#include <math.h>

#include "experiments/report/table.h"
#include "core/base/mem.h"
#include "run_scene.h"

static scene s;

/* After `a` came `b` thirty times and `c` twice: q of the draft that follows the last `a`. */
static void setup(void)
{
    scene_make(&s);
    put("prompts.jsonl", "{\"prompt\": \"abababababababacababababababababababababacabababababa\"}\n");
}
static void teardown(void) { scene_remove(&s); }
TestSuite(run_audit, .init = setup, .fini = teardown, .timeout = 240);

#define PLUGIN(name) "plugin\", \"path\": \"" WG_TEST_PLUGINS "/lib" name ".so"

/* One draft of one token a request. The summary's only cell, owned by *summary; the audit as summed in memory. */
static const json_t *run(const char *draft, const char *rule, const char *more, const char *out, bool resume, wg_audit *audit,
                         json_t **summary)
{
    char text[1200];
    wg_run r;
    snprintf(text, sizeof text,
             "{\"name\": \"t\", \"target\": {\"model\": \"target.gguf\", \"threads\": 1}, \"sampling\": {\"temperature\": 1}, "
             "\"prompts\": {\"file\": \"prompts.jsonl\"}, \"max_tokens\": 2, \"repeats\": 400, \"draft\": {\"kind\": \"%s\"}, "
             "\"verify\": {\"rule\": \"%s\"}%s}",
             draft, rule, more);
    wg_config *c = config_of(text);
    *summary = scene_run(c, &(wg_run_options){ .out = out, .resume = resume }, &r);
    if (audit) *audit = r.result[0].counts.audit;
    wg_run_free(&r);
    wg_config_close(c);
    return json_array_get(json_object_get(*summary, "cells"), 0);
}

static double audit_real(const json_t *cell, const char *key)
{
    return json_number_value(json_object_get(json_object_get(cell, "audit"), key));
}
static const char *word(const json_t *o, const char *key)
{
    const char *text = json_string_value(json_object_get(o, key));
    return text ? text : "";
}
static bool is_lossless(const json_t *cell) { return json_is_true(json_object_get(cell, "lossless")); }

/* What the terminal says holds the words. */
static void table_says(const json_t *summary, const char *words)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    wg_table_print(f, summary, NULL, 0);
    fclose(f);
    cr_assert(strstr(text, words), "%s is not in: %s", words, text);
    free(text);
}

Test(run_audit, an_honest_plugin_is_lossless_if_q_is_true)
{
    json_t *summary;
    wg_audit first, again;
    const json_t *cell = run(PLUGIN("followers"), "rejection", "", "honest", false, &first, &summary);
    cr_assert(is_lossless(cell));
    cr_assert_str_eq(word(cell, "lossless_if"), "q is true");
    cr_assert(audit_real(cell, "draws") >= 400 && audit_real(cell, "steps") >= 400);
    cr_assert(audit_real(cell, "draws_log10_e") < 3 && audit_real(cell, "kept_log10_e") < 3);
    cr_assert(json_is_null(json_object_get(json_object_get(cell, "audit"), "found")));
    table_says(summary, "law if q is true");
    json_decref(summary);
    run(PLUGIN("followers"), "rejection", "", "honest", true, &again, &summary); /* read back, not run */
    cr_assert_eq(memcmp(&first, &again, sizeof first), 0);
    json_decref(summary);
}

Test(run_audit, one_that_publishes_square_roots_is_found)
{
    json_t *summary;
    const json_t *cell = run(PLUGIN("followers_lie_1"), "rejection", "", "roots", false, NULL, &summary);
    cr_assert(!is_lossless(cell) && !*word(cell, "lossless_if"));
    cr_assert(strstr(word(cell, "lossless_withdrawn"), "drafts were not drawn from the declared rows of q (e-value 1e"));
    cr_assert_str_eq(word(json_object_get(cell, "audit"), "found"), word(cell, "lossless_withdrawn"));
    table_says(summary, "law withdrawn");
    table_says(summary, "cell 0, plugin under rejection: NOT lossless: drafts were not drawn");
    json_decref(summary);
}

/* Rules that compare tokens emit what they would emit without a draft: found, and of no effect. */
Test(run_audit, no_lie_harms_a_rule_that_compares)
{
    json_t *summary;
    const json_t *cell = run(PLUGIN("followers_lie_1"), "match", "", "match", false, NULL, &summary);
    cr_assert(is_lossless(cell) && json_is_true(json_object_get(cell, "equals_baseline")));
    cr_assert(!*word(cell, "lossless_if") && !*word(cell, "lossless_withdrawn"));
    cr_assert(*word(json_object_get(cell, "audit"), "found"));
    json_decref(summary);
}

Test(run_audit, no_mass_is_found_at_once)
{
    json_t *summary;
    wg_audit first, again;
    const json_t *cell = run(PLUGIN("followers_lie_2"), "rejection", "", "none", false, &first, &summary);
    cr_assert(json_integer_value(json_object_get(cell, "failed")) == 400 && audit_real(cell, "massless") == 400);
    cr_assert(!is_lossless(cell));
    cr_assert(strstr(word(cell, "lossless_withdrawn"), "a drafted token has no probability in its row of q"));
    json_decref(summary);
    run(PLUGIN("followers_lie_2"), "rejection", "", "none", true, &again, &summary);
    cr_assert_eq(again.massless, first.massless);
    json_decref(summary);
}

/* Of others than plug-ins and processes: when asked. Wherever a plug-in is in a composite: always. */
Test(run_audit, who_is_audited)
{
    static const struct {
        const char *draft, *more;
        bool draws, outside;
    } ways[] = {
        { "model\", \"length\": 2, \"model\": \"draft.gguf", "", false, false },
        { "model\", \"length\": 2, \"model\": \"draft.gguf", ", \"audit\": true", true, false },
        { "model\", \"length\": 2, \"model\": \"draft.gguf", ", \"audit\": true, \"second_pass\": \"always\"", true, false },
        { PLUGIN("followers"), ", \"alpha\": false", false, true },
        { PLUGIN("followers"), ", \"alpha\": false, \"audit\": true", true, true },
        { "hybrid\", \"first\": \"plugin:path=" WG_TEST_PLUGINS "/libfollowers.so\", \"second\": \"ngram", "", true, true },
    };
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        char out[32];
        json_t *summary;
        snprintf(out, sizeof out, "who-%zu", i);
        const json_t *cell = run(ways[i].draft, "rejection", ways[i].more, out, false, NULL, &summary);
        cr_assert_eq(audit_real(cell, "draws") > 0, ways[i].draws, "%zu: %g draws", i, audit_real(cell, "draws"));
        cr_assert_eq(json_is_string(json_object_get(cell, "lossless_if")), ways[i].outside, "%zu", i);
        cr_assert(is_lossless(cell) && json_is_null(json_object_get(json_object_get(cell, "audit"), "found")));
        json_decref(summary);
    }
}
