/* SPDX-License-Identifier: MIT
 * Measured students of distillations and runs; shapes of `wager plan --student`. */
#include <math.h>
#include <sys/stat.h>

#include "experiments/analysis/student_points.h"
#include "experiments/cli/plan_student.h"
#include "run_scene.h"

static scene s;
static void setup(void) { scene_make(&s); }
static void teardown(void) { scene_remove(&s); }
TestSuite(student_points, .init = setup, .fini = teardown);

#define TWO                                                                                                                    \
    "{\"tokens\": 3000, \"students\": [{\"name\": \"a\", \"parameters\": 100, \"target_text\": {\"alpha\": 0.5}},"             \
    "{\"name\": \"b\", \"parameters\": 200, \"target_text\": {\"alpha\": 0.6}}, {\"name\": \"c\", \"parameters\": 300,"        \
    "\"target_text\": {\"alpha\": null}}]}"

Test(student_points, are_read_from_distillations)
{
    wg_student_points p = { 0 };
    wg_error err = { 0 };
    mkdir("d", 0777);
    put("d/distill.json", TWO);
    cr_assert_eq(wg_student_points_add(&p, "d", &err), WG_OK, "%s", err.text);
    cr_assert_eq(p.n, 2, "a student without an alpha is none");
    cr_assert_str_eq(p.of[1].name, "b");
    cr_assert(p.value[1].parameters == 200 && p.value[1].tokens == 3000 && p.value[1].alpha == 0.6 && p.of[1].temperature == 1);
    put("d/config.json", "{\"distill\": {\"temperature\": 0.8}}");
    cr_assert_eq(wg_student_points_add(&p, "d/distill.json", &err), WG_OK, "%s", err.text);
    cr_assert_eq(p.n, 4);
    cr_assert_eq(p.of[3].temperature, 0.8);
    wg_student_points q = p;
    cr_assert_eq(wg_student_points_at(&q, NAN, &err), WG_EINVAL);
    cr_assert(strstr(err.text, "students were measured at temperatures 1 and 0.8, and acceptance differs between them"), "%s",
              err.text);
    cr_assert_eq(wg_student_points_at(&p, 0.8, &err), WG_OK);
    cr_assert(p.n == 2 && p.of[0].temperature == 0.8);
    cr_assert_eq(wg_student_points_at(&p, 0, &err), WG_EINVAL);
    cr_assert(strstr(err.text, "none of 2 students was measured at temperature 0; theirs is 0.8"), "%s", err.text);
    for (int i = 0; i < 31; i++) cr_assert_eq(wg_student_points_add(&p, "d", &err), WG_OK, "%s", err.text);
    cr_assert_eq(wg_student_points_add(&p, "d", &err), WG_EINVAL);
    cr_assert(strstr(err.text, "more than 64 measured students; give fewer"));
}

Test(student_points, are_read_from_runs)
{
    wg_config *c =
        config_of("{\"name\": \"t\", \"target\": {\"model\": \"target.gguf\", \"threads\": 1}, \"max_tokens\": 6,"
                  "\"draft\": {\"kind\": \"model\", \"model\": \"draft.gguf\", \"length\": 2}, \"sweep\": "
                  "{\"draft.length\": [1, 2]}, \"verify\": {\"rule\": \"rejection\"}, \"sampling\": {\"temperature\": 1}, "
                  "\"prompts\": {\"file\": \"prompts.jsonl\"}}");
    json_t *summary = scene_run(c, &(wg_run_options){ .out = "out" }, NULL);
    wg_student_points p = { 0 };
    wg_error err = { 0 };
    wg_arch a;
    wg_weights *w;
    wg_config_close(c);
    cr_assert_eq(wg_student_points_add(&p, "out", &err), WG_OK, "%s", err.text);
    cr_assert_eq(p.n, 1, "two cells of one draft model and temperature");
    cr_assert_eq(wg_weights_open(&w, "draft.gguf", &err), WG_OK);
    cr_assert_eq(wg_arch_read(w, &a, &err), WG_OK);
    cr_assert_eq(p.value[0].parameters, (double)wg_arch_parameters(&a));
    cr_assert(isnan(p.value[0].tokens), "it stands in no training run");
    const json_t *cell = json_array_get(json_object_get(summary, "cells"), 0);
    cr_assert_float_eq(p.value[0].alpha, json_number_value(json_object_get(cell, "analytic_alpha")), 1e-12);
    wg_weights_close(w);
    json_decref(summary);
    c = config_of(
        "{\"name\": \"t\", \"target\": {\"model\": \"target.gguf\", \"threads\": 1}, \"max_tokens\": 6, \"alpha\": false,"
        "\"draft\": {\"kind\": \"model\", \"model\": \"draft.gguf\", \"length\": 2}, \"prompts\": {\"file\": "
        "\"prompts.jsonl\"}}");
    json_decref(scene_run(c, &(wg_run_options){ .out = "without" }, NULL));
    wg_config_close(c);
    cr_assert_eq(wg_student_points_add(&p, "without", &err), WG_EINVAL);
    cr_assert(strstr(err.text, "without: no cell has an alpha; run it with \"alpha\": true"), "%s", err.text);
}

static bool reads(const char *text, int layers, int dim, int heads, bool target_head)
{
    wg_student_shape w;
    return wg_student_shape_parse(text, strlen(text), &w) && w.layers == layers && w.dim == dim && w.heads == heads &&
           w.target_head == target_head;
}

Test(student_points, shapes)
{
    static const char *const bad[] = { "",
                                       "1",
                                       "1x",
                                       "x64",
                                       "0x64",
                                       "1x0",
                                       "1x63",
                                       "1x64x",
                                       "1x64x3",
                                       "1x64x64",
                                       "1x64hh",
                                       "1x64 ",
                                       "99999999999999999999x64",
                                       "-1x64",
                                       "1y64" };
    wg_student_shape w;
    cr_assert(reads("1x64", 1, 64, 0, false) && reads("12x384h", 12, 384, 0, true) && reads("2x128x4", 2, 128, 4, false));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        cr_assert(!wg_student_shape_parse(bad[i], strlen(bad[i]), &w), "%s", bad[i]);
}
