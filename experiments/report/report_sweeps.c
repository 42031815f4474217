/* SPDX-License-Identifier: MIT
 * Drawings over what a sweep varies: drafters by category, the fastest cell at each temperature or batch, and tau against the
 * cost of a round. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/base/json_number.h"
#include "experiments/report/bar_chart.h"
#include "experiments/report/report_parts.h"
#include "experiments/report/scatter_plot.h"

enum { SLOPES = 9 };

static const json_t *cell_at(const json_t *cells, size_t i) { return json_array_get(cells, i); }

/* ---- drafters by category ---------------------------------------------------------------------------------------- */

/* The fastest cell of each drafter, fastest first, at most WG_PLOT_SERIES; returns their number. */
static int of_each_drafter(const json_t *cells, size_t *chosen)
{
    int n = 0;
    for (size_t i = 0; i < json_array_size(cells); i++) {
        const json_t *c = cell_at(cells, i);
        const double v = wg_json_measured(c, "speedup");
        bool best = isfinite(v) && json_array_size(json_object_get(c, "categories")) > 1;
        for (size_t k = 0; k < json_array_size(cells) && best; k++) {
            const double other = wg_json_measured(cell_at(cells, k), "speedup");
            best = strcmp(wg_json_word(cell_at(cells, k), "drafter"), wg_json_word(c, "drafter")) != 0 || !(other > v) ||
                   (other == v && k >= i);
        }
        if (!best) continue;
        int at = n < WG_PLOT_SERIES ? n : n - 1;
        if (n == WG_PLOT_SERIES && !(v > wg_json_measured(cell_at(cells, chosen[at]), "speedup"))) continue;
        for (; at > 0 && v > wg_json_measured(cell_at(cells, chosen[at - 1]), "speedup"); at--) chosen[at] = chosen[at - 1];
        chosen[at] = i;
        n += n < WG_PLOT_SERIES;
    }
    return n;
}

static wg_estimate_ci of_category(const json_t *cell, const char *category)
{
    size_t i;
    json_t *one;
    json_array_foreach(json_object_get(cell, "categories"), i, one)
        if (!strcmp(wg_json_word(one, "category"), category)) return wg_report_estimate(one, "speedup", "speedup_ci");
    return (wg_estimate_ci){ NAN, NAN, NAN };
}

void wg_report_plot_drafters(const wg_plot_out *to, const wg_run_reader *run, const json_t *cells)
{
    size_t chosen[WG_PLOT_SERIES];
    const int n = of_each_drafter(cells, chosen);
    const json_t *list = n ? json_object_get(cell_at(cells, chosen[0]), "categories") : NULL;
    const int groups = n > 1 ? (int)json_array_size(list) : 0;
    char *series[WG_PLOT_SERIES] = { NULL }, **group = groups ? wg_calloc((size_t)groups, sizeof *group) : NULL;
    wg_estimate_ci *value = groups ? wg_calloc((size_t)groups * (size_t)n, sizeof *value) : NULL;
    bool ok = group && value;
    for (int k = 0; k < n && ok; k++) ok = (series[k] = wg_report_numbered(run, chosen[k])) != NULL;
    for (int g = 0; g < groups && ok; g++) {
        const char *category = wg_json_word(json_array_get(list, (size_t)g), "category");
        ok = (group[g] = wg_strdup(category)) != NULL;
        for (int k = 0; k < n; k++) value[g * n + k] = of_category(cell_at(cells, chosen[k]), category);
    }
    const wg_bar_chart o = { .title = "Speed-up by drafter and category",
                             .caption = "Speed-up by category, with 95 % intervals over its prompts: of each drafter its "
                                        "fastest cell. The dashed line is plain decoding.",
                             .y = "speed-up",
                             .group = group,
                             .series = series,
                             .value = value,
                             .groups = groups,
                             .n = n,
                             .line = 1 };
    if (ok) wg_bar_chart_figure(to, &o);
    for (int k = 0; k < n; k++) wg_free(series[k]);
    for (int g = 0; g < groups && group; g++) wg_free(group[g]);
    wg_free(group);
    wg_free(value);
}

/* ---- the front --------------------------------------------------------------------------------------------------- */

