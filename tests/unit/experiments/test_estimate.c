/* SPDX-License-Identifier: MIT
 * Estimates before a run: memory from shapes, time from a probe; and the schema of a config. */
#include "core/base/json.h"
#include "core/base/mem.h"
#include "experiments/run/estimate.h"
#include "experiments/run/runner.h"
#include "experiments/run/trace_size.h"
#include "experiments/config/schema.h"
#include "scene.h"

static scene s;
static void setup(void) { scene_make(&s); }
static void teardown(void) { scene_remove(&s); }
TestSuite(estimate, .init = setup, .fini = teardown, .timeout = 60);

#define CONFIG(more)                                                                                                           \
    "{\"name\": \"t\", \"target\": {\"model\": \"target.gguf\", \"threads\": 1}, \"prompts\": {\"file\": \"prompts.jsonl\"}, " \
    "\"draft\": {\"kind\": \"model\", \"model\": \"draft.gguf\", \"length\": 3}, \"max_tokens\": 24" more "}"

static double size_of(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 ? (double)st.st_size : -1;
}

/* The target: 2 layers, 1 kv head of 16; the draft: 1 layer. The longest prompt has 11 bytes, so 11 + 1 + 24 places of f16. */
Test(estimate, memory_by_hand)
{
    wg_config *c = config_of(CONFIG(", \"batch\": 2, \"sweep\": {\"draft.length\": [2, 3]}"));
    wg_memory m;
    wg_error err;
    cr_assert_eq(wg_estimate_memory(&m, c, &err), WG_OK, "%s", err.text);
    const double place = 2 * 1 * 16 * 2;
    cr_assert_eq(m.target, size_of("target.gguf"));
    cr_assert_eq(m.draft, 3 * size_of("draft.gguf"));
    cr_assert_eq(m.cache,
                 36 * 2 * place * (4 * 2 + 3 * 1)); /* baseline, two cells, teacher forcing of both; drafts but of the first */
    cr_assert_gt(m.disk, 9 * 24 * 10);
    wg_config_close(c);
    c = config_of(CONFIG(", \"batch\": 2, \"alpha\": false, \"sweep\": {\"draft.length\": [2, 3]}"));
    cr_assert_eq(wg_estimate_memory(&m, c, &err), WG_OK, "%s", err.text);
    cr_assert_eq(m.draft, 2 * size_of("draft.gguf"));
    cr_assert_eq(m.cache, 36 * 2 * place * (3 * 2 + 2 * 1));
    wg_config_close(c);
}

/* Of drafts without rows of q. */
Test(estimate, draft_tokens_of_a_traced_round)
{
    static const struct {
        const char *draft;
        int tokens;
    } cases[] = {
        { "\"none\"", 0 },
        { "\"ngram\", \"k\": 5", 5 },
        { "\"recycle\", \"nodes\": 7, \"k\": 2", 7 },
        { "\"model\", \"model\": \"draft.gguf\", \"length\": 3, \"grow\": \"best_first\", \"budget\": 6", 6 },
        { "\"lookahead\"", WG_TRACE_NODES },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[600];
        snprintf(text, sizeof text,
                 "{\"name\": \"t\", \"target\": {\"model\": \"target.gguf\"}, \"prompts\": {\"file\": \"prompts.jsonl\"}, "
                 "\"draft\": {\"kind\": %s}, \"verify\": {\"rule\": \"match\"}, \"trace\": \"probs\"}",
                 cases[i].draft);
        wg_config *c = config_of(text);
        const double row = wg_trace_row_most(&c->cell[0], 512, true), round = wg_trace_round_most(&c->cell[0], 512);
        cr_assert_eq(round, (1 + cases[i].tokens) * row, "case %zu: %g of %g", i, round, row);
        wg_config_close(c);
    }
}

