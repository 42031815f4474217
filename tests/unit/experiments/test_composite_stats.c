/* SPDX-License-Identifier: MIT
 * Statistics of components, counted by hand over steps of a drafter with known components; and in the files of a run. */
#include "core/base/json.h"
#include "core/base/mem.h"
#include "experiments/report/columns.h"
#include "experiments/record/composite_stats.h"
#include "experiments/run/runner.h"
#include "scene.h"

static wg_composite_stats now[3];
static int three(const wg_drafter *d, const wg_seq *seq, wg_composite_stats *out, int most)
{
    (void)d, (void)seq;
    cr_assert_geq(most, 3);
    memcpy(out, now, sizeof now);
    return 3;
}
static const wg_drafter_class class = { .name = "three", .composite_stats = three };

/* A component that drafted `tokens`, of which the text has `matched`; taken: its tree was verified. */
static wg_composite_stats drafted(const char *kind, bool taken, int tokens, int matched)
{
    return (wg_composite_stats){ .kind = kind, .asked = true, .taken = taken, .drafted = tokens, .matched = matched };
}

/* A step that emitted `kept` draft tokens and one more. */
static wg_composite_step step(wg_composite_totals *m, int kept, wg_composite_stats a, wg_composite_stats b,
                              wg_composite_stats c)
{
    const wg_drafter d = { &class, NULL };
    uint8_t drafted[16] = { 0 };
    memset(drafted + 3, 1, (size_t)kept);
    const wg_seq s = { .drafted = drafted, .n = 4 + kept, .last_emitted = kept + 1 };
    now[0] = a, now[1] = b, now[2] = c;
    return wg_composite_totals_add_step(m, &d, &s);
}

Test(composite_stats, counts)
{
    wg_composite_totals m = { 0 }, twice = { 0 }, again;
    /* A's draft of 4 is taken and 3 are kept, of which B had 2; C had the first and no more. */
    wg_composite_step s = step(&m, 3, drafted("a", true, 4, 3), drafted("b", false, 2, 2), drafted("c", false, 5, 1));
    cr_assert(s.n == 3 && s.taken == 0 && s.matched[0] == 3 && s.matched[1] == 2 && s.matched[2] == 1);
    /* B's tree is verified: nothing is accepted, though A had the emitted token and one more. C did not draft. */
    s = step(&m, 0, drafted("a", false, 4, 1), drafted("b", true, 2, 0), (wg_composite_stats){ .kind = "c" });
    cr_assert(s.taken == 1 && s.matched[0] == 1 && s.matched[1] == 0 && s.matched[2] == -1);
    /* C's, with B unasked: two kept, one of them A's too, and nothing can be said of the other. */
    step(&m, 2, drafted("a", false, 1, 1), (wg_composite_stats){ .kind = "b" }, drafted("c", true, 3, 2));
    /* An empty draft counts for no component. */
    s = step(&m, 0, drafted("a", true, 0, 0), (wg_composite_stats){ .kind = "b" }, (wg_composite_stats){ .kind = "c" });
    cr_assert_eq(s.taken, -1);
    static const long want[3][7] = { { 4, 1, 4, 3, 2, 1, 5 }, { 2, 1, 2, 0, 0, 0, 2 }, { 2, 1, 3, 2, 1, 0, 3 } };
    for (int k = 0; k < 3; k++) {
        const wg_component_totals *p = &m.part[k];
        const long got[7] = { p->asked, p->taken, p->drafted, p->accepted, p->shared, p->alone, p->matched };
        for (int i = 0; i < 7; i++) cr_assert_eq(got[i], want[k][i], "part %d, number %d: %ld", k, i, got[i]);
    }
    cr_assert_eq(m.matched, 3 + 1 + 2);
    json_t *v = wg_composite_totals_json(&m);
    wg_composite_totals_read(&again, v, m.matched);
    cr_assert_eq(memcmp(&m, &again, sizeof m), 0);
    wg_composite_totals_add(&twice, &m);
    wg_composite_totals_add(&twice, &again);
    cr_assert(twice.n == 3 && twice.part[0].matched == 10 && twice.matched == 12 && !strcmp(twice.part[2].kind, "c"));
    json_decref(v);
    json_t *bad = json_loads("[{\"drafter\": 7, \"asked\": \"x\"}, 3]", 0, NULL);
    wg_composite_totals_read(&again, bad, 0); /* what is not there counts 0 */
    cr_assert(again.n == 2 && again.part[0].asked == 0 && !*again.part[1].kind);
    json_decref(bad);
    cr_assert_null(wg_composite_totals_json(&(wg_composite_totals){ 0 }));
}

