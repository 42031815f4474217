/* SPDX-License-Identifier: MIT
 * Many cells: the work of checking a config, of naming cells and of printing them grows with their number, not with its
 * square. Work is counted in calls of jansson, which these functions make for every value that they look at. */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/mem.h"
#include "experiments/config/config.h"
#include "experiments/config/sweep.h"
#include "experiments/record/run_reader.h"
#include "experiments/report/report_parts.h"
#include "experiments/report/table.h"
#include "scene.h"

static double calls;

/* These replace jansson's in this program, and call them. */
json_t *json_object_get(const json_t *o, const char *key)
{
    static json_t *(*real)(const json_t *, const char *);
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, "json_object_get");
    calls++;
    return real(o, key);
}

int json_equal(const json_t *a, const json_t *b)
{
    static int (*real)(const json_t *, const json_t *);
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, "json_equal");
    calls++;
    return real(a, b);
}

static void *counted(size_t n)
{
    calls++;
    return malloc(n);
}

/* A config whose sweep has n drafts, all of one kind, under two seeds. */
static wg_config *open_many(int n)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    fputs("{\"name\": \"many\", \"target\": {\"model\": \"target.gguf\"}, \"prompts\": {\"file\": \"prompts.jsonl\"}, "
          "\"sweep\": {\"seed\": [1, 2], \"draft\": [",
          f);
    for (int i = 0; i < n; i++)
        fprintf(f, "%s{\"kind\": \"ngram\", \"k\": 2, \"threshold\": %.5f, \"label\": \"d%d\"}", i ? ", " : "", (i + 1) / 1e4,
                i);
    fputs("]}}", f);
    fclose(f);
    wg_config *c = config_of(text);
    free(text);
    return c;
}

/* A summary of these cells, half of which have no label. */
static json_t *summary_of(const wg_config *c)
{
    json_t *cells = json_array();
    for (int i = 0; i < c->n; i++) {
        json_t *cell = json_pack("{s:O, s:s, s:s, s:f, s:f, s:f, s:i, s:[ff], s:{s:f}, s:{s:f}}", "cell", c->cell[i].swept,
                                 "drafter", "ngram", "rule", "match", "temperature", 0.0, "speedup", 1 + i / 1e4,
                                 "predicted_speedup", 1 + i / 2e4, "group", c->cell[i].group, "acceptance_by_position", 0.5,
                                 0.25, "residual_percent", "total", (double)(i * 7 % c->n), "overlap", "shared", 1.0);
        if (i % 2) json_object_set_new(cell, "label", json_string(c->cell[i].setup.named_by.label));
        json_array_append_new(cells, cell);
    }
    return json_pack("{s:o}", "cells", cells);
}

typedef struct costs {
    double check, names, table, csv, pictures;
} costs;

static costs costs_of(int drafts)
{
    costs of;
    FILE *null = fopen("/dev/null", "w");
    calls = 0;
    wg_config *c = open_many(drafts);
    of.check = calls;
    json_t *summary = summary_of(c);
    calls = 0;
    wg_run_reader run = { .config = c->resolved, .summary = summary, .cells = wg_sweep_cells(c->resolved) };
    cr_assert_eq(json_array_size(run.cells), (size_t)2 * (size_t)drafts);
    for (int i = 0; i < c->n; i++) wg_free(wg_run_reader_cell_name(&run, i));
    free(wg_run_reader_about(&run));
    of.names = calls;
    calls = 0;
    wg_table_print(null, summary, NULL, 100);
    wg_table_print_markdown(null, summary, NULL);
    of.table = calls;
    calls = 0;
    wg_table_print_csv(null, summary, WG_CSV_CELLS, NULL);
    of.csv = calls;
    calls = 0;
    wg_plot_out to = { .page = json_array() };
    wg_report_plot_predicted(&to, &run, json_object_get(summary, "cells"));
    wg_report_plot_drafters(&to, &run, json_object_get(summary, "cells"));
    of.pictures = calls;
    json_decref(to.page);
    json_decref(run.cells);
    json_decref(summary);
    wg_config_close(c);
    fclose(null);
    return of;
}

Test(many_cells, work_grows_with_their_number)
{
    scene s;
    scene_make(&s);
    put("prompts.jsonl", "{\"id\": \"a\", \"prompt\": \"Once\"}\n");
    json_set_alloc_funcs(counted, free);
    const costs a = costs_of(60), b = costs_of(240);
    cr_expect(b.check < 4.8 * a.check, "check: %g calls for 120 cells, %g for 480", a.check, b.check);
    cr_expect(b.names < 4.8 * a.names, "names: %g calls, %g", a.names, b.names);
    cr_expect(b.table < 4.8 * a.table, "tables: %g calls, %g", a.table, b.table);
    cr_expect(b.csv < 4.8 * a.csv, "CSV: %g calls, %g", a.csv, b.csv);
    cr_expect(b.pictures < 4.8 * a.pictures, "drawings: %g calls, %g", a.pictures, b.pictures);
    scene_remove(&s);
}
