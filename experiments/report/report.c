/* SPDX-License-Identifier: MIT
 * The page. Every number comes from summary.json. */
#include "experiments/report/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/json.h"
#include "core/base/mem.h"
#include "experiments/report/html.h"
#include "experiments/report/plot.h"
#include "experiments/report/report_parts.h"
#include "experiments/report/table.h"
#include "core/base/json_number.h"

int wg_report_best(const json_t *cells)
{
    int best = -1;
    for (size_t i = 0; i < json_array_size(cells); i++) {
        const double v = wg_json_measured(json_array_get(cells, i), "speedup");
        if (isfinite(v) && (best < 0 || v > wg_json_measured(json_array_get(cells, (size_t)best), "speedup"))) best = (int)i;
    }
    return best;
}

void wg_report_put(FILE *f, const char *format, double v)
{
    if (isfinite(v)) fprintf(f, format, v);
    else fputc('-', f);
}

void wg_report_interval(FILE *f, const json_t *o, const char *key, const char *interval, const char *unit)
{
    wg_report_put(f, "%.2f", wg_json_measured(o, key));
    if (isfinite(wg_json_measured(o, key))) fputs(unit, f);
    if (json_is_array(json_object_get(o, interval)))
        fprintf(f, " <small>[%.2f, %.2f]</small>", wg_json_item(o, interval, 0), wg_json_item(o, interval, 1));
}

void wg_report_name(FILE *f, const wg_run_reader *run, size_t cell)
{
    char *name = wg_run_reader_cell_name(run, (int)cell);
    wg_html_name(f, name);
    wg_free(name);
}

static void put_row(FILE *f, const wg_run_reader *run, size_t cell, const char *scope)
{
    fprintf(f, "<th scope=%s class=\"w\"><span class=\"no\">%zu</span> ", scope, cell);
    wg_report_name(f, run, cell);
    fputs("</th>", f);
}

void wg_report_row(FILE *f, const wg_run_reader *run, size_t cell) { put_row(f, run, cell, "\"row\""); }

void wg_report_td(FILE *f, const char *format, double v)
{
    fputs("<td>", f);
    wg_report_put(f, format, v);
    fputs("</td>", f);
}

/* ---- the answer -------------------------------------------------------------------------------------------------- */

wg_tally wg_report_tally(const json_t *cells)
{
    wg_tally t = { 0 };
    for (size_t i = 0; i < json_array_size(cells); i++) {
        const json_t *c = json_array_get(cells, i), *equal = json_object_get(c, "equals_baseline");
        const double lo = wg_json_item(c, "speedup_ci", 0), hi = wg_json_item(c, "speedup_ci", 1);
        t.faster += lo > 1;
        t.slower += hi < 1;
        t.undecided += !(lo > 1) && !(hi < 1);
        const bool lossless = json_is_true(json_object_get(c, "lossless"));
        t.lossy += !lossless;
        t.must_equal += lossless && json_is_boolean(equal);
        t.unequal += lossless && json_is_false(equal);
        t.failed += (int)json_integer_value(json_object_get(c, "failed"));
    }
    return t;
}

static void answer(FILE *f, const wg_run_reader *run, const json_t *cells)
{
    const int best = wg_report_best(cells), n = (int)json_array_size(cells);
    const wg_tally t = wg_report_tally(cells);
    fputs("<div class=\"answer\">\n<p><strong>Answer.</strong> ", f);
    if (best < 0) fputs("No cell has a speed-up: nothing ended well on both sides.", f);
    else {
        const json_t *c = json_array_get(cells, (size_t)best);
        fputs(n > 1 ? "Fastest of all cells: " : "", f);
        wg_report_name(f, run, (size_t)best);
        fputs(" decodes at ", f);
        wg_report_interval(f, c, "speedup", "speedup_ci", "x");
        fputs(" the speed of plain decoding", f);
        fprintf(f, ", with %.2f tokens per pass of the target", wg_json_measured(c, "tau"));
        fputs(json_is_true(json_object_get(c, "lossless")) ? ".</p>\n" : " &mdash; <strong>not lossless</strong>.</p>\n", f);
        fprintf(f, "<p>Beyond chance, %d of %d %s faster than plain decoding, %d slower; %d undecided.", t.faster, n,
                n == 1 ? "cell is" : "cells are", t.slower, t.undecided);
    }
    if (t.unequal)
        fprintf(f, "</p>\n<p><strong>%d of %d cells that must repeat plain decoding do not.</strong>", t.unequal, t.must_equal);
    else if (t.must_equal)
        fprintf(f, " Text: plain decoding's, token by token, in all %d cells that must repeat it.", t.must_equal);
    fputs("</p>\n</div>\n", f);
    for (int i = 0; i < n; i++) {
        const json_t *why = json_object_get(json_array_get(cells, (size_t)i), "lossless_withdrawn");
        if (!json_is_string(why)) continue;
        fputs("<p class=\"warn\">Not lossless: ", f);
        wg_report_name(f, run, (size_t)i);
        fprintf(f, ": %s.</p>\n", json_string_value(why));
    }
    if (t.failed) fprintf(f, "<p class=\"warn\">%d pairs of requests failed and count on neither side.</p>\n", t.failed);
    if (!run->complete)
        fputs("<p class=\"warn\">The run was interrupted: these numbers are of the part that had finished. "
              "<code>wager run --resume</code> goes on.</p>\n",
              f);
    if (json_object_get(run->machine, "resumed"))
        fputs("<p class=\"soft\">This run was interrupted and resumed, so its times are from more than one session.</p>\n", f);
}