/* Bytes of rows by hand, for a vocabulary of 262,144 tokens; and what a run with such settings wrote stays below the bound. */
Test(estimate, rows_of_a_trace)
{
    enum { V = 262144, CHAIN = 3, HEAD = 24 };
    static const struct {
        const char *more;
        double p, q;
    } cases[] = {
        { "\"trace_rows\": \"exact\", \"sampling\": {\"temperature\": 0.7}", 4.0 * V, 8.0 * V },
        { "\"trace_rows\": \"logits\", \"sampling\": {\"temperature\": 0.7}", 4.0 * V, 8.0 * V },
        { "\"trace_rows\": \"f16\", \"sampling\": {\"temperature\": 0.7}", 2.0 * V, 2.0 * V },
        { "\"trace_top\": 87382, \"sampling\": {\"temperature\": 0.7}", 4.0 * V, 8.0 * V }, /* not cut */
        { "\"sampling\": {\"temperature\": 0.7}", 24 * 73 + 12, 24 * 73 + 12 },
        { "\"sampling\": {\"temperature\": 0.7, \"top_p\": 0.9}", 12 * 1360, 12 * 1360 },
        { "\"sampling\": {\"temperature\": 0.7, \"top_k\": 50}", 600, 600 },
        { "\"sampling\": {\"temperature\": 0}", 0, 0 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[600];
        snprintf(text, sizeof text, CONFIG(", \"trace\": \"probs\", %s"), cases[i].more);
        wg_config *c = config_of(text);
        const wg_cell *cell = &c->cell[0];
        const double q = cell->setup.sampling.temperature > 0 ? HEAD + cases[i].q : 0;
        cr_assert_eq(wg_trace_row_most(cell, V, true), HEAD + cases[i].p, "case %zu: %g", i, wg_trace_row_most(cell, V, true));
        cr_assert_eq(wg_trace_round_most(cell, V), (CHAIN + 1) * (HEAD + cases[i].p) + CHAIN * q, "case %zu", i);
        if (i > 3) cr_assert_leq(wg_trace_row_most(cell, V, true), 16384);
        wg_memory m;
        wg_run run;
        char *path = NULL, trace[300];
        wg_error err;
        const wg_run_options o = { .out = "out" };
        cr_assert_eq(wg_estimate_memory(&m, c, &err), WG_OK, "%s", err.text);
        cr_assert_eq(wg_run_config(c, &o, &run, &path, &err), WG_OK, "%s", err.text);
        snprintf(trace, sizeof trace, "%s/trace.wgt", path);
        cr_assert(size_of(trace) > 0 && size_of(trace) <= m.trace + 8192, "case %zu: %g, at most %g", i, size_of(trace),
                  m.trace);
        wg_free(path);
        wg_run_free(&run);
        wg_config_close(c);
        cr_assert_eq(system("rm -r out"), 0);
    }
}

Test(estimate, a_probe_leaves_nothing_behind)
{
    wg_config *c = config_of(CONFIG(", \"repeats\": 20"));
    double few = 0, many = 0;
    wg_error err;
    const int before = dir_count(".");
    cr_assert_eq(wg_estimate_time(&few, c, "config.json", NULL, 0, &err), WG_OK, "%s", err.text);
    wg_config_close(c);
    c = config_of(CONFIG(", \"repeats\": 10000"));
    cr_assert_eq(wg_estimate_time(&many, c, "config.json", NULL, 0, &err), WG_OK, "%s", err.text);
    wg_config_close(c);
    cr_assert_gt(few, 0);
    cr_assert_gt(many, 20 * few, "%g s of 20 repeats, %g s of 10000", few, many);
    cr_assert_eq(dir_count("."), before);
    c = config_of(CONFIG(", \"sweep\": {\"max_tokens\": [8, 16]}"));
    cr_assert_eq(wg_estimate_time(&few, c, "config.json", NULL, 0, &err), WG_EUNSUPPORTED);
    cr_assert(strstr(err.text, "the sweep sets what a probe makes smaller"), "%s", err.text);
    wg_config_close(c);
}

/* What a run refuses is refused when all is opened, with the words of the run, and each mistake once. */
Test(estimate, what_a_run_refuses_is_refused_before)
{
    wg_synth_shape other = scene_draft;
    static const struct {
        const char *drafts, *says;
    } cases[] = {
        { "{\"kind\": \"retrieval\", \"datastore\": \"none\"}", "cells 0-1: none: cannot open the datastore" },
        { "{\"kind\": \"none\"}, {\"kind\": \"plugin\", \"path\": \"none.so\"}",
          "cells 2-3: drafter plugin: path=none.so: no such file" },
        { "{\"kind\": \"ngram\", \"policy\": \"confidence\"}", "cells 0-1: drafter ngram: policy confidence looks at q" },
        { "{\"kind\": \"model\", \"model\": \"other.gguf\"}", "cells 0-1: " },
        { "{\"kind\": \"retrieval\", \"datastore\": \"a\"}, {\"kind\": \"retrieval\", \"datastore\": \"b\"}",
          "cells 0-1: a: cannot open the datastore: No such file or directory; make one with: wager datastore build --model "
          "MODEL "
          "--out FILE TEXT...\ncells 2-3: b: cannot" },
    };
    wg_error err, again;
    other.vocab = 512;
    cr_assert_eq(wg_synth_write(&other, WG_F32, 3, "other.gguf", &err), WG_OK, "%s", err.text);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[1200], *path;
        wg_run run;
        const wg_run_options o = { .out = "never" };
        snprintf(text, sizeof text, CONFIG(", \"sweep\": {\"draft\": [%s], \"verify.rule\": [\"match\", \"rejection\"]}"),
                 cases[i].drafts);
        wg_config *c = config_of(text);
        const wg_status refused = wg_run_open(c, stderr, "", NULL, &err);
        cr_assert_neq(refused, WG_OK, "%s", text);
        cr_expect(!strncmp(err.text, cases[i].says, strlen(cases[i].says)), "%s\ninstead of %s", err.text, cases[i].says);
        cr_expect_eq(wg_run_config(c, &o, &run, &path, &again), refused);
        cr_expect_str_eq(again.text, err.text);
        cr_expect_eq(size_of("never"), -1);
        wg_run_free(&run);
        wg_free(path);
        wg_config_close(c);
    }
}

