/* SPDX-License-Identifier: MIT
 * The arithmetic of summary.json on results made by hand, and the table printed from it. */
#include <math.h>

#include "core/base/mem.h"
#include "experiments/base/stats.h"
#include "experiments/run/summary.h"
#include "experiments/report/table.h"
#include "scene.h"

static scene s;
static void setup(void) { scene_make(&s); }
static void teardown(void) { scene_remove(&s); }
TestSuite(summary, .init = setup, .fini = teardown);

/* Two prompts: 8 + 12 tokens in 4 + 4 passes and 4 + 4 s; the baseline's 10 + 10 tokens took 10 + 20 s in 10 + 10 passes. */
static double seconds[] = { 4, 4 }, tokens[] = { 8, 12 }, passes[] = { 4, 4 };
static double base_seconds[] = { 10, 20 }, base_tokens[] = { 10, 10 }, base_passes[] = { 10, 10 }, base_phases[] = { 9, 19 };
static double drafted[] = { 12, 12 }, accepted[] = { 4, 8 };
static double itl[] = { 0.06, 0.01, 0.04 }, itl_token[] = { 0.02, 0.02, 0.02, 0.01, 0.02, 0.02 }; /* of 3, 1 and 2 tokens */
static double ttft[] = { 0.3, 0.1 }, tpot[] = { 0.02 };
static char digests[2][WG_SHA256_HEX] = { "a", "b" };

static wg_result result(void)
{
    wg_result r = {
        .pairs = { 2, seconds, tokens, passes, drafted, accepted, base_seconds, base_tokens, base_passes, base_phases },
        .requests = 2,
        .failed = 1,
        .equal = 2,
        .first_failure = "x: too long",
        .counts = { .passes = 8, .drafted = 24, .accepted = 12, .emitted = 20, .alpha_sum = 6, .alpha_n = 8 },
        .taught = { 7, 10 },
        .phases = { .draft = 2, .verify = 4, .accept = 0.5, .kv = 0.5 },
        .decode = 8,
        .forward = 3.5,
        .ttft = ttft,
        .tpot = tpot,
        .n_ttft = 2,
        .n_tpot = 1,
        .sha256 = digests,
        .outputs = 2,
        .itl = { itl, 3, 3 },
        .itl_token = { itl_token, 6, 6 },
        .work = { .pass_stats = { .passes = 8, .rows = 32 },
                  .passes = 8,
                  .forward = 3.5,
                  .decode = 8,
                  .prefill = 2,
                  .joules = 40,
                  .tokens = 20,
                  .accepted = 12,
                  .drafted = 24 },
        .base_work = { .pass_stats = { .passes = 20, .rows = 20 },
                       .passes = 20,
                       .forward = 28,
                       .decode = 30,
                       .joules = 240,
                       .tokens = 20 },
        .pass_cost = { .weight_bytes = 7e9, .row_macs = 7e9 },
        .roofline = { .bytes = 32e9, .macs = 128e9 },
    };
    for (int d = 1; d <= 3; d++) { /* 6 of the 8 steps drafted */
        r.counts.offered_at[d] = d < 3 ? 6 : 4;
        r.counts.accepted_at[d] = 6 - d;
        r.counts.tried_at[d] = d < 3 ? 7 - d : 3;
    }
    r.counts.without_draft[WG_NO_DRAFT_CONTEXT] = r.counts.without_draft[WG_NO_DRAFT_ROOM] = 1;
    return r;
}

static double real(const json_t *v, const char *key) { return json_number_value(json_object_get(v, key)); }

/* All lines of a CSV text have as many columns as the first. */
static void square(const char *text)
{
    int commas = 0, first = -1;
    bool quoted = false;
    for (const char *p = text; *p; p++) {
        if (*p == '"') quoted = !quoted;
        commas += *p == ',' && !quoted;
        if (*p != '\n' || quoted) continue;
        if (first < 0) first = commas;
        cr_assert_eq(commas, first, "%s", text);
        commas = 0;
    }
    cr_assert_gt(first, 0);
}

