/* SPDX-License-Identifier: MIT
 * The table of a run in its forms: labels, the width of LaTeX, the wide table. */
#include "core/base/mem.h"
#include "experiments/report/plot.h"
#include "experiments/report/report_parts.h"
#include "experiments/report/table.h"
#include "experiments/run/runner.h"
#include "scene.h"

static scene s;
static void setup(void)
{
    scene_make(&s);
    put("prompts.jsonl", "{\"id\": \"<cat>\", \"category\": \"a&b\", \"prompt\": \"The <b>cat</b></script><!-- sat\"}\n"
                         "{\"id\": \"dog\", \"category\": \"c\", \"prompt\": \"abababab\"}\n");
}
static void teardown(void) { scene_remove(&s); }
TestSuite(report_forms, .init = setup, .fini = teardown, .timeout = 120);

static void run(const char *out, const char *more)
{
    char text[900];
    wg_error err;
    wg_run r;
    char *path;
    snprintf(
        text, sizeof text,
        "{\"name\": \"t\", \"question\": \"Is 1 < 2 & \\\"so\\\"?\", \"target\": {\"model\": \"target.gguf\", \"threads\": 1},"
        "\"prompts\": {\"file\": \"prompts.jsonl\"}, \"max_tokens\": 24, \"draft\": {\"kind\": \"model\", \"model\": "
        "\"draft.gguf\", \"length\": 4}%s%s}",
        strstr(more, "\"trace\"") ? "" : ", \"trace\": \"steps\"", more);
    wg_config *c = config_of(text);
    const wg_run_options o = { .out = out };
    cr_assert_eq(wg_run_config(c, &o, &r, &path, &err), WG_OK, "%s", err.text);
    wg_run_free(&r);
    wg_free(path);
    wg_config_close(c);
}

static wg_run_reader *reader_of(const char *dir)
{
    wg_error err;
    wg_run_reader *f;
    cr_assert_eq(wg_run_reader_open(&f, dir, &err), WG_OK, "%s", err.text);
    return f;
}

static char *form_of(const wg_run_reader *f, int form) /* 0: terminal, 1: Markdown, 2: LaTeX */
{
    char *text = NULL;
    size_t n = 0;
    FILE *m = open_memstream(&text, &n);
    if (form == 0) wg_table_print(m, f->summary, NULL, 0);
    else if (form == 1) wg_table_print_markdown(m, f->summary, NULL);
    else wg_table_print_latex(m, f->summary, NULL, "t", "c");
    fclose(m);
    return text;
}

/* Markdown's marks of a name are LaTeX's in LaTeX. */
Test(report_forms, latex_sets_names_in_typewriter)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    wg_table_put_latex(f, "does `auto_x` pay, or `none");
    fclose(f);
    cr_assert_str_eq(text, "does \\texttt{auto\\_x} pay, or none");
    free(text);
}

/* A label is the cell's name everywhere, and no setting: not swept, and no other baseline. */
Test(report_forms, labels_name_cells)
{
    run("out",
        ", \"sweep\": {\"sampling.temperature\": [0, 0.8], \"draft\": [{\"kind\": \"ngram\", \"k\": 2, \"label\": \"short\"}, "
        "{\"kind\": \"ngram\", \"k\": 5, \"label\": \"long & odd\"}, {\"kind\": \"recycle\", \"nodes\": 4}]}");
    wg_run_reader *f = reader_of("out");
    const json_t *cells = json_object_get(f->summary, "cells"), *cell = json_array_get(cells, 2);
    cr_assert_eq(json_array_size(cells), 6);
    cr_assert_str_eq(json_string_value(json_object_get(cell, "label")), "long & odd");
    cr_assert_null(json_object_get(json_object_get(cell, "cell"), "draft.label"));
    cr_assert_null(json_object_get(json_array_get(cells, 4), "label"));
    for (size_t i = 0; i < 6; i++)
        cr_assert_eq(json_integer_value(json_object_get(json_array_get(cells, i), "group")), (json_int_t)i % 2,
                     "a baseline each");
    char *name = wg_run_reader_cell_name(f, 2);
    cr_assert_str_eq(name, "long & odd, temperature=0");
    wg_free(name);
    char *text[] = { form_of(f, 0), form_of(f, 1), form_of(f, 2) };
    cr_assert(!strncmp(text[0], "draft  ", 7) && strstr(text[0], "\nlong & odd  rejection  ") && strstr(text[0], "\nrecycle  "),
              "%s", text[0]);
    cr_assert(!strncmp(text[1], "| draft | rule | temp |", 23) && strstr(text[1], "\n| short | rejection | 0 |"), "%s",
              text[1]);
    cr_assert(strstr(text[2], "\nlong \\& odd & rejection & 0.8 & "), "%s", text[2]);
    for (int i = 0; i < 3; i++) free(text[i]);
    if (wg_plot_available(WG_PLOT_SVG)) {
        int files;
        wg_error err;
        char *latex_text = NULL;
        size_t n = 0;
        FILE *m = open_memstream(&latex_text, &n);
        cr_assert_eq(wg_report_figures("f", f, WG_PLOT_SVG, m, &files, &err), WG_OK, "%s", err.text);
        fclose(m);
        char *svg = file_read("f/speedups.svg", NULL);
        cr_assert(strstr(svg, ">2  long &amp; odd, temperature=0<"), "%s", svg);
        cr_assert(strstr(latex_text, "\\includegraphics[width=\\linewidth]{f/speedups}\n\\caption{Speed-up of each cell"), "%s",
                  latex_text);
        cr_assert(strstr(latex_text, "\\label{fig:t-speedups}\n\\end{figure}\n"));
        free(svg);
        free(latex_text);
    }
    wg_run_reader_close(f);
}