/* Settings with another effect than they seem to have; two prompts have 12 tokens, the draft model's context 24. */
Test(estimate, warnings)
{
    wg_synth_shape brief = scene_draft;
    static const struct {
        const char *more, *says;
    } cases[] = {
        { "", "" },
        { ", \"sampling\": {\"temperature\": 1, \"top_k\": 4}", "" },
        { ", \"sampling\": {\"top_k\": 4, \"min_p\": 0.1}, \"sweep\": {\"sampling.temperature\": [0, 1]}",
          "w: cell 0: top_k, min_p: no effect at temperature 0, where the most probable token is taken\n" },
        { ", \"repeats\": 2, \"sweep\": {\"draft\": [{\"kind\": \"ngram\"}, {\"kind\": \"recycle\"}, {\"kind\": \"suffix\"}, "
          "{\"kind\": \"suffix\", \"memory_mb\": 0}]}",
          "w: cell 1: repeats 2: recycle remembers the answers of earlier repeats, so its drafts are better than on new "
          "prompts; "
          "use \"repeats\": 1\n"
          "w: cell 2: repeats 2: suffix remembers the answers of earlier repeats, so its drafts are better than on new "
          "prompts; "
          "use \"repeats\": 1, or memory_mb 0\n" },
        { ", \"sampling\": {\"top_p\": 0.9}",
          "w: cell 0: top_p: no effect at temperature 0, where the most probable token is taken\n" },
        { ", \"sweep\": {\"draft\": [{\"kind\": \"none\"}], \"seed\": [1, 2]}",
          "w: the sweep has no draft: every cell is plain decoding, as its baseline (\"draft\" is missing)\n" },
        { ", \"sweep\": {\"max_tokens\": [24, 53, 64], \"verify.rule\": [\"match\", \"rejection\"]}",
          "w: cells 2-3: max_tokens 53 is beyond the context: 2 of 3 texts may end at it before (prompt and answers; context "
          "64)\n"
          "w: cells 4-5: max_tokens 64 is beyond the context: 3 of 3 texts may end at it before (prompt and answers; context "
          "64)\n" },
        { ", \"sweep\": {\"draft\": [{\"kind\": \"ngram\"}, {\"kind\": \"model\", \"model\": \"brief.gguf\"}]}",
          "w: cell 1: the draft model's context is shorter: 3 of 3 texts may be longer than its 24 tokens; it then reads "
          "the last 13 to 24 of them\n" },
        { ", \"sweep\": {\"draft\": [{\"kind\": \"ngram\"}, {\"kind\": \"cascade\", \"model\": \"brief.gguf\"}]}",
          "w: cell 1: the draft model's context is shorter: 3 of 3 texts may be longer than its 24 tokens, and later rounds "
          "have no draft\n" },
    };
    wg_error err;
    brief.context = 24;
    cr_assert_eq(wg_synth_write(&brief, WG_F32, 3, "brief.gguf", &err), WG_OK, "%s", err.text);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[1200], *says = NULL;
        size_t n;
        FILE *f = open_memstream(&says, &n);
        snprintf(text, sizeof text, CONFIG("%s"), cases[i].more);
        wg_config *c = config_of(text);
        cr_assert_eq(wg_run_open(c, f, "w: ", NULL, &err), WG_OK, "%s", err.text);
        fclose(f);
        cr_expect_str_eq(says, cases[i].says, "%s:\n%s", cases[i].more, says);
        free(says);
        wg_config_close(c);
    }
}

