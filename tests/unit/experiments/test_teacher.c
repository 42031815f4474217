/* SPDX-License-Identifier: MIT
 * analytic_alpha is a number of the pair of models: the same under every rule, length, policy, tree and batch, where alpha, the
 * mean over the nodes reached, is not; and what wager replay --exact computes on the same texts. */
#include <math.h>

#include "core/base/mem.h"
#include "experiments/run/exact_run.h"
#include "experiments/run/summary.h"
#include "experiments/run/teacher_pass.h"
#include "run_scene.h"

static scene s;
static void setup(void)
{
    scene_make(&s);
    put("prompts.jsonl", SCENE_TURNS);
}
static void teardown(void) { scene_remove(&s); }
TestSuite(teacher, .init = setup, .fini = teardown, .timeout = 120);

/* The summary's cells of a new run. */
static json_t *cells_of(const char *more)
{
    static int runs;
    char text[2000], out[40];
    snprintf(text, sizeof text,
             "{\"name\": \"t\", \"target\": {\"model\": \"target.gguf\", \"threads\": 1}, \"prompts\": {\"file\": "
             "\"prompts.jsonl\", \"turns\": \"all\"}, \"sampling\": {\"temperature\": 1}%s, %s}",
             strstr(more, "max_tokens") ? "" : ", \"max_tokens\": 16", more);
    snprintf(out, sizeof out, "out%d", runs++);
    wg_config *c = config_of(text);
    json_t *summary = scene_run(c, &(wg_run_options){ .out = out }, NULL),
           *cells = json_incref(json_object_get(summary, "cells"));
    wg_config_close(c);
    json_decref(summary);
    cr_assert_not_null(cells);
    return cells;
}

static double number(const json_t *o, const char *key)
{
    cr_assert(json_is_number(json_object_get(o, key)), "%s", key);
    return json_number_value(json_object_get(o, key));
}

static double analytic(const json_t *cells, size_t i) { return number(json_array_get(cells, i), "analytic_alpha"); }

#define MODEL "\"draft\": {\"kind\": \"model\", \"model\": \"draft.gguf\", \"length\": 3"

Test(teacher, depends_on_the_pair_alone)
{
    static const char *const others[] = {
        MODEL ", \"policy\": \"entropy\", \"spread\": 0.5}",
        MODEL ", \"policy\": \"confidence\", \"threshold\": 0.02}",
        MODEL ", \"p_min\": 0.02}",
        MODEL ", \"tree\": \"2-1-1\"}",
        MODEL ", \"siblings\": \"without_replacement\", \"tree\": \"3-1\"}, \"verify\": {\"rule\": \"without_replacement\"}",
        MODEL "}, \"verify\": {\"rule\": \"match\"}, \"batch\": 2",
        MODEL "}, \"second_pass\": \"always\", \"repeats\": 1",
    };
    json_t *first = cells_of(MODEL "}"),
           *shared = cells_of("\"sweep\": {\"draft\": [{\"kind\": \"model\", \"model\": "
                              "\"draft.gguf\", \"length\": 1}, {\"kind\": \"model\", \"model\": "
                              "\"draft.gguf\", \"length\": 5, \"policy\": \"entropy\"}, {\"kind\": "
                              "\"model\", \"model\": \"target.gguf\"}]}");
    const double alpha = analytic(first, 0), reached = number(json_array_get(first, 0), "alpha");
    bool apart = false;
    cr_assert(alpha > 0.01 && alpha < 0.99, "%g", alpha);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        json_t *cells = cells_of(others[i]);
        cr_expect_float_eq(analytic(cells, 0), alpha, 1e-12, "%s: %.15g, not %.15g", others[i], analytic(cells, 0), alpha);
        apart = apart || fabs(wg_json_measured(json_array_get(cells, 0), "alpha") - reached) > 0.003;
        json_decref(cells);
    }
    cr_assert(apart, "the mean over the nodes reached depends on the policy");
    for (size_t i = 0; i < 2; i++) cr_assert_float_eq(analytic(shared, i), alpha, 1e-12, "two cells of one pair");
    cr_assert_float_eq(analytic(shared, 2), 1, 1e-12, "another pair of the same group: the target itself");
    json_t *hot = cells_of(MODEL ", \"temperature\": 0.3}");
    cr_assert_gt(fabs(analytic(hot, 0) - alpha), 0.01, "q of another temperature");
    json_t *cut = cells_of("\"sweep\": {\"sampling.top_k\": [5], \"draft.truncate\": [true, false]}, " MODEL "}");
    cr_assert_gt(analytic(cut, 0), analytic(cut, 1) + 0.01, "%g of drafts inside top-k, %g of others", analytic(cut, 0),
                 analytic(cut, 1));
    json_decref(cut);
    json_decref(hot);
    json_decref(shared);
    json_decref(first);
}

