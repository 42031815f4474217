/* SPDX-License-Identifier: MIT
 * The drawings of a report. Tables of the page contain the same numbers. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/base/json_number.h"
#include "experiments/report/charts.h"
#include "experiments/report/report_parts.h"

enum { LINES = 8, FASTEST = 6, NAMED = 5 };

static const json_t *cell_at(const json_t *cells, size_t i) { return json_array_get(cells, i); }

wg_estimate_ci wg_report_estimate(const json_t *o, const char *key, const char *interval)
{
    return (wg_estimate_ci){ wg_json_measured(o, key), wg_json_item(o, interval, 0), wg_json_item(o, interval, 1) };
}

static const wg_estimate_ci none = { NAN, NAN, NAN };

int wg_report_fastest(const json_t *cells, size_t *chosen, int most, const char *list, size_t least)
{
    int n = 0;
    for (size_t i = 0; i < json_array_size(cells); i++) {
        if (list && json_array_size(json_object_get(cell_at(cells, i), list)) < least) continue;
        const double v = wg_json_measured(cell_at(cells, i), "speedup");
        int at = n < most ? n : most - 1;
        if (n == most && !(v > wg_json_measured(cell_at(cells, chosen[at]), "speedup"))) continue;
        for (; at > 0 && v > wg_json_measured(cell_at(cells, chosen[at - 1]), "speedup"); at--) chosen[at] = chosen[at - 1];
        chosen[at] = i;
        n += n < most;
    }
    return n;
}

char *wg_report_numbered(const wg_run_reader *run, size_t cell)
{
    char *name = wg_run_reader_cell_name(run, (int)cell);
    const size_t n = name ? strlen(name) + 32 : 0;
    char *text = name ? wg_alloc(n, 1) : NULL;
    if (text) snprintf(text, n, "%zu  %s", cell, name);
    wg_free(name);
    return text;
}

/* ---- ratios ------------------------------------------------------------------------------------------------------ */

void wg_report_plot_speedups(const wg_plot_out *to, const wg_run_reader *run, const json_t *cells)
{
    const size_t n = json_array_size(cells);
    wg_forest_plot_row *row = wg_calloc(n, sizeof *row);
    bool any = false;
    for (size_t i = 0; row && i < n; i++) {
        row[i] =
            (wg_forest_plot_row){ wg_report_numbered(run, i),
                                  false,
                                  { wg_report_estimate(cell_at(cells, i), "speedup", "speedup_ci"),
                                    wg_report_estimate(cell_at(cells, i), "predicted_speedup", "predicted_speedup_range") } };
        any = any || isfinite(row[i].point[1].v);
    }
    const wg_forest_plot o = {
        .title = any ? "Speed-up of each cell, measured and predicted" : "Speed-up of each cell",
        .caption = any ? "Speed-up of each cell with its 95 % interval, above what the cost model had predicted with the "
                         "spread of its calibration. The dashed line is plain decoding."
                       : "Speed-up of each cell with its 95 % interval. The dashed line is plain decoding.",
        .axis = "speed-up (plain decoding: 1)",
        .series = { any ? "measured" : NULL, any ? "predicted" : NULL },
        .digits = 2,
        .row = row,
        .n = row ? (int)n : 0
    };
    wg_forest_plot_figure(to, &o);
    for (size_t i = 0; row && i < n; i++) wg_free(row[i].name);
    wg_free(row);
}

void wg_report_by_category(const wg_plot_out *to, const wg_run_reader *run, const json_t *cells, const size_t *chosen, int n,
                           const char *title, const char *caption)
{
    size_t rows = 0, at = 0;
    for (int i = 0; i < n; i++) rows += 2 + json_array_size(json_object_get(cell_at(cells, chosen[i]), "categories"));
    wg_forest_plot_row *row = n ? wg_calloc(rows, sizeof *row) : NULL;
    for (int i = 0; row && i < n; i++) {
        const json_t *c = cell_at(cells, chosen[i]), *list = json_object_get(c, "categories");
        row[at++] = (wg_forest_plot_row){ wg_report_numbered(run, chosen[i]), false, { none, none } };
        row[at++] =
            (wg_forest_plot_row){ wg_strdup("all prompts"), true, { wg_report_estimate(c, "speedup", "speedup_ci"), none } };
        for (size_t k = 0; k < json_array_size(list); k++) {
            const json_t *one = json_array_get(list, k);
            row[at++] = (wg_forest_plot_row){ wg_strdup(json_string_value(json_object_get(one, "category"))),
                                              true,
                                              { wg_report_estimate(one, "speedup", "speedup_ci"), none } };
        }
    }
    const wg_forest_plot o = {
        .title = title, .caption = caption, .axis = "speed-up (plain decoding: 1)", .digits = 2, .row = row, .n = (int)at
    };
    if (row) wg_forest_plot_figure(to, &o);
    for (size_t i = 0; i < at; i++) wg_free(row[i].name);
    wg_free(row);
}