/* Every option of every table is in the schema, with its range, and may be swept. */
Test(estimate, schema_has_every_option)
{
    json_t *schema = wg_config_schema(&wg_program_plugins), *defs = json_object_get(schema, "$defs"),
           *properties = json_object_get(schema, "properties"),
           *axes = json_object_get(json_object_get(defs, "grid"), "properties");
    char name[200];
    for (int i = 0; wg_program_plugins.drafters[i]; i++) {
        const wg_drafter_class *d = wg_program_plugins.drafters[i];
        snprintf(name, sizeof name, "draft.%s", d->name);
        const json_t *options = json_object_get(json_object_get(defs, name), "properties");
        cr_assert(json_is_object(options), "%s", name);
        for (const wg_option *o = d->options; o && o->name; o++) {
            const json_t *v = json_object_get(options, o->name);
            cr_assert(v, "%s.%s", d->name, o->name);
            if (o->type == WG_OPT_INT && o->max > 0) cr_assert_eq(json_number_value(json_object_get(v, "maximum")), o->max);
            snprintf(name, sizeof name, "draft.%s", o->name);
            cr_assert(json_object_get(axes, name), "%s cannot be swept", name);
        }
    }
    for (int i = 0; wg_program_plugins.verifiers[i]; i++) {
        snprintf(name, sizeof name, "verify.%s", wg_program_plugins.verifiers[i]->name);
        cr_assert(json_is_object(json_object_get(defs, name)), "%s", name);
    }
    for (const wg_setup_section *section = wg_setup_sections; section->name; section++)
        if (*section->name)
            cr_assert(json_object_get(properties, section->name) && json_object_get(axes, section->name), "%s", section->name);
    cr_assert_null(json_object_get(axes, "repeats"), "of all cells at once");
    /* A number with words for some of its values is either. */
    const json_t *prompts = json_array_get(json_object_get(json_object_get(properties, "prompts"), "anyOf"), 0);
    const json_t *turns = json_object_get(json_object_get(prompts, "properties"), "turns");
    json_t *want = json_pack("[{s:s}, {s:[s,s]}]", "type", "integer", "enum", "all", "first");
    cr_assert(json_equal(json_object_get(turns, "anyOf"), want) && !json_object_get(turns, "type"));
    cr_assert_eq(json_number_value(json_object_get(turns, "maximum")), WG_TURNS_MAX);
    json_decref(want);
    json_decref(schema);
}

/* The cache holds pages of all layers: one layer that reads all tokens keeps all pages. */
Test(estimate, tokens_that_a_cache_holds)
{
    wg_arch *a = wg_calloc(1, sizeof *a);
    a->layers = 3;
    cr_expect_eq(wg_target_held(a, 5000), 5000);
    a->window = 100;
    a->windowed[0] = 7;
    const int most = wg_kv_window_slots(100, WG_ENGINE_PREFILL_ROWS, WG_ENGINE_PAGE_SLOTS);
    cr_expect(most >= 100 + WG_KV_BACK + WG_ENGINE_PREFILL_ROWS && most < 5000, "%d", most);
    cr_expect_eq(wg_target_held(a, 5000), most);
    cr_expect_eq(wg_target_held(a, most - 1), most - 1);
    a->windowed[0] = 5;
    cr_expect_eq(wg_target_held(a, 5000), 5000);
    a->windowed[0] = 7;
    a->window_unknown = true;
    cr_expect_eq(wg_target_held(a, 5000), 5000);
    wg_free(a);
}