/* ---- tables ------------------------------------------------------------------------------------------------------ */

static void leave_out(wg_column_choice *c, const char *name)
{
    int n = 0;
    for (int k = 0; k < c->n; k++)
        if (strcmp(c->column[k]->name, name) != 0) c->column[n++] = c->column[k];
    c->n = n;
}

/* Puts a column first, so that a narrow screen shows it beside the cell's name. */
static void put_first(wg_column_choice *c, const char *name)
{
    for (int k = 1; k < c->n; k++) {
        const wg_column *moved = c->column[k];
        if (strcmp(moved->name, name) != 0) continue;
        memmove(c->column + 1, c->column, (size_t)k * sizeof *c->column);
        c->column[0] = moved;
    }
}

static void main_table(FILE *f, const wg_run_reader *run, const json_t *cells)
{
    const int best = wg_report_best(cells), n = (int)json_array_size(cells);
    wg_column_choice c;
    wg_columns_of(wg_columns, WG_IN_PAGE, &c);
    if (wg_run_reader_sweeps(run, "verify") || wg_run_reader_sweeps(run, "verify.rule"))
        leave_out(&c, "rule"); /* part of the cell's name */
    if (wg_run_reader_sweeps(run, "sampling.temperature")) leave_out(&c, "temperature");
    put_first(&c, "speedup");
    fputs("<h2>Numbers</h2>\n", f);
    wg_html_table(f, "A line a cell, beside its own baseline. Brackets: 95 % intervals over prompts; of predicted, the range "
                     "of the cost model.");
    fputs("<thead><tr><th scope=\"col\">cell</th>", f);
    for (int k = 0; k < c.n; k++) wg_report_head(f, c.column[k]);
    fputs("</tr></thead>\n<tbody>\n", f);
    for (size_t i = 0; i < (size_t)n; i++) {
        fputs((int)i == best ? "<tr class=\"best\">" : "<tr>", f);
        wg_report_row(f, run, i);
        for (int k = 0; k < c.n; k++) wg_report_value(f, c.column[k], json_array_get(cells, i));
        fputs("</tr>\n", f);
    }
    wg_html_table_end(f);
    wg_table_overlap(f, cells, "<p class=\"soft\">", ".</p>");
    wg_table_draft_contexts(f, cells, "<p class=\"soft\">Warning: ", ".</p>");
    wg_table_intervals(f, cells, "<p class=\"soft\">", "</p>\n");
}

static bool any_has(const json_t *cells, const char *list)
{
    for (size_t i = 0; i < json_array_size(cells); i++)
        if (json_array_size(json_object_get(json_array_get(cells, i), list))) return true;
    return false;
}

/* A row for each element of a list that cells have. */
static void elements(FILE *f, const wg_run_reader *run, const json_t *cells, const char *of, const wg_column *columns,
                     const char *caption)
{
    wg_column_choice c;
    wg_columns_of(columns, WG_IN_PAGE, &c);
    wg_html_table(f, caption);
    fputs("<thead><tr><th scope=\"col\">cell</th>", f);
    for (int k = 0; k < c.n; k++) wg_report_head(f, c.column[k]);
    fputs("</tr></thead>\n<tbody>\n", f);
    for (size_t i = 0; i < json_array_size(cells); i++) {
        const json_t *list = json_object_get(json_array_get(cells, i), of);
        char scope[64];
        for (size_t k = 0; k < json_array_size(list); k++) {
            fputs("<tr>", f);
            snprintf(scope, sizeof scope, "\"rowgroup\" rowspan=\"%zu\"", json_array_size(list));
            if (k == 0) put_row(f, run, i, scope);
            for (int j = 0; j < c.n; j++) wg_report_value(f, c.column[j], json_array_get(list, k));
            fputs("</tr>\n", f);
        }
    }
    wg_html_table_end(f);
}