Test(summary, arithmetic)
{
    wg_config *c =
        config_of("{\"name\": \"t\", \"target\": {\"model\": \"target.gguf\"}, \"prompts\": {\"file\": \"prompts.jsonl\"},"
                  "\"draft\": {\"kind\": \"ngram\"}, \"sampling\": {\"temperature\": 0}, \"sweep\": {\"draft.k\": [3]}}");
    wg_result r = result();
    r.coverage.context = 128;
    const wg_run run = { .config = c, .result = &r, .complete = true, .seconds = 1 };
    json_t *sum = wg_summary_json(&run), *v = json_array_get(json_object_get(sum, "cells"), 0);
    static const struct {
        const char *key;
        double value;
    } want[] = {
        { "tau", 20.0 / 8 },
        { "acceptance_rate", 0.5 },
        { "alpha", 0.75 },
        { "tok_s", 2.5 },
        { "baseline_tok_s", 20.0 / 30 },
        { "speedup", (30.0 / 20) / (8.0 / 20) },
        { "output_throughput", 2.0 }, /* 20 tokens in 2 + 8 s */
        { "baseline_output_throughput", 20.0 / 30 },
        { "explained_speedup", 2.5 * (28.0 / 20) / (7.0 / 8) },
        { "draft_cost_ratio", 2.0 / 16 / (28.0 / 20) },
        { "overhead_us_per_token", (8 - 2 - 3.5) / 20 * 1e6 },
        { "mean_acceptance_length", 3 },
        { "draft_acceptance_rate", 0.5 },
        { "requests", 2 },
        { "failed", 1 },
        { "tokens", 20 },
        { "target_passes", 8 },
        { "drafted", 24 },
        { "accepted", 12 },
        { "spec_decode_num_drafts", 6 },
        { "spec_decode_num_draft_tokens", 24 },
        { "spec_decode_num_accepted_tokens", 12 },
    };
    for (size_t i = 0; i < sizeof want / sizeof *want; i++)
        cr_assert_float_eq(real(v, want[i].key), want[i].value, 1e-9, "%s: %.12g, expected %.12g", want[i].key,
                           real(v, want[i].key), want[i].value);
    const json_t *at = json_object_get(v, "acceptance_by_position"),
                 *per = json_object_get(v, "spec_decode_num_accepted_tokens_per_pos");
    static const double share[] = { 5 / 6., 4 / 6., 3 / 4. }, count[] = { 5, 4, 3 };
    cr_assert_eq(json_array_size(at), 3);
    for (size_t i = 0; i < 3; i++) {
        cr_assert_float_eq(json_number_value(json_array_get(at, i)), share[i], 1e-12);
        cr_assert_float_eq(json_number_value(json_array_get(per, i)), count[i], 1e-12);
    }
    const json_t *a = json_object_get(v, "acceptance");
    static const struct {
        const char *key;
        double value[3];
    } lists[] = { { "survival_by_position", { 5 / 8., 4 / 8., 3 / 8. } },
                  { "offered_corrected_by_position", { 5 / 6., 4 / 6., 3 / 4. } },
                  { "conditional_by_position", { 5 / 6., 4 / 5., 3 / 3. } } };
    for (size_t i = 0; i < 9; i++)
        cr_assert_float_eq(json_number_value(json_array_get(json_object_get(a, lists[i / 3].key), i % 3)),
                           lists[i / 3].value[i % 3], 1e-12);
    static const int kept[] = { 1, 1, 1, 3 }; /* of the 6 steps that drafted 5 kept at least one, 4 two, 3 three */
    const json_t *histogram = json_object_get(a, "acceptance_histogram");
    cr_assert_eq(json_array_size(histogram), 4);
    for (size_t i = 0; i < 4; i++) cr_assert_eq(json_integer_value(json_array_get(histogram, i)), kept[i]);
    const json_t *without = json_object_get(v, "rounds_without_draft");
    cr_assert(real(without, "draft_context") == 1 && real(without, "room") == 1 && real(without, "nothing_found") == 0);
    cr_assert_float_eq(real(v, "alpha"), 0.75, 1e-12);
    cr_assert_float_eq(real(v, "analytic_alpha"), 0.7, 1e-12, "another mean: over all positions of the text");
    cr_assert_float_eq(real(a, "draft_acceptance_rate"), 0.5, 1e-12);
    cr_assert_float_eq(real(a, "verify_rate"), 20 / 32., 1e-12);
    cr_assert_float_eq(real(a, "drafted_fraction_of_output"), 12 / 20., 1e-12);
    cr_assert_float_eq(real(a, "accepted_per_pass"), 1.5, 1e-12);
    cr_assert_float_eq(real(a, "tokens_per_pass"), 2.5, 1e-12);
    const json_t *categories = json_object_get(v, "categories"), *y = json_array_get(categories, 1);
    cr_assert_eq(json_array_size(categories), 2);
    cr_assert_str_eq(json_string_value(json_object_get(y, "category")), "y");
    cr_assert_float_eq(real(y, "tau"), 3, 1e-12);
    cr_assert_float_eq(real(y, "speedup"), 20 / 10. / (4 / 12.), 1e-12);
    cr_assert_float_eq(real(y, "acceptance_rate"), 8 / 12., 1e-12);
    cr_assert(json_is_null(json_object_get(y, "tau_ci")), "one prompt has no interval");
    cr_assert_float_eq(real(v, "tau_macro"), (2 + 3) / 2., 1e-12);
    cr_assert_float_eq(real(v, "speedup_macro"), (2 + 6) / 2., 1e-12);
    cr_assert_float_eq(real(v, "speedup_mean_of_prompts"), (2 + 6) / 2., 1e-12);
    const json_t *phase = json_object_get(v, "phase_ms");
    cr_assert_float_eq(real(phase, "draft"), 250, 1e-9);
    cr_assert_float_eq(real(phase, "other"), 125, 1e-9);
    cr_assert_float_eq(real(json_object_get(v, "ttft_ms"), "p50"), 200, 1e-9);
    cr_assert_float_eq(real(json_object_get(v, "tpot_ms"), "p99"), 20, 1e-9);
    cr_assert_float_eq(real(json_object_get(v, "itl_ms"), "p50"), 40, 1e-9);
    cr_assert_float_eq(real(json_object_get(v, "itl_ms"), "p90"), 56, 1e-9);
    cr_assert_float_eq(real(json_object_get(v, "itl_per_token_ms"), "p50"), 20, 1e-9);
    cr_assert_float_eq(real(v, "mean_itl_ms"), 36.667, 1e-9);
    cr_assert_float_eq(real(json_object_get(v, "efficiency"), "mbu"), 8 * 7 / 3.5 / 32, 1e-9);
    cr_assert_float_eq(real(json_object_get(v, "efficiency"), "baseline_mfu"), 20 * 7 / 28. / 128, 1e-9);
    cr_assert_float_eq(real(json_object_get(v, "rejected"), "flop_share"), 12 / 32., 1e-9);
    cr_assert_float_eq(real(json_object_get(v, "energy"), "joules_per_token"), 2, 1e-9);
    cr_assert_null(json_object_get(sum, "energy_unknown"));
    cr_assert(json_is_true(json_object_get(v, "equals_baseline")));
    r.equal = 1;
    json_t *unequal = wg_summary_json(&run);
    cr_assert(json_is_false(json_object_get(json_array_get(json_object_get(unequal, "cells"), 0), "equals_baseline")));

    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    wg_table_print(f, sum, NULL, 0);
    fclose(f);
    cr_assert(strstr(text, "3.75x ") && !strstr(text, "3.75x ["), "%s", text);
    cr_assert(strstr(text, "No interval for 1 of 1 cells: it takes 5 prompts that ended well on both sides.\n"), "%s", text);
    free(text);
    json_object_set_new(v, "tau_ci", json_pack("[f,f]", 2.25, 2.75)); /* as of more prompts */
    json_object_set_new(v, "speedup_ci", json_pack("[f,f]", 3.5, 4.0));
    f = open_memstream(&text, &n);
    wg_table_print(f, sum, NULL, 0);
    fclose(f);
    cr_assert_null(strstr(text, "No interval"), "%s", text);
    static const char *const shown[] = { "drafter",
                                         "k",
                                         "ngram",
                                         "2.50",
                                         "50.0 %",
                                         "2.5",
                                         "0.7",
                                         "3.75x [3.50, 4.00]",
                                         "yes",
                                         "x: too long",
                                         "\nwarning: cell 0, ngram: 1 of 8 rounds had no draft: the draft's context of 128 "
                                         "positions had ended\n" };
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++)
        cr_assert(strstr(text, shown[i]), "'%s' is not in\n%s", shown[i], text);
    cr_assert_null(strstr(text, "interrupted"));
    static const int widths[] = { 80, 60, 20 };
    for (int i = 0; i < 3; i++) { /* folded: every line fits, every column is there once, in a block with the cell's name */
        char *folded = NULL;
        FILE *to = open_memstream(&folded, &n);
        wg_table_print(to, sum, NULL, widths[i]);
        fclose(to);
        int blocks = 0;
        for (char *line = folded; *line; line += strcspn(line, "\n") + 1) {
            cr_assert(widths[i] == 20 || strcspn(line, "\n") <= (size_t)widths[i], "%d columns: %s", widths[i], folded);
            blocks += !strncmp(line, "drafter  k  rule", 16);
        }
        cr_assert_eq(blocks, ((const int[]){ 2, 2, 6 })[i], "%d columns, %d blocks: %s", widths[i], blocks, folded);
        for (size_t k = 0; k < sizeof shown / sizeof *shown - 2; k++) /* its last two are sentences */
            cr_assert(strstr(folded, shown[k]), "'%s' is not in\n%s", shown[k], folded);
        free(folded);
    }
    free(text);

    f = open_memstream(&text, &n);
    wg_table_print_markdown(f, sum, NULL);
    fclose(f);
    cr_assert(strstr(text, "\n| ngram | 3 | rejection | 0 | 2.50 [2.25, 2.75]") &&
                  strstr(text, "] | 0.83 0.67 0.75 | 2.5 | 0.7 | 3.75x [3.50, 4.00]"),
              "%s", text);
    free(text);
    f = open_memstream(&text, &n);
    wg_table_print_csv(f, sum, WG_CSV_CELLS, NULL);
    fclose(f);
    square(text);
    cr_assert(!strncmp(text, "cell,draft.k,drafter,", 21) && strstr(text, ",speedup,speedup_lo,speedup_hi,") &&
                  strstr(text, "\n0,3,ngram,"),
              "%s", text);
    cr_assert(strstr(text, ",acceptance_by_position_1,acceptance_by_position_2,acceptance_by_position_3,") &&
                  strstr(text, ",0.8333333333333334,0.6666666666666666,0.75,"),
              "%s", text);
    free(text);
    wg_column_choice chosen;
    wg_error err;
    for (const wg_column *col = wg_columns; col->name; col++) { /* by heading, where that is no other column's name */
        cr_assert_eq(wg_columns_named(col->head, &chosen, &err), WG_OK, "%s: %s", col->head, err.text);
        cr_assert(chosen.column[0] == col || !strcmp(chosen.column[0]->name, col->head), "%s", col->head);
    }
    cr_assert_eq(wg_columns_named("tau, macro, same text,speed-up", &chosen, &err), WG_OK, "%s", err.text);
    cr_assert(chosen.n == 3 && !strcmp(chosen.column[0]->name, "tau_macro") && !strcmp(chosen.column[1]->head, "same text"));
    cr_assert_eq(wg_columns_named("mbu,tau,MBU", &chosen, &err), WG_OK);
    f = open_memstream(&text, &n);
    wg_table_print_csv(f, sum, WG_CSV_CELLS, &chosen);
    fclose(f);
    cr_assert(!strncmp(text, "cell,draft.k,mbu,tau,tau_lo,tau_hi\n0,3,0.5,2.5,", 46), "%s", text);
    free(text);
    f = open_memstream(&text, &n);
    wg_table_print(f, sum, &chosen, 0);
    fclose(f);
    cr_assert(strstr(text, "drafter  k  rule       temp   MBU                tau\n") && strstr(text, "\nMBU: model bandwidth"),
              "%s", text);
    free(text);
    f = open_memstream(&text, &n);
    wg_table_print_csv(f, sum, WG_CSV_CATEGORIES, NULL);
    fclose(f);
    square(text);
    cr_assert(strstr(text, "\n0,3,y,1,12,3,,,"), "%s", text);
    free(text);
    f = open_memstream(&text, &n);
    wg_table_print_csv(f, sum, WG_CSV_POSITIONS, NULL);
    fclose(f);
    square(text);
    cr_assert(strstr(text, "\n0,3,0,,,,,1\n0,3,1,0.8333333333333334,0.625,0.8333333333333334,5,1\n") &&
                  strstr(text, "\n0,3,3,0.75,0.375,1,3,3\n"),
              "%s", text);
    free(text);
    json_decref(unequal);
    json_decref(sum);
    wg_config_close(c);
}