static int by_x(const void *a, const void *b)
{
    const wg_scatter_point *p = a, *q = b;
    return p->x != q->x ? (p->x > q->x) - (p->x < q->x) : (p->number > q->number) - (p->number < q->number);
}

static void free_points(wg_scatter_point *p, int n)
{
    for (int i = 0; i < n; i++) wg_free(p[i].name);
    wg_free(p);
}

/* The value of an option of a cell's config, in the section `part` or, with NULL, at the top. */
static double option(const wg_run_reader *run, size_t cell, const char *part, const char *key)
{
    const json_t *config = json_object_get(json_array_get(run->cells, cell), "config");
    return wg_json_measured(part ? json_object_get(config, part) : config, key);
}

static void front(const wg_plot_out *to, const wg_run_reader *run, const json_t *cells, const char *part, const char *key)
{
    const size_t all = json_array_size(cells);
    wg_scatter_point *p = wg_calloc(all, sizeof *p);
    int n = 0;
    for (size_t i = 0; p && i < all; i++) {
        p[n] = (wg_scatter_point){ .number = (int)i,
                                   .x = option(run, i, part, key),
                                   .y = wg_report_estimate(cell_at(cells, i), "speedup", "speedup_ci") };
        if (!isfinite(p[n].x) || !isfinite(p[n].y.v) || !(p[n].name = wg_report_numbered(run, i))) continue;
        n++;
    }
    if (n) qsort(p, (size_t)n, sizeof *p, by_x);
    for (int i = 0; i < n; i++) {
        p[i].front = true;
        for (int k = 0; k < n; k++)
            if (p[k].x == p[i].x && (p[k].y.v > p[i].y.v || (p[k].y.v == p[i].y.v && k < i))) p[i].front = false;
    }
    char title[80], caption[240];
    snprintf(title, sizeof title, "Speed-up against %s", key);
    snprintf(caption, sizeof caption,
             "Speed-up against %s, a point a cell. The line is the front: the fastest cell at each %s, with its number and its "
             "95 %% interval.",
             key, key);
    const wg_scatter_plot o = {
        .title = title, .caption = caption, .x = key, .y = "speed-up", .point = p, .n = n, .join = true
    };
    if (n && p[n - 1].x > p[0].x) wg_scatter_plot_figure(to, &o);
    free_points(p, n);
}

void wg_report_plot_temperatures(const wg_plot_out *to, const wg_run_reader *run, const json_t *cells)
{
    front(to, run, cells, "sampling", "temperature");
}

void wg_report_plot_batches(const wg_plot_out *to, const wg_run_reader *run, const json_t *cells)
{
    front(to, run, cells, NULL, "batch");
}

/* ---- tau against cost -------------------------------------------------------------------------------------------- */

void wg_report_plot_isolines(const wg_plot_out *to, const wg_run_reader *run, const json_t *cells)
{
    static const double slope[SLOPES] = { 0.25, 0.5, 0.75, 1, 1.25, 1.5, 2, 3, 4 };
    const size_t all = json_array_size(cells);
    wg_scatter_point *p = wg_calloc(all, sizeof *p);
    int n = 0;
    for (size_t i = 0; p && i < all; i++) {
        const wg_estimate_ci tau = wg_report_estimate(cell_at(cells, i), "tau", "tau_ci");
        p[n] = (wg_scatter_point){
            .number = (int)i, .x = tau.v / wg_json_measured(cell_at(cells, i), "speedup"), .y = tau, .front = true
        };
        if (!isfinite(p[n].x) || !isfinite(tau.v) || !(p[n].name = wg_report_numbered(run, i))) continue;
        n++;
    }
    if (n) qsort(p, (size_t)n, sizeof *p, by_x);
    const wg_scatter_plot o = { .title = "Tau against the cost of a round",
                                .caption =
                                    "Tau against the cost of a round, in passes of plain decoding (tau over speed-up), a "
                                    "point a cell; vertical: 95 % intervals of tau. Cells on one line have the speed-up "
                                    "that it names; on the dashed line they are as fast as plain decoding.",
                                .x = "cost of a round (plain pass: 1)",
                                .y = "tau",
                                .point = p,
                                .n = n,
                                .slope = slope,
                                .slopes = SLOPES };
    wg_scatter_plot_figure(to, &o);
    free_points(p, n);
}