Test(teacher, is_alpha_of_replay_exact)
{
    wg_exact_shape shape;
    wg_exact_run x;
    wg_error err;
    json_t *cells = cells_of("\"repeats\": 1, " MODEL ", \"policy\": \"entropy\"}");
    wg_config *c =
        config_of("{\"name\": \"t\", \"target\": {\"model\": \"target.gguf\", \"threads\": 1}, \"prompts\": {\"file\": "
                  "\"prompts.jsonl\", \"turns\": \"all\"}, \"max_tokens\": 16, \"repeats\": 1, \"sampling\": "
                  "{\"temperature\": 1}, " MODEL "}}");
    cr_assert_eq(wg_exact_shape_read(&shape, "2", false, &err), WG_OK);
    cr_assert_eq(wg_exact_cell(c, 0, &shape, 1, NULL, 0, &x, &err), WG_OK, "%s", err.text);
    cr_assert_float_eq(analytic(cells, 0), x.alpha, 1e-12);
    wg_exact_run_free(&x);
    wg_config_close(c);
    json_decref(cells);
}

/* Where there is none, it is null and says why. */
Test(teacher, is_null_with_a_reason)
{
    static const struct {
        const char *more, *why;
    } cases[] = {
        { MODEL "}, \"alpha\": false", "\"alpha\" is false" },
        { "\"draft\": {\"kind\": \"ngram\"}", "the drafter is not one model with a row of q at every position" },
        { MODEL "}, \"max_tokens\": 1", "no position of the texts of the first repeat was drafted" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *cells = cells_of(cases[i].more);
        const json_t *a = json_array_get(cells, 0);
        cr_assert(json_is_null(json_object_get(a, "analytic_alpha")));
        cr_assert_str_eq(wg_json_word(a, "analytic_alpha_unknown"), cases[i].why);
        json_decref(cells);
    }
}

/* The engine of the pass is opened when it is needed; the failure says what it was for. */
Test(teacher, cannot_be_opened)
{
    wg_error err;
    wg_target *t;
    const wg_target_options o = { .threads = 1, .need_tokenizer = true };
    wg_config *c =
        config_of("{\"name\": \"t\", \"target\": {\"model\": \"target.gguf\", \"threads\": 1}, \"prompts\": {\"file\": "
                  "\"prompts.jsonl\"}, \"sampling\": {\"temperature\": 1}, " MODEL "}}");
    cr_assert_eq(wg_target_open(&t, "target.gguf", &o, &err), WG_OK, "%s", err.text);
    wg_group g = { .like = &c->cell[0], .target = t, .dataset = c->dataset[0], .batch = 1, .room = 4 };
    wg_arm a = { .cell = 0 }, b = { .cell = 0 };
    const wg_room room = { .seq = NULL };
    const wg_batch_plan plan = { .n = 1, .turns = 1, .max_new = 4 };
    const wg_engine_parts parts = wg_target_engine_parts(t);
    const wg_engine_options engine = { .max_batch = 1, .sampling = c->cell[0].setup.sampling };
    cr_assert_eq(wg_teacher_join(&g, &a, &c->cell[0], &err), WG_OK, "%s", err.text);
    cr_assert_eq(wg_teacher_join(&g, &b, &c->cell[0], &err), WG_OK, "%s", err.text);
    cr_assert(g.teachers == 1 && a.teacher == b.teacher, "one pair");
    remove("draft.gguf");
    cr_assert_neq(wg_teacher_run(&room, &g, &a, &plan, &parts, &engine, &err), WG_OK);
    cr_assert(strstr(err.text, "the pass that measures analytic_alpha (\"alpha\": false goes without)"), "%s", err.text);
    wg_teacher_close(&g);
    wg_target_close(t);
    wg_config_close(c);
}