/* Every number of a cell has a column of its own, but for what says the same as another; and a column finds its number. */
static void look_at(const json_t *o, const char *prefix, bool *used, long *leaves)
{
    static const char *const twins[] = {
        "accepted", "acceptance_rate", "drafted", "acceptance.draft_acceptance_rate", "acceptance.tokens_per_pass", NULL
    };
    const char *key;
    json_t *v;
    json_object_foreach((json_t *)o, key, v) {
        char path[200];
        snprintf(path, sizeof path, "%s%s%s", prefix, *prefix ? "." : "", key);
        const size_t length = strlen(path);
        if (length > 8 && !strcmp(path + length - 8, "_unknown")) continue; /* why a number is null */
        if (!strcmp(path, "cell") || !strcmp(path, "categories") || !strcmp(path, "turns") || !strcmp(path, "parts")) continue;
        if (json_is_object(v)) {
            look_at(v, path, used, leaves);
            continue;
        }
        bool found = false;
        for (int i = 0; twins[i]; i++) found = found || !strcmp(twins[i], path);
        for (int i = 0; wg_columns[i].name; i++) {
            const wg_column *c = &wg_columns[i];
            if (strcmp(c->path, path) != 0 && !(c->interval && !strcmp(c->interval, path))) continue;
            used[i] = found = true;
        }
        for (const wg_column *c = wg_position_columns; c->name; c++) found = found || !strcmp(c->path, path);
        cr_assert(found, "'%s' of summary.json has no column", path);
        ++*leaves;
    }
}

