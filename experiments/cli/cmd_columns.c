/* SPDX-License-Identifier: MIT
 * wager columns: the numbers of a run under the names and definitions of another engine (engine_metrics.h). */
#include <string.h>

#include "core/base/json.h"
#include "core/base/json_number.h"
#include "core/base/mem.h"
#include "core/base/number.h"
#include "experiments/cli/cli.h"
#include "experiments/record/run_reader.h"
#include "experiments/report/engine_metrics.h"

static void list(bool json)
{
    char formula[WG_ENGINE_FORMULA];
    const char *engine = "";
    for (const wg_engine_metric *m = wg_engine_metrics; m->engine; m++) {
        wg_engine_metric_formula(m, formula);
        if (json) {
            wg_cli_put_json(
                json_pack("{s:s, s:s, s:s, s:s}", "engine", m->engine, "name", m->name, "formula", formula, "doc", m->doc),
                false);
            continue;
        }
        if (strcmp(engine, m->engine) != 0) printf("%s%s\n", *engine ? "\n" : "", m->engine);
        engine = m->engine;
        printf("  %-40s = %s\n  %-40s   %s\n", m->name, formula, "", m->doc);
    }
}

static void print_number(const json_t *v)
{
    char text[40];
    if (json_is_integer(v)) printf(" %lld", (long long)json_integer_value(v));
    else printf(" %s", json_is_number(v) ? wg_number_text(round(json_number_value(v) * 1e4) / 1e4, text, sizeof text) : "-");
}

static void print_cell(const wg_engine_metric *first, const json_t *cell, const char *name, size_t number)
{
    printf("%scell %zu: %s\n", number ? "\n" : "", number, name);
    for (const wg_engine_metric *m = first; m->engine && !strcmp(m->engine, first->engine); m++) {
        json_t *v = wg_engine_metric_value(m, cell);
        printf("  %-40s", m->name);
        for (size_t i = 0; i < json_array_size(v); i++) print_number(json_array_get(v, i));
        if (!json_array_size(v)) print_number(v);
        putchar('\n');
        json_decref(v);
    }
}

static json_t *cell_json(const wg_engine_metric *first, const json_t *cell, const char *name, size_t number)
{
    json_t *metrics = json_object();
    for (const wg_engine_metric *m = first; m->engine && !strcmp(m->engine, first->engine); m++)
        json_object_set_new(metrics, m->name, wg_engine_metric_value(m, cell));
    return json_pack("{s:I, s:s, s:o}", "cell", (json_int_t)number, "name", name, "metrics", metrics);
}

static wg_status print_run(const char *dir, const wg_engine_metric *first, bool json, wg_error *err)
{
    wg_run_reader *run;
    WG_TRY(wg_run_reader_open_documents(&run, dir, err));
    const json_t *cells;
    json_t *all = json_array();
    const wg_status s = wg_run_reader_cells(run, &cells, err);
    for (size_t i = 0; s == WG_OK && i < json_array_size(cells); i++) {
        const json_t *cell = json_array_get(cells, i);
        char *name = wg_run_reader_cell_name(run, (int)i);
        if (json) json_array_append_new(all, cell_json(first, cell, name ? name : "", i));
        else print_cell(first, cell, name ? name : "", i);
        wg_free(name);
    }
    if (s == WG_OK && json) wg_cli_put_json(json_pack("{s:s, s:O}", "engine", first->engine, "cells", all), false);
    json_decref(all);
    wg_run_reader_close(run);
    return s;
}

int wg_cmd_columns(int argc, char **argv)
{
    const char *dir = NULL, *engine = NULL;
    bool json = false;
    const wg_engine_metric *first;
    const wg_flag flags[] = {
        { "as", 0, WG_FLAG_STRING, &engine, "ENGINE",
          "the engine whose metrics are printed for each cell of the result folder DIR", 0, 0 },
        { "json", 0, WG_FLAG_BOOL, &json, NULL, "print one JSON object for the run; for the list one object a line", 0, 0 },
        { 0 },
    };
    const int done = wg_cli_parse("columns", flags, argc, argv, &dir, 0, 1);
    if (done >= 0) return done;
    wg_error err;
    wg_status s = WG_OK;
    if (engine) s = wg_engine_metrics_of(engine, &first, &err);
    if (!s && !engine != !dir)
        s = wg_fail(&err, WG_EINVAL, "columns: %s",
                    engine ? "--as needs the result folder of a run" : "a result folder needs --as ENGINE");
    if (s) return wg_cli_fail(&err);
    if (!engine) list(json);
    else s = print_run(dir, first, json, &err);
    return s ? wg_cli_fail(&err) : WG_EXIT_OK;
}