static double real(const json_t *v, const char *key) { return json_number_value(json_object_get(v, key)); }

/* In the files of a run: parts add up to the cell, requests to parts, steps to requests. */
Test(composite_stats, adds_up_in_a_run, .timeout = 60)
{
    scene s;
    wg_error err;
    wg_run r;
    char *path;
    double accepted = 0, drafted = 0, by_request[2] = { 0 }, by_step[2] = { 0 }, taken = 0;
    scene_make(&s);
    wg_config *c =
        config_of("{\"name\": \"t\", \"target\": {\"model\": \"target.gguf\", \"threads\": 1}, \"prompts\": {\"file\": "
                  "\"prompts.jsonl\"}, \"draft\": {\"kind\": \"best_of\", \"of\": \"ngram|model:model=target.gguf;length=2\"}, "
                  "\"sampling\": {\"temperature\": 0}, \"max_tokens\": 24, \"trace\": \"steps\"}");
    const wg_run_options o = { .out = "out" };
    cr_assert_eq(wg_run_config(c, &o, &r, &path, &err), WG_OK, "%s", err.text);
    json_t *sum = json_load_file("out/summary.json", 0, NULL), *part, *v;
    const json_t *cell = json_array_get(json_object_get(sum, "cells"), 0), *parts = json_object_get(cell, "parts");
    size_t k;
    json_array_foreach((json_t *)parts, k, part) {
        accepted += real(part, "accepted"), drafted += real(part, "drafted"), taken += real(part, "taken");
        cr_assert_eq(real(part, "asked"), real(cell, "target_passes"));
        cr_assert_eq(real(part, "shared") + real(part, "alone"), real(part, "accepted"), "all are asked at every step");
        cr_assert_leq(real(part, "matched"), real(cell, "parts_matched"));
        for (const wg_column *column = wg_part_columns; column->name; column++)
            cr_assert(wg_column_value(part, column->path), "%s: nothing stands at %s", column->name, column->path);
    }
    cr_assert(k == 2 && accepted == real(cell, "accepted") && drafted == real(cell, "drafted") && taken > 0);
    cr_assert(accepted > 0 && real(json_array_get(parts, 1), "accepted") > 0, "a model that drafts for itself");
    static const char *const files[] = { "out/requests.jsonl", "out/steps.jsonl" };
    for (int f = 0; f < 2; f++) {
        char *text = file_read(files[f], NULL);
        for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
            v = json_loads(line, 0, NULL);
            cr_assert_eq(json_object_get(v, f ? "matched" : "parts") != NULL, !json_is_null(json_object_get(v, "cell")), "%s",
                         line);
            for (size_t i = 0; i < 2; i++) {
                const json_t *matched = json_array_get(json_object_get(v, "matched"), i),
                             *of = json_array_get(json_object_get(v, "parts"), i);
                (f ? by_step : by_request)[i] += f ? json_number_value(matched) : real(of, "matched");
            }
            json_decref(v);
        }
        free(text);
    }
    for (size_t i = 0; i < 2; i++) {
        cr_assert_eq(by_request[i], real(json_array_get(parts, i), "matched"));
        cr_assert_eq(by_step[i], by_request[i]);
    }
    json_decref(sum);
    wg_run_free(&r);
    wg_free(path);
    wg_config_close(c);
    scene_remove(&s);
}