Test(summary, all_of_a_cell_has_columns)
{
    wg_config *c =
        config_of("{\"name\": \"t\", \"target\": {\"model\": \"target.gguf\"}, \"prompts\": {\"file\": \"prompts.jsonl\"},"
                  "\"draft\": {\"kind\": \"ngram\", \"label\": \"look-up\"}, \"sampling\": {\"temperature\": 0}}");
    const wg_cost pass = { .knots = 2, .rows = { 1, 11 }, .seconds = { 0.1, 0.6 } };
    wg_result r = result();
    r.cost = (wg_cell_cost){ .known = true, .pass = pass, .batch = 1 };
    r.coverage = (wg_coverage){ .shared = 30, .vocab = 40, .text = 20, .covered = 11, .context = 128 };
    r.composite = (wg_composite_totals){ .n = 1, .matched = 3 };
    const wg_run run = { .config = c, .result = &r, .complete = true, .seconds = 1 };
    json_t *sum = wg_summary_json(&run), *cell = json_array_get(json_object_get(sum, "cells"), 0);
    bool used[WG_COLUMNS_MOST] = { false };
    long leaves = 0;
    json_object_set_new(cell, "best_fixed",
                        json_pack("{s:f, s:f}", "speedup", 4., "share", 0.75)); /* as of auto beside others */
    look_at(cell, "", used, &leaves);
    cr_assert_gt(leaves, 90);
    for (int i = 0; wg_columns[i].name; i++) {
        const bool traced = !strncmp(wg_columns[i].path, "attribution.", 12); /* of a trace, which this has not */
        cr_assert(used[i] || traced, "column %s: nothing stands at %s", wg_columns[i].name, wg_columns[i].path);
        cr_assert(wg_columns[i].format || wg_columns[i].text || traced ||
                      json_is_null(wg_column_value(cell, wg_columns[i].path)) ||
                      json_is_string(wg_column_value(cell, wg_columns[i].path)) ||
                      json_is_boolean(wg_column_value(cell, wg_columns[i].path)),
                  "%s: nothing to print with", wg_columns[i].name);
        for (int k = 0; k < i; k++) cr_assert_str_neq(wg_columns[k].name, wg_columns[i].name);
    }
    json_decref(sum);
    wg_config_close(c);
}

