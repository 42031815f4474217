/* SPDX-License-Identifier: MIT
 * The table of other engines' metrics: its names, its formulas, and what is not known. Values of a run: tests/oracle. */
#include <sys/stat.h>

#include "experiments/record/run_reader.h"
#include "experiments/report/engine_metrics.h"
#include "scene.h"

static const wg_engine_metric *metric(const char *engine, const char *name)
{
    const wg_engine_metric *m;
    wg_error err;
    cr_assert_eq(wg_engine_metrics_of(engine, &m, &err), WG_OK, "%s", err.text);
    while (strcmp(m->name, name) != 0) m++;
    cr_assert_str_eq(m->engine, engine);
    return m;
}

Test(engine_metrics, rows_of_an_engine_stand_together_under_distinct_names)
{
    for (const wg_engine_metric *m = wg_engine_metrics; m->engine; m++) {
        const wg_engine_metric *first;
        wg_error err;
        cr_assert(wg_engine_metrics_of(m->engine, &first, &err) == WG_OK && *m->name && *m->doc && m->of);
        for (const wg_engine_metric *k = first; k != m; k++)
            cr_assert(!strcmp(k->engine, m->engine) && strcmp(k->name, m->name) != 0, "%s %s", m->engine, m->name);
    }
}

Test(engine_metrics, an_unknown_engine)
{
    const wg_engine_metric *m;
    wg_error err;
    cr_assert_eq(wg_engine_metrics_of("eagel", &m, &err), WG_EINVAL);
    cr_assert_str_eq(err.text,
                     "--as eagel: unknown engine; expected one of: vllm, sglang, tensorrt-llm, eagle, spec-bench, llama.cpp"
                     " (did you mean 'eagle'?)");
}

Test(engine_metrics, formulas_and_values)
{
    char text[WG_ENGINE_FORMULA];
    cr_assert_str_eq(wg_engine_metric_formula(metric("vllm", "mean_acceptance_length"), text),
                     "1 + accepted / spec_decode_num_drafts");
    cr_assert_str_eq(wg_engine_metric_formula(metric("llama.cpp", "accept"), text), "100 x accepted / drafted");
    cr_assert_str_eq(wg_engine_metric_formula(metric("sglang", "spec_verify_ct"), text), "target_passes");
    json_t *cell = json_loads("{\"accepted\":12,\"drafted\":24,\"target_passes\":8,\"spec_decode_num_drafts\":6,"
                              "\"spec_decode_num_accepted_tokens_per_pos\":[5,4,3],\"tokens\":20}",
                              0, NULL);
    static const struct {
        const char *engine, *name;
        double value;
    } rows[] = { { "vllm", "spec_decode_num_drafts", 6 },
                 { "vllm", "mean_acceptance_length", 3 },
                 { "sglang", "accept len", 2.5 },
                 { "sglang", "spec_accept_length", 2.5 },
                 { "tensorrt-llm", "acceptanceLength", 3 },
                 { "spec-bench", "Mean accepted tokens", 2.5 },
                 { "llama.cpp", "accept", 50 } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        json_t *v = wg_engine_metric_value(metric(rows[i].engine, rows[i].name), cell);
        cr_assert_float_eq(json_number_value(v), rows[i].value, 1e-12, "%s", rows[i].name);
        json_decref(v);
    }
    json_t *list = wg_engine_metric_value(metric("vllm", "per_position_acceptance_rate"), cell);
    cr_assert(json_array_size(list) == 3 && json_number_value(json_array_get(list, 1)) == 4 / 6.);
    json_decref(list);
    json_decref(cell);
}

/* Nothing was drafted: no ratio, but counts of 0. */
Test(engine_metrics, nothing_was_drafted)
{
    json_t *cell = json_loads("{\"accepted\":0,\"drafted\":0,\"target_passes\":8,\"spec_decode_num_drafts\":0,\"tokens\":8,"
                              "\"spec_decode_num_accepted_tokens_per_pos\":[],\"acceptance\":{\"conditional_by_position\":[]}}",
                              0, NULL);
    for (const wg_engine_metric *m = wg_engine_metrics; m->engine; m++) {
        json_t *v = wg_engine_metric_value(m, cell);
        const bool by_passes = m->per && !strcmp(m->per, "target_passes");
        if (json_is_array(v)) cr_assert_eq(json_array_size(v), 0);
        else if (m->per && !by_passes) cr_assert(json_is_null(v), "%s %s", m->engine, m->name);
        else if (by_passes) cr_assert_float_eq(json_number_value(v), 1, 1e-12, "plain decoding has 1: %s", m->name);
        else cr_assert(json_is_integer(v), "%s %s", m->engine, m->name);
        json_decref(v);
    }
    json_decref(cell);
}

/* A summary of an earlier schema had other definitions under these names: they are not known. */
Test(engine_metrics, a_summary_of_an_earlier_schema)
{
    static const char cells[] =
        "\"cells\":[{\"cell\":{},\"drafter\":\"ngram\",\"rule\":\"match\",\"accepted\":12,\"drafted\":24,"
        "\"spec_decode_num_drafts\":6,\"mean_acceptance_length\":3,\"acceptance\":{"
        "\"conditional_by_position\":[0.5],\"acceptance_histogram\":[3,3],\"survival_by_position\":[0.5]}}]}";
    static const char *const keys[] = { "spec_decode_num_drafts", "mean_acceptance_length" };
    static const char *const lists[] = { "conditional_by_position", "acceptance_histogram" };
    scene s;
    temp_make(&s.t);
    if (!getcwd(s.before, sizeof s.before) || chdir(s.t.dir)) abort();
    mkdir("r", 0777);
    put("r/config.json", "{}");
    for (int schema = 1; schema <= 2; schema++) {
        char text[1000];
        wg_run_reader *run;
        const json_t *all;
        wg_error err;
        snprintf(text, sizeof text, "{\"schema\":%d,%s", schema, cells);
        put("r/summary.json", text);
        cr_assert_eq(wg_run_reader_open_documents(&run, "r", &err), WG_OK, "%s", err.text);
        cr_assert_eq(wg_run_reader_cells(run, &all, &err), WG_OK);
        const json_t *cell = json_array_get(all, 0), *acceptance = json_object_get(cell, "acceptance");
        for (int i = 0; i < 2; i++) {
            cr_assert_eq(json_is_null(json_object_get(cell, keys[i])), schema == 1, "%s", keys[i]);
            cr_assert_eq(json_is_null(json_object_get(acceptance, lists[i])), schema == 1, "%s", lists[i]);
        }
        cr_assert(json_is_array(json_object_get(acceptance, "survival_by_position")));
        json_t *v = wg_engine_metric_value(metric("vllm", "mean_acceptance_length"), cell);
        cr_assert_eq(json_is_null(v), schema == 1);
        json_decref(v);
        wg_run_reader_close(run);
    }
    scene_remove(&s);
}