static void categories(const wg_plot_out *to, const wg_run_reader *run, const json_t *cells, bool drawings)
{
    FILE *f = to->f;
    if (!any_has(cells, "categories")) return;
    fputs("<h2>By category</h2>\n", f);
    if (drawings) wg_report_plot_drafters(to, run, cells);
    if (drawings) wg_report_plot_categories(to, run, cells);
    elements(f, run, cells, "categories", wg_category_columns,
             "Speed-up and acceptance by category, with 95 % intervals over its prompts.");
}

static void turns(FILE *f, const wg_run_reader *run, const json_t *cells)
{
    if (!any_has(cells, "turns")) return;
    fputs("<h2>By turn</h2>\n", f);
    elements(f, run, cells, "turns", wg_turn_columns,
             "Speed-up and acceptance by turn of the conversation, with 95 % intervals over conversations.");
}

static void parts(FILE *f, const wg_run_reader *run, const json_t *cells)
{
    if (!any_has(cells, "parts")) return;
    fputs("<h2>Components of composite drafters</h2>\n", f);
    elements(
        f, run, cells, "parts", wg_part_columns,
        "By component: steps in which it drafted and in which its draft was verified (taken); its accepted tokens, of them "
        "those that another component had drafted too (shared) and those that no other had in steps where all drafted "
        "(alone); and how many of a step's tokens it had drafted, verified or not.");
}

/* ---- phases of a pass -------------------------------------------------------------------------------------------- */

static double phase(const wg_column *c, const json_t *cell) { return json_number_value(wg_column_value(cell, c->path)); }

static void phases(FILE *f, const wg_run_reader *run, const json_t *cells)
{
    wg_column_choice c;
    double longest = 0;
    wg_columns_of(wg_columns, WG_IN_PHASES, &c);
    for (size_t i = 0; i < json_array_size(cells); i++) {
        double all = 0;
        for (int k = 0; k < c.n; k++) all += fmax(0, phase(c.column[k], json_array_get(cells, i)));
        longest = fmax(longest, all);
    }
    if (!(longest > 0)) return;
    fputs("<h3>Where the time of a pass goes</h3>\n<ul class=\"legend\">", f);
    for (int k = 0; k < c.n; k++) fprintf(f, "<li><i class=\"p%d\"></i>%s</li>", k, c.column[k]->doc);
    fputs("</ul>\n", f);
    wg_html_table(f, "Milliseconds of a pass of the target, by phase.");
    fputs("<thead><tr><th scope=\"col\">cell</th><th scope=\"col\" class=\"l share\">share</th>", f);
    for (int k = 0; k < c.n; k++) wg_report_head(f, c.column[k]);
    fputs("</tr></thead>\n<tbody>\n", f);
    for (size_t i = 0; i < json_array_size(cells); i++) {
        const json_t *cell = json_array_get(cells, i);
        fputs("<tr>", f);
        wg_report_row(f, run, i);
        fputs("<td><div class=\"bar\" aria-hidden=\"true\">", f);
        for (int k = 0; k < c.n; k++) {
            const double v = phase(c.column[k], cell);
            if (v > 0) fprintf(f, "<span class=\"p%d\" style=\"width:%.2f%%\"></span>", k, 100 * v / longest);
        }
        fputs("</div></td>", f);
        for (int k = 0; k < c.n; k++) wg_report_value(f, c.column[k], cell);
        fputs("</tr>\n", f);
    }
    wg_html_table_end(f);
}

/* ---- environment ------------------------------------------------------------------------------------------------- */