/* The overlap of vocabularies is in the summary and under the table, once for cells of one drafter; and only with the
 * option. */
Test(summary, overlap)
{
    wg_config *c = config_of(
        "{\"name\": \"t\", \"target\": {\"model\": \"target.gguf\"}, \"prompts\": {\"file\": \"prompts.jsonl\"},"
        "\"draft\": {\"kind\": \"ngram\"}, \"sampling\": {\"temperature\": 0}, \"sweep\": {\"sampling.temperature\": [0, 1]}}");
    wg_result r[2] = { result(), result() };
    const wg_run run = { .config = c, .result = r, .complete = true, .seconds = 1 };
    char *text;
    size_t size;
    for (int with = 0; with < 2; with++) {
        for (int i = 0; with && i < 2; i++)
            r[i].coverage = (wg_coverage){ .shared = 30, .vocab = 40, .text = 20, .covered = 11 };
        json_t *sum = wg_summary_json(&run), *o = json_object_get(json_array_get(json_object_get(sum, "cells"), 0), "overlap");
        FILE *f = open_memstream(&text, &size);
        wg_table_print(f, sum, NULL, 0);
        fclose(f);
        const char *line = strstr(text, "has 30 of the target's 40 tokens (75.0 %), which are 55.0 % of the text");
        cr_assert_eq(line != NULL, with == 1, "%s", text);
        cr_assert(!line || !strstr(line + 1, "has 30"), "said twice: %s", text);
        if (with) cr_assert(real(o, "shared") == 30 && real(o, "share") == 0.75 && real(o, "text_share") == 0.55);
        else cr_assert_null(o);
        free(text);
        json_decref(sum);
    }
    wg_config_close(c);
}

