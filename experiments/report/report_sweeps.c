/* SPDX-License-Identifier: MIT
 * Drawings over what a sweep varies: drafters by category, and the fastest cell at each temperature or batch. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/base/json_number.h"
#include "experiments/report/report_parts.h"
#include "experiments/report/charts.h"

static const json_t *cell_at(const json_t *cells, size_t i) { return json_array_get(cells, i); }

/* ---- drafters by category ---------------------------------------------------------------------------------------- */

/* The fastest cell of each drafter, fastest first, at most WG_PLOT_SERIES; returns their number. */
static int of_each_drafter(const json_t *cells, size_t *chosen)
{
    json_t *best = json_object(), *number; /* by drafter */
    const char *drafter;
    int n = 0;
    for (size_t i = 0; i < json_array_size(cells); i++) {
        const json_t *c = cell_at(cells, i), *before = json_object_get(best, wg_json_word(c, "drafter"));
        const double v = wg_json_measured(c, "speedup");
        if (isfinite(v) && (!before || v > wg_json_measured(cell_at(cells, (size_t)json_integer_value(before)), "speedup")))
            json_object_set_new(best, wg_json_word(c, "drafter"), json_integer((json_int_t)i));
    }
    json_object_foreach(best, drafter, number) {
        const size_t i = (size_t)json_integer_value(number);
        const double v = wg_json_measured(cell_at(cells, i), "speedup");
        int at = n < WG_PLOT_SERIES ? n : n - 1;
        if (json_array_size(json_object_get(cell_at(cells, i), "categories")) < 2 ||
            (n == WG_PLOT_SERIES && !(v > wg_json_measured(cell_at(cells, chosen[at]), "speedup"))))
            continue;
        for (; at > 0 && v > wg_json_measured(cell_at(cells, chosen[at - 1]), "speedup"); at--) chosen[at] = chosen[at - 1];
        chosen[at] = i;
        n += n < WG_PLOT_SERIES;
    }
    json_decref(best);
    return n;
}

void wg_report_plot_drafters(const wg_plot_out *to, const wg_run_reader *run, const json_t *cells)
{
    size_t chosen[WG_PLOT_SERIES];
    const int n = of_each_drafter(cells, chosen);
    if (n > 1)
        wg_report_by_category(
            to, run, cells, chosen, n, "Speed-up by drafter and category",
            "Speed-up by category, with 95 % intervals over its prompts: of each drafter its fastest cell. The "
            "dashed line is plain decoding.");
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
    for (int i = 0, end; i < n; i = end) { /* points of one x */
        int best = i;
        for (end = i + 1; end < n && p[end].x == p[i].x; end++)
            if (p[end].y.v > p[best].y.v) best = end;
        p[best].front = true;
    }
    char title[80], caption[240];
    snprintf(title, sizeof title, "Speed-up against %s", key);
    snprintf(caption, sizeof caption,
             "Speed-up against %s, a point a cell. The line is the front: the fastest cell at each %s, with its number and its "
             "95 %% interval.",
             key, key);
    const wg_scatter_plot o = { .title = title, .caption = caption, .x = key, .y = "speed-up", .point = p, .n = n };
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