void wg_report_plot_categories(const wg_plot_out *to, const wg_run_reader *run, const json_t *cells)
{
    size_t chosen[FASTEST];
    char caption[200];
    snprintf(caption, sizeof caption, "Speed-up by category with 95 %% intervals over its prompts.%s",
             json_array_size(cells) > FASTEST ? " The six fastest cells; the table has all." : "");
    const int n = wg_report_fastest(cells, chosen, FASTEST, "categories", 2);
    wg_report_by_category(to, run, cells, chosen, n, "Speed-up by category", caption);
}

/* ---- predicted against measured ---------------------------------------------------------------------------------- */

static double off(const json_t *cell) { return fabs(wg_json_measured(json_object_get(cell, "residual_percent"), "total")); }

/* The deviation of the cell that is the NAMED-th farthest off; 0 where there are fewer. */
static double farthest(const json_t *cells)
{
    double most[NAMED] = { 0 }; /* descending */
    for (size_t i = 0; i < json_array_size(cells); i++) {
        double v = off(cell_at(cells, i));
        for (int k = 0; k < NAMED; k++)
            if (v > most[k]) {
                const double less = most[k];
                most[k] = v;
                v = less;
            }
    }
    return most[NAMED - 1];
}

/* Names the points that are farthest from the diagonal; names that would overlap are left out. A name stands on its point's
 * side of the diagonal. */
static void name_farthest(FILE *s, const json_t *cells, double apart)
{
    const double least = farthest(cells);
    double at[NAMED][2];
    int n = 0;
    for (size_t i = 0; i < json_array_size(cells) && n < NAMED; i++) {
        const double x = wg_json_measured(cell_at(cells, i), "predicted_speedup"),
                     y = wg_json_measured(cell_at(cells, i), "speedup");
        bool alone = off(cell_at(cells, i)) >= least;
        for (int k = 0; k < n; k++) alone = alone && (fabs(at[k][0] - x) > apart || fabs(at[k][1] - y) > apart);
        if (!alone) continue;
        at[n][0] = x, at[n++][1] = y;
        fprintf(s, "set label '%zu' at %.6g,%.6g %s\n", i, x, y,
                y > x ? "right offset character -0.7,0.5" : "left offset character 0.7,-0.5");
    }
}

typedef struct predicted {
    const wg_run_reader *run;
    const json_t *cells;
} predicted;

static int draw_predicted(FILE *s, int width, const void *arg)
{
    const predicted *of = arg;
    const json_t *cells = of->cells;
    double least = 1, most = 1;
    int drawn = 0;
    wg_plot_look(s);
    fputs("$data << EOD\n", s);
    for (size_t i = 0; i < json_array_size(cells); i++) {
        const wg_estimate_ci x = wg_report_estimate(cell_at(cells, i), "predicted_speedup", "predicted_speedup_range"),
                             y = wg_report_estimate(cell_at(cells, i), "speedup", "speedup_ci");
        if (!isfinite(x.v) || !isfinite(y.v)) continue;
        drawn++;
        least = fmin(least, fmin(x.v, y.v));
        most = fmax(most, fmax(x.v, y.v));
        fprintf(s, "%.6g %.6g %.6g %.6g %.6g %.6g", x.v, y.v, isfinite(x.lo) ? x.lo : x.v, isfinite(x.hi) ? x.hi : x.v,
                isfinite(y.lo) ? y.lo : y.v, isfinite(y.hi) ? y.hi : y.v);
        char *name = wg_report_numbered(of->run, i);
        wg_plot_note(s, "%s: measured %.2fx, predicted %.2fx", name ? name : "", y.v, x.v);
        fputc('\n', s);
        wg_free(name);
    }
    fputs("EOD\n", s);
    const double lo = fmax(0, least - 0.1), hi = most + 0.1;
    name_farthest(s, cells, (hi - lo) / 20);
    fprintf(s,
            "set grid\nset size square\nset xlabel 'predicted'\nset ylabel 'measured'\nset xrange [%g:%g]\nset yrange [%g:%g]\n"
            "plot x with lines dt 2 lw 1.5 lc rgb '%s', $data using 1:2:3:4:5:6 with xyerrorbars pt -1 lw 1 lc rgb '%s', "
            "$data using 1:2:7 with labels hypertext point pt 7 ps 0.6 lc rgb '%s'\n",
            lo, hi, lo, hi, wg_plot_colour(7), wg_plot_colour(0), wg_plot_colour(0));
    return drawn < 2 ? 0 : width == WG_PLOT_BROAD ? 440 : 340;
}

void wg_report_plot_predicted(const wg_plot_out *to, const wg_run_reader *run, const json_t *cells)
{
    const predicted of = { run, cells };
    const wg_plot p = {
        .title = "Speed-up measured against predicted",
        .caption = "Speed-up measured (95 % intervals) against predicted (spread of the calibration), a point a cell. On the "
                   "dashed line the cost model is right; the numbers name the cells farthest off.",
        .draw = draw_predicted,
        .arg = &of
    };
    wg_plot_figure(to, &p);
}

/* ---- curves ------------------------------------------------------------------------------------------------------ */