/* Many swept options: they stand in the first column, which wraps, so that the others keep their width. */
Test(report_forms, latex_fits_a_column)
{
    run("out",
        ", \"sweep\": {\"draft\": [{\"kind\": \"ngram\", \"k\": 2, \"n_max\": 2, \"threshold\": 0.3, \"keep\": 0.5, "
        "\"n_min\": 1}, {\"kind\": \"ngram\", \"k\": 5, \"n_max\": 4, \"threshold\": 0.4, \"keep\": 0.25, \"n_min\": 2}, "
        "{\"kind\": \"recycle\", \"nodes\": 4}]}");
    wg_run_reader *f = reader_of("out");
    json_t *cell = json_array_get(json_object_get(f->summary, "cells"), 0);
    json_object_set_new(cell, "tau", json_real(2.25));
    json_object_set_new(cell, "tau_ci", json_pack("[ff]", 2.0, 2.5));
    json_object_set_new(cell, "speedup_ci", json_pack("[ff]", 1.0, 1.5));
    char *text = form_of(f, 2);
    const char *form = strstr(text, "\\begin{tabular}{@{}p{");
    double points = 0;
    cr_assert(form && sscanf(form, "\\begin{tabular}{@{}p{%lfpt}lrrrr@{}}", &points) == 1 && points > 60 && points < 200, "%s",
              text);
    cr_assert(strstr(text, "\ndraft & rule & temp & tau & accepted & speed-up \\\\\n"), "%s", text);
    cr_assert(
        strstr(text, "\n\\raggedright ngram, k=\\allowbreak{}2, keep=\\allowbreak{}0.\\allowbreak{}5, n\\_\\allowbreak{}max="),
        "%s", text);
    free(text);
    wg_run_reader_close(f);
}

/* The table of a run as text; `list` as of --columns, or NULL. */
static char *table_of(const wg_run_reader *f, const char *list)
{
    char *text = NULL;
    size_t n;
    wg_error err;
    wg_column_choice chosen;
    if (list) cr_assert_eq(wg_columns_named(list, &chosen, &err), WG_OK, "%s", err.text);
    FILE *m = open_memstream(&text, &n);
    wg_table_print(m, f->summary, list ? &chosen : NULL, 0);
    fclose(m);
    return text;
}

/* What a model foretold is in the wide table only. */
Test(report_forms, predictions_are_wide)
{
    run("out", ", \"sweep\": {\"draft.length\": [2, 3]}");
    wg_run_reader *f = reader_of("out");
    char *usual = table_of(f, NULL), *wide = table_of(f, "wide");
    cr_assert(strstr(usual, "speed-up") && !strstr(usual, "predicted") && !strstr(usual, "residual"), "%s", usual);
    cr_assert(strstr(wide, "speed-up") && strstr(wide, "predicted") && strstr(wide, "residual"), "%s", wide);
    free(usual);
    free(wide);
    wg_run_reader_close(f);
}
