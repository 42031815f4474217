/* SPDX-License-Identifier: MIT
 * The folder of a training run as curves, tables and a page, from files written here. */
#include "experiments/report/training_page.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "experiments/report/plot.h"
#include "tests/temp.h"

static temp t;
static wg_error err;
static void setup(void) { temp_make(&t); }
static void teardown(void) { temp_remove(&t); }
TestSuite(training_page, .init = setup, .fini = teardown, .timeout = 60);

static void put(const char *name, const char *text)
{
    FILE *f = fopen(temp_at(&t, name), "w");
    cr_assert(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

static const char config[] = "{\"seeds\": [4, 7], \"train\": {\"steps\": 2}, \"students\": ["
                             "{\"name\": \"text\", \"loss\": {\"ce\": 1, \"kl\": 0}},"
                             "{\"name\": \"a|<b>\", \"loss\": {\"kl\": 0.5, \"tv\": 0.5}}]}";

/* Two steps of four students, 1000 rows each, with held-out values 0.1 (student + 1) / 2 after each. */
static void put_log(const char *tail)
{
    static const char *const name[] = { "text-4", "text-7", "a|<b>-4", "a|<b>-7" };
    char log[8000] = "";
    size_t n = 0;
    for (int step = 1; step <= 2; step++)
        for (int held = 0; held < 2; held++)
            for (int i = 0; i < 4; i++)
                n += (size_t)snprintf(log + n, sizeof log - n,
                                      "{\"alpha\":%g,\"%s\":%g,\"rows\":1000,\"seconds\":2.5,\"step\":%d,\"student\":\"%s\"}\n",
                                      held ? 0.05 * (i + 1) * step * (i % 2 + 1) : 0.5, held ? "held_out" : "loss",
                                      held ? i + step : 3.25, step, name[i]);
    snprintf(log + n, sizeof log - n, "%s", tail);
    put("distill.jsonl", log);
    put("config.json", config);
}

static char *markdown_of(void)
{
    char *text = NULL;
    size_t n = 0;
    wg_training_log l;
    FILE *f = open_memstream(&text, &n);
    cr_assert_eq(wg_training_log_open(&l, t.dir, &err), WG_OK, "%s", err.text);
    wg_training_markdown(f, &l, "folder");
    wg_training_log_close(&l);
    fclose(f);
    return text;
}

static json_t *document(void)
{
    wg_training_log l;
    cr_assert_eq(wg_training_log_open(&l, t.dir, &err), WG_OK, "%s", err.text);
    json_t *o = wg_training_document(&l, "folder <x>", true);
    wg_training_log_close(&l);
    return o;
}

static void expect_in(const char *text, const char *part) { cr_assert(strstr(text, part), "'%s' in\n%.3000s", part, text); }

Test(training_page, curves_of_a_log)
{
    wg_training_log l;
    wg_training_mean m[8];
    put_log("{\"step\": 3, \"student\": \"text-4\", \"lo");
    cr_assert(wg_training_is_run(t.dir));
    cr_assert_eq(wg_training_log_open(&l, t.dir, &err), WG_OK, "%s", err.text);
    cr_assert(l.distilled && l.students == 4 && l.families == 2 && l.seeds == 2 && l.steps == 2 && l.planned == 2 && !l.result);
    cr_assert_float_eq(l.seconds, 5, 1e-12);
    cr_assert_str_eq(l.student[3].name, "a|<b>-7");
    cr_assert(l.student[3].steps.n == 2 && l.student[3].steps.point[1].tokens == 2000 && l.student[3].held_out.n == 2);
    cr_assert_eq(wg_training_means(&l, 1, -1, true, m, 8), 2);
    cr_assert_float_eq(m[1].value, (0.3 + 0.8) / 2, 1e-12); /* 0.05 * 3 * 2 and 0.05 * 4 * 2 * 2 */
    cr_assert(fabs(m[1].least - 0.3) < 1e-12 && fabs(m[1].most - 0.8) < 1e-12 && m[1].tokens == 2000);
    cr_assert_eq(wg_training_means(&l, 1, 0, true, m, 8), 2); /* less text only: 0.3 - 0.1, 0.8 - 0.4 */
    cr_assert(fabs(m[1].value - 0.3) < 1e-12 && fabs(m[1].least - 0.2) < 1e-12 && fabs(m[1].most - 0.4) < 1e-12);
    cr_assert_eq(wg_training_means(&l, 0, -1, false, m, 1), 1);
    cr_assert(m[0].value == 1.5 && m[0].tokens == 1000);
    wg_training_log_close(&l);
    put("distill.jsonl", "{\"held_out\":1,\"step\":1,\"student\":\"nobody\"}\n\n[]\n");
    cr_assert_eq(wg_training_log_open(&l, t.dir, &err), WG_OK, "%s", err.text);
    cr_assert(l.steps == 0 && wg_training_means(&l, 0, -1, true, m, 8) == 0);
    wg_training_log_close(&l);
}

/* A run with one seed, which its resolved config lists, has students without a seed's name. */
Test(training_page, curves_of_one_seed)
{
    wg_training_log l;
    put("config.json",
        "{\"seeds\": [4], \"train\": {\"steps\": 2}, \"students\": [{\"name\": \"kl\", \"loss\": {\"kl\": 1}}]}");
    put("distill.jsonl", "{\"alpha\":0.5,\"loss\":3.25,\"rows\":1000,\"seconds\":2.5,\"step\":1,\"student\":\"kl\"}\n"
                         "{\"alpha\":0.6,\"held_out\":2,\"rows\":1000,\"seconds\":2.5,\"step\":1,\"student\":\"kl\"}\n");
    cr_assert_eq(wg_training_log_open(&l, t.dir, &err), WG_OK, "%s", err.text);
    cr_expect_str_eq(l.student[0].name, "kl");
    cr_expect_eq(l.student[0].steps.n, 1);
    cr_assert_eq(l.student[0].held_out.n, 1);
    cr_expect_eq(l.student[0].held_out.point[0].alpha, 0.6);
    wg_training_log_close(&l);
}

Test(training_page, of_an_unfinished_run)
{
    put_log("");
    char *text = markdown_of();
    expect_in(text,
              "Trained: 2 of 2 steps, 0.00 million tokens of each student, 5 s. The largest alpha on the held-out text so "
              "far has a|<b>: 0.550.");
    expect_in(text, "| a\\|<b> | 0.00 | 4.500 [4.000, 5.000] | 0.550 [0.300, 0.800] | +0.300 [+0.200, +0.400] |\n");
    expect_in(text, "| text-7 | - | 2 | 0.00 | 3.250 | 0.500 | 3.000 | 0.400 | - | - | - | - |\n");
    cr_assert(!strstr(text, "nan") && !strstr(text, "Families on texts"));
    free(text);
    json_t *o = document();
    const json_t *evaluations = json_array_get(json_object_get(o, "tables"), 0), *figures = json_object_get(o, "figures"),
                 *row = json_array_get(json_object_get(evaluations, "rows"), 1);
    cr_assert_str_eq(json_string_value(json_object_get(o, "title")), "Distillation: folder <x>");
    cr_assert_str_eq(json_string_value(json_array_get(row, 0)), "a|<b>");
    cr_assert_str_eq(json_string_value(json_array_get(row, 3)), "0.550 [0.300, 0.800]");
    cr_assert_eq(json_array_size(row), json_array_size(json_object_get(evaluations, "heads")));
    cr_assert_eq(json_is_true(json_object_get(o, "no_gnuplot")), !wg_plot_available(WG_PLOT_PAGE));
    bool loss = false;
    for (size_t i = 0; i < json_array_size(figures); i++) {
        const char *title = json_string_value(json_object_get(json_array_get(figures, i), "title"));
        loss |= !strcmp(title, "Loss of text while training");
    }
    cr_assert_eq(loss, wg_plot_available(WG_PLOT_PAGE));
    json_decref(o);
}

Test(training_page, of_a_finished_run)
{
    put_log("");
    put("distill.json",
        "{\"families\": [{\"name\": \"text\", \"target_text\": {\"alpha\": 0.5, \"alpha_ci\": null, \"tau\": [1, 2, 3, 4, 5, "
        "6, 7, "
        "8], \"tau_ci\": [null, null, null, [3.5, 4.5]]}}, {\"name\": \"a|<b>\", \"target_text\": {\"alpha\": 0.625, "
        "\"alpha_ci\": "
        "[0.5, 0.75]}, \"less_text_only\": {\"target_text\": {\"alpha\": 0.125, \"alpha_ci\": [-0.25, 0.5]}}, \"predicted\": "
        "{\"speedup\": 1.5, \"length\": 3}}], \"students\": [{\"name\": \"a|<b>-7\", \"parameters\": 77}]}");
    char *text = markdown_of();
    expect_in(text, "The largest alpha on texts of the target has a|<b>: 0.625, +0.125 [-0.250, +0.500] from text only.");
    expect_in(text, "| text | ce | 2 | 0.500 | - | 4.000 [3.500, 4.500] | - | - | - | - | - |\n");
    expect_in(text,
              "| a\\|<b> | 0.5 kl + 0.5 tv | 2 | 0.625 [0.500, 0.750] | +0.125 [-0.250, +0.500] | - | - | 1.500 | 3 | - | - "
              "|\n");
    expect_in(text, "| text | 1.000 | 2.000 | 3.000 | 4.000 [3.500, 4.500] | 5.000 |");
    expect_in(text, "| a\\|<b>-7 | 77 |");
    cr_assert(!strstr(text, "nan"));
    free(text);
}

/* The log of `wager train`: one student, whose lines have no name. */
Test(training_page, of_a_language_model)
{
    put("config.json", "{\"output\": {\"name\": \"story\"}, \"train\": {\"steps\": 5}}");
    put("train.jsonl",
        "{\"step\":1,\"loss\":5,\"alpha\":null,\"rows\":64,\"seconds\":1}\n{\"step\":1,\"held_out\":4.5,\"rows\":9}\n");
    char *text = markdown_of();
    expect_in(text, "# Training: folder");
    expect_in(text, "Not finished: 1 of 5 steps");
    expect_in(text, "| story | - | 1 | 0.00 | 5.000 | - | 4.500 | - | - | - | - | - |\n");
    free(text);
    json_decref(document());
}

Test(training_page, refuses_what_is_no_training_run)
{
    wg_training_log l;
    cr_assert(!wg_training_is_run(t.dir));
    put("distill.jsonl", "");
    cr_assert_eq(wg_training_log_open(&l, t.dir, &err), WG_ENOENT);
    put("config.json", "{\"seeds\": []}");
    cr_assert_eq(wg_training_log_open(&l, t.dir, &err), WG_EFORMAT);
    cr_assert(strstr(err.text, "config.json: expected the resolved config of a training run, with 1 to 1024 students"), "%s",
              err.text);
    put("config.json", "{");
    cr_assert_eq(wg_training_log_open(&l, t.dir, &err), WG_EFORMAT);
    put("config.json", config);
    put("distill.json", "[");
    cr_assert_eq(wg_training_log_open(&l, t.dir, &err), WG_EFORMAT);
    unlink(temp_at(&t, "distill.json"));
    unlink(temp_at(&t, "distill.jsonl"));
    cr_assert_eq(mkdir(temp_at(&t, "distill.jsonl"), 0777), 0);
    const wg_status s = wg_training_log_open(&l, t.dir, &err);
    cr_assert(s == WG_EIO || s == WG_OK, "%s", err.text); /* a folder opens, and cannot be read */
    if (s == WG_OK) wg_training_log_close(&l);
    rmdir(temp_at(&t, "distill.jsonl"));
}