void wg_report_plot_positions(const wg_plot_out *to, const wg_run_reader *run, const json_t *cells)
{
    size_t chosen[LINES];
    wg_chart_line curve[LINES];
    const int n = wg_report_fastest(cells, chosen, LINES, "acceptance_by_position", 2);
    for (int k = 0; k < n; k++) {
        const json_t *c = cell_at(cells, chosen[k]);
        const size_t all = json_array_size(json_object_get(c, "acceptance_by_position"));
        curve[k] = (wg_chart_line){ wg_report_numbered(run, chosen[k]), wg_calloc(all, sizeof(wg_chart_point)), (int)all };
        for (size_t d = 0; curve[k].point && d < all; d++)
            curve[k].point[d] = (wg_chart_point){ (double)d + 1, wg_json_item(c, "acceptance_by_position", d), NAN, NAN };
        if (!curve[k].point) curve[k].n = 0;
    }
    const wg_line_chart o = { .title = "Acceptance by position in the draft",
                              .caption =
                                  json_array_size(cells) > LINES
                                      ? "Acceptance by position, of steps whose draft was that deep: the eight fastest cells."
                                      : "Acceptance by position, of steps whose draft was that deep.",
                              .x = "position in the draft",
                              .y = "share accepted so far",
                              .range = "[0:1]",
                              .curve = curve,
                              .n = n };
    wg_line_chart_figure(to, &o);
    for (int k = 0; k < n; k++) {
        wg_free(curve[k].name);
        wg_free(curve[k].point);
    }
}

typedef struct measured {
    double length;
    wg_estimate_ci tau;
    char *rest;
} measured;

static double length_of(const json_t *config)
{
    const json_t *draft = json_object_get(config, "draft");
    static const char *const keys[] = { "length", "k" };
    for (int i = 0; i < 2; i++)
        if (json_is_integer(json_object_get(draft, keys[i]))) return json_number_value(json_object_get(draft, keys[i]));
    return NAN;
}

/* The name of a cell without its draft length, which is common to the cells of a curve. */
static char *rest_of(const wg_run_reader *run, size_t cell)
{
    static const char *const parts[] = { "length=", "k=" };
    char *name = wg_run_reader_cell_name(run, (int)cell);
    for (int i = 0; i < 2 && name; i++) {
        char *at = strstr(name, parts[i]);
        if (!at || (at > name && at[-1] != '(' && at[-1] != ' ')) continue;
        char *end = at + strcspn(at, ",)");
        if (*end == ',') end += 1 + (end[1] == ' ');
        memmove(at, end, strlen(end) + 1);
    }
    char *empty = name ? strstr(name, "()") : NULL;
    if (empty) memmove(empty, empty + 2, strlen(empty + 2) + 1);
    return name;
}

static int by_rest(const measured *x, const measured *y) { return strcmp(x->rest ? x->rest : "", y->rest ? y->rest : ""); }

static int by_curve(const void *a, const void *b)
{
    const measured *x = a, *y = b;
    const int c = by_rest(x, y);
    return c ? c : (x->length > y->length) - (x->length < y->length);
}

/* Joins neighbours of one name to curves and returns their number; a single point is no curve. */
static int join(wg_chart_line *curve, wg_chart_point *point, const measured *m, int n)
{
    int curves = 0;
    for (int i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && by_rest(&m[i], &m[end]) == 0;) end++;
        for (int k = i; k < end; k++) point[k] = (wg_chart_point){ m[k].length, m[k].tau.v, m[k].tau.lo, m[k].tau.hi };
        if (m[end - 1].length > m[i].length) curve[curves++] = (wg_chart_line){ m[i].rest, &point[i], end - i };
    }
    return curves;
}

void wg_report_plot_lengths(const wg_plot_out *to, const wg_run_reader *run, const json_t *cells)
{
    const size_t n = json_array_size(cells);
    measured *m = wg_calloc(n, sizeof *m);
    wg_chart_line *curve = wg_calloc(n, sizeof *curve);
    wg_chart_point *point = wg_calloc(n, sizeof *point);
    int kept = 0;
    for (size_t i = 0; m && i < n; i++) {
        m[kept] = (measured){ length_of(json_object_get(json_array_get(run->cells, i), "config")),
                              wg_report_estimate(cell_at(cells, i), "tau", "tau_ci"), NULL };
        if (!isfinite(m[kept].length) || !isfinite(m[kept].tau.v)) continue;
        m[kept++].rest = rest_of(run, i);
    }
    if (m) qsort(m, (size_t)kept, sizeof *m, by_curve);
    const int curves = m && curve && point ? join(curve, point, m, kept) : 0;
    const wg_line_chart o = { .title = "Tau against draft length",
                              .caption = "Tokens per pass of the target against the length of the draft, with 95 % intervals.",
                              .x = "draft length",
                              .y = "tau",
                              .range = "[1:*]",
                              .curve = curve,
                              .n = curves };
    if (curves <= 2 * LINES) wg_line_chart_figure(to, &o);
    for (int i = 0; i < kept; i++) wg_free(m[i].rest);
    wg_free(m);
    wg_free(curve);
    wg_free(point);
}