/* The target's pass is predicted for all of its rows: the root, the drafted ones, and probes. */
Test(summary, the_forecast_counts_probe_rows)
{
    wg_config *c =
        config_of("{\"name\": \"t\", \"target\": {\"model\": \"target.gguf\"}, \"prompts\": {\"file\": \"prompts.jsonl\"},"
                  "\"draft\": {\"kind\": \"lookahead\"}, \"sampling\": {\"temperature\": 0}}");
    const wg_cost pass = { .knots = 2, .rows = { 1, 11 }, .seconds = { 0.1, 0.6 } }; /* 50 ms for each row more */
    for (int probes = 0; probes <= 5; probes += 5) {
        wg_result r = result();
        r.counts.probes = 8 * probes; /* in 8 passes, of 1 + 3 nodes each */
        r.cost = (wg_cell_cost){ .known = true, .pass = pass, .batch = 1 };
        const wg_run run = { .config = c, .result = &r, .complete = true, .seconds = 1 };
        json_t *sum = wg_summary_json(&run);
        const json_t *v = json_array_get(json_object_get(sum, "cells"), 0), *ms = json_object_get(v, "predicted_ms");
        cr_assert_float_eq(real(ms, "verify"), 100 + 50 * (3 + probes), 1e-6, "%g", real(ms, "verify"));
        cr_assert_float_eq(real(v, "predicted_speedup"), 2.5 * 100 / (250 + 50 * probes), 1e-9);
        json_decref(sum);
    }
    wg_config_close(c);
}

/* Passes of the target that a drafter runs are seconds of drafting, and not once more the target's. */
Test(summary, a_drafter_that_runs_the_target)
{
    wg_config *c =
        config_of("{\"name\": \"t\", \"target\": {\"model\": \"target.gguf\"}, \"prompts\": {\"file\": \"prompts.jsonl\"},"
                  "\"draft\": {\"kind\": \"synthetic\"}, \"verify\": {\"rule\": \"match\"}}");
    wg_result r = result();
    r.forward = 3.5 + 1.9; /* of 2 s of drafting */
    const wg_run run = { .config = c, .result = &r, .complete = true, .seconds = 1 };
    json_t *sum = wg_summary_json(&run);
    cr_assert_float_eq(real(json_array_get(json_object_get(sum, "cells"), 0), "overhead_us_per_token"), (8 - 2 - 4) / 20. * 1e6,
                       1e-6);
    json_decref(sum);
    wg_config_close(c);
}