static void leaves(FILE *f, const json_t *v, char *path, size_t end, size_t size)
{
    const char *key;
    json_t *inner;
    if (json_is_object(v)) {
        json_object_foreach((json_t *)v, key, inner) {
            const int n = snprintf(path + end, size - end, "%s%s", end ? " / " : "", key);
            if (n > 0 && end + (size_t)n < size) leaves(f, inner, path, end + (size_t)n, size);
            path[end] = '\0';
        }
        return;
    }
    char *text = json_is_string(v) ? wg_strdup(json_string_value(v)) : wg_json_canonical(v, false);
    fputs("<tr><th scope=\"row\" class=\"w\">", f);
    wg_html_name(f, path);
    fputs("</th><td class=\"w l mono\">", f);
    wg_html_puts(f, text);
    fputs("</td></tr>\n", f);
    wg_free(text);
}

static void provenance(FILE *f, const wg_run_reader *run)
{
    char path[600] = "";
    const json_t *cells = json_object_get(run->summary, "cells");
    fputs("<h2>What ran it</h2>\n", f);
    wg_html_table(f, "Program, machine and files, with their digests.");
    fputs("<thead><tr><th scope=\"col\">what</th><th scope=\"col\" class=\"l\">value</th></tr></thead>\n<tbody>\n", f);
    if (run->machine) leaves(f, run->machine, path, 0, sizeof path);
    wg_html_table_end(f);
    wg_html_table(f, "SHA-256 of all outputs of a cell.");
    fputs("<thead><tr><th scope=\"col\">cell</th><th scope=\"col\" class=\"l\">digest</th></tr></thead>\n<tbody>\n", f);
    for (size_t i = 0; i < json_array_size(cells); i++) {
        fputs("<tr>", f);
        wg_report_row(f, run, i);
        fputs("<td class=\"l mono w\">", f);
        wg_html_puts(f, json_string_value(json_object_get(json_array_get(cells, i), "output_sha256")));
        fputs("</td></tr>\n", f);
    }
    wg_html_table_end(f);
    fputs("<h3>Config</h3>\n<pre class=\"columns\">", f);
    char *text = wg_json_canonical(run->config, true);
    wg_html_puts(f, text);
    wg_free(text);
    fputs("</pre>\n", f);
}

wg_status wg_report_write(FILE *f, const wg_run_reader *run, bool drawings, wg_error *err)
{
    const json_t *cells;
    const char *name = json_string_value(json_object_get(run->config, "name")),
               *question = json_string_value(json_object_get(run->config, "question"));
    WG_TRY(wg_run_reader_cells(run, &cells, err));
    wg_html_begin(f, name ? name : "run");
    fputs("<h1>", f);
    wg_html_puts(f, question && *question ? question : name);
    fprintf(f, "</h1>\n<p class=\"soft\">");
    wg_html_puts(f, name);
    fputs(", ", f);
    wg_html_puts(f, json_string_value(json_object_get(run->machine, "started")));
    if (!run->published) fprintf(f, ", %d requests of %d prompts</p>\n", run->n, run->n_asked);
    else fputs("a published result: config.json and summary.json, without the requests and the machine</p>\n", f);
    answer(f, run, cells);
    main_table(f, run, cells);
    const bool drawn = drawings && wg_plot_available(WG_PLOT_PAGE);
    char *about = wg_run_reader_about(run);
    const wg_plot_out to = { .f = f, .about = about };
    if (drawn) wg_report_plot_speedups(&to, run, cells);
    else if (drawings)
        fputs("<p class=\"soft\">There is no gnuplot on the machine that wrote this page, so it has tables only.</p>\n", f);
    fputs("<h2>How it comes about</h2>\n", f);
    if (drawn) wg_report_plot_isolines(&to, run, cells);
    if (drawn) wg_report_plot_temperatures(&to, run, cells);
    if (drawn) wg_report_plot_batches(&to, run, cells);
    if (drawn) wg_report_plot_predicted(&to, run, cells);
    if (drawn) wg_report_plot_lengths(&to, run, cells);
    if (drawn) wg_report_plot_positions(&to, run, cells);
    wg_report_acceptance(f, run, cells);
    wg_report_confidence(&to, run, cells, drawn);
    parts(f, run, cells);
    phases(f, run, cells);
    if (drawn) wg_report_plot_ttft(&to, run, cells);
    if (drawn) wg_report_plot_tpot(&to, run, cells);
    wg_report_use(f, run, cells);
    categories(&to, run, cells, drawn);
    turns(f, run, cells);
    if (!run->published) wg_report_transcripts(f, run, wg_report_best(cells));
    provenance(f, run);
    wg_report_words(f);
    if (drawn) wg_plot_script(f);
    wg_html_end(f);
    free(about);
    return WG_OK;
}