/* The blocks of a run are its pairs in the order of time: of eight prompts and one repeat two a block, of two repeats four. */
Test(summary, blocks_follow_the_time_of_the_run)
{
    put("prompts.jsonl", "{\"prompt\": \"a\"}\n{\"prompt\": \"bc\"}\n{\"prompt\": \"cde\"}\n{\"prompt\": \"d\"}\n"
                         "{\"prompt\": \"ee\"}\n{\"prompt\": \"f\"}\n{\"prompt\": \"gg\"}\n{\"prompt\": \"h\"}\n");
    for (int repeats = 1; repeats <= 2; repeats++) {
        char text[300], *path = NULL;
        wg_error err;
        wg_run r;
        snprintf(text, sizeof text,
                 "{\"name\": \"t\", \"target\": {\"model\": \"target.gguf\", \"threads\": 1}, \"prompts\": {\"file\": "
                 "\"prompts.jsonl\"}, \"max_tokens\": 12, \"repeats\": %d, \"draft\": {\"kind\": \"ngram\", \"k\": 2}}",
                 repeats);
        wg_config *c = config_of(text);
        cr_assert_eq(wg_run_config(c, &(wg_run_options){ .out = repeats == 1 ? "one" : "two" }, &r, &path, &err), WG_OK, "%s",
                     err.text);
        const wg_pairs *all = &r.result[0].pairs, *block = &r.result[0].blocks;
        double seconds[WG_RUN_BLOCKS] = { 0 };
        cr_assert(all->n == 8 && block->n == WG_RUN_BLOCKS);
        for (int i = 0; i < 8; i++) seconds[repeats == 1 ? i / 2 : i / 4] += all->base_seconds[i];
        for (int k = 0; k < WG_RUN_BLOCKS; k++) {
            const double got =
                repeats == 1 ? block->base_seconds[k] : block->base_seconds[k % 2] + block->base_seconds[k % 2 + 2];
            cr_assert_float_eq(got, seconds[repeats == 1 ? k : k % 2], 1e-12, "%d repeats, block %d", repeats, k);
            cr_assert_gt(block->tokens[k], 0);
        }
        wg_run_free(&r);
        wg_free(path);
        wg_config_close(c);
    }
}

/* A cell that never got to run has no numbers, and says so with nulls. */
/* A cell of auto beside two fixed settings, six prompts: speed-ups 3, 4 and 2. Plain decoding's two repeats differ by 40 %. */
Test(summary, regret_and_disturbance)
{
    enum { PROMPTS = 6 };
    static double own[3][PROMPTS], one[PROMPTS], base[PROMPTS], repeat_seconds[] = { 10, 14 }, repeat_tokens[] = { 10, 10 };
    static const double speed[] = { 3, 4, 2 };
    put("prompts.jsonl", "{\"prompt\": \"a\"}\n{\"prompt\": \"b\"}\n{\"prompt\": \"c\"}\n{\"prompt\": \"d\"}\n{\"prompt\": "
                         "\"e\"}\n{\"prompt\": \"f\"}\n");
    wg_config *c =
        config_of("{\"name\": \"t\", \"target\": {\"model\": \"target.gguf\"}, \"prompts\": {\"file\": "
                  "\"prompts.jsonl\"}, \"sweep\": {\"draft\": [{\"kind\": \"auto\", \"of\": \"ngram|suffix:k=3\"}, "
                  "{\"kind\": \"ngram\", \"k\": 3}, {\"kind\": \"auto\", \"of\": \"{best_of:of=ngram|sam}|ngram\"}]}}");
    wg_result r[3];
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < PROMPTS; k++)
            own[i][k] = 12 / speed[i] * (1 + 0.01 * k), one[k] = 10, base[k] = 12 * (1 + 0.01 * k);
        r[i] = result();
        r[i].pairs = (wg_pairs){ .n = PROMPTS,
                                 .seconds = own[i],
                                 .tokens = one,
                                 .passes = one,
                                 .drafted = one,
                                 .accepted = one,
                                 .base_seconds = base,
                                 .base_tokens = one,
                                 .base_passes = one,
                                 .base_phases = base };
        r[i].base_seconds = repeat_seconds;
        r[i].base_tokens = repeat_tokens;
        r[i].repeats = i < 2 ? 2 : 1;
    }
    const wg_run run = { .config = c, .result = r, .complete = true, .seconds = 1 };
    json_t *sum = wg_summary_json(&run), *cells = json_object_get(sum, "cells"), *v = json_array_get(cells, 0);
    const json_t *best = json_object_get(v, "best_fixed");
    cr_assert_float_eq(real(best, "share"), 3 / 4., 1e-9);
    cr_assert_float_eq(real(best, "speedup"), 4, 1e-9);
    cr_assert_eq(json_integer_value(json_object_get(best, "cell")), 1);
    cr_assert_null(json_object_get(json_array_get(cells, 1), "best_fixed"), "only of auto");
    cr_assert_float_eq(real(v, "baseline_spread"), 0.4, 1e-9);
    cr_assert(json_is_true(json_object_get(v, "disturbed")));
    cr_assert(json_is_null(json_object_get(json_array_get(cells, 2), "disturbed")), "one repeat");
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    wg_table_print(f, sum, NULL, 0);
    fclose(f);
    cr_assert(strstr(text, "3.00x [2.94, 3.06]*") && strstr(text, "2.00x [1.96, 2.04]  "), "%s", text);
    cr_assert(strstr(text, "*: disturbed, 2 of 3 cells: repeats of plain decoding differ by up to 40 %"), "%s", text);
    cr_assert(strstr(text, "\nauto (ngram, suffix)  ") && strstr(text, "\nauto (best_of, ngram)  "), "%s", text);
    cr_assert(strstr(text, "Learnt here: the fastest is ngram, rule rejection, temperature 0, at 4.00 times plain"), "%s",
              text);
    cr_assert(strstr(text, "3 of 3 cells are faster than it and 0 slower"), "%s", text);
    cr_assert(strstr(text, "has 2.00x to 3.00x, and at least 0.50 of the fastest fixed setting"), "%s", text);
    free(text);
    json_decref(sum);
    repeat_seconds[1] = 10.4; /* less than a twentieth */
    sum = wg_summary_json(&run);
    cr_assert(json_is_false(json_object_get(json_array_get(json_object_get(sum, "cells"), 0), "disturbed")));
    json_decref(sum);
    wg_config_close(c);
}

Test(summary, nothing_measured_is_null)
{
    wg_config *c =
        config_of("{\"name\": \"t\", \"target\": {\"model\": \"target.gguf\"}, \"prompts\": {\"file\": \"prompts.jsonl\"}}");
    wg_result r = { 0 };
    const wg_run run = { .config = c, .result = &r, .energy = "no counters" };
    json_t *sum = wg_summary_json(&run);
    const json_t *v = json_array_get(json_object_get(sum, "cells"), 0);
    static const char *const keys[] = { "tau",
                                        "tau_ci",
                                        "acceptance_rate",
                                        "alpha",
                                        "speedup",
                                        "speedup_ci",
                                        "explained_speedup",
                                        "predicted_speedup",
                                        "residual_percent",
                                        "tok_s",
                                        "baseline_tok_s",
                                        "equals_baseline",
                                        "mean_acceptance_length",
                                        "mean_itl_ms",
                                        "energy" };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) cr_assert(json_is_null(json_object_get(v, keys[i])), "%s", keys[i]);
    cr_assert_str_eq(json_string_value(json_object_get(sum, "energy_unknown")), "no counters");
    cr_assert(json_is_false(json_object_get(sum, "complete")));
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    wg_table_print(f, sum, NULL, 0);
    fclose(f);
    cr_assert(strstr(text, "interrupted"), "%s", text);
    free(text);
    json_decref(sum);
    wg_config_close(c);
}
