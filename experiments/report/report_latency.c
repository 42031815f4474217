/* SPDX-License-Identifier: MIT
 * Latencies of single requests: their empirical distributions, of the fastest cells and of plain decoding. */
#include <math.h>
#include <stdlib.h>

#include "core/base/mem.h"
#include "core/base/json_number.h"
#include "experiments/report/charts.h"
#include "experiments/report/report_parts.h"

enum { CURVES = 4, MARKS = 20 }; /* most cells, each with its baseline or without; marks of a curve */

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The empirical distribution of the requests of one arm that ended well: at most MARKS order statistics, k of n at height k
 * / n, the last one included. false: fewer than two requests. */
static bool distribution(const wg_run_reader *run, int cell, int group, bool first_token, wg_chart_line *out)
{
    double *v = wg_alloc((size_t)run->n + 1, sizeof *v);
    int n = 0;
    for (int i = 0; v && i < run->n; i++) {
        const wg_entry *e = &run->entry[i];
        const double ms = first_token ? e->ttft : e->tpot;
        if (e->ok && e->cell == cell && (cell >= 0 || e->group == group) && isfinite(ms)) v[n++] = ms;
    }
    out->n = n < MARKS ? n : MARKS;
    out->point = n > 1 ? wg_calloc((size_t)out->n, sizeof *out->point) : NULL;
    if (out->point) qsort(v, (size_t)n, sizeof *v, ascending);
    for (int i = 0; out->point && i < out->n; i++) {
        const int k = (int)((int64_t)(i + 1) * n / out->n);
        out->point[i] = (wg_chart_point){ v[k - 1], (double)k / n, NAN, NAN };
    }
    wg_free(v);
    return out->point != NULL;
}

static void latency(const wg_plot_out *to, const wg_run_reader *run, const json_t *cells, bool first_token)
{
    size_t chosen[CURVES];
    wg_chart_line curve[2 * CURVES];
    int groups[CURVES], n = 0, plain = 0;
    const int cells_drawn = wg_report_fastest(cells, chosen, CURVES, NULL, 0);
    for (int k = 0; k < cells_drawn; k++) {
        const int group = (int)json_integer_value(json_object_get(json_array_get(cells, chosen[k]), "group"));
        bool seen = false;
        for (int g = 0; g < plain; g++) seen = seen || groups[g] == group;
        if (!seen) groups[plain++] = group;
        if (!distribution(run, (int)chosen[k], group, first_token, &curve[n])) continue;
        curve[n++].name = wg_report_numbered(run, chosen[k]);
    }
    for (int g = 0; g < plain; g++) {
        char name[60];
        snprintf(name, sizeof name, plain > 1 ? "plain decoding of group %d" : "plain decoding", groups[g]);
        if (distribution(run, -1, groups[g], first_token, &curve[n])) curve[n++].name = wg_strdup(name);
    }
    const wg_line_chart o = {
        .title = first_token ? "Time to first token, by request" : "Time per output token, by request",
        .caption = first_token
                       ? "Share of requests whose first token came within this time: the fastest cells, and plain "
                         "decoding beside them."
                       : "Share of requests whose mean time per output token after the first (TPOT) was at most this: the "
                         "fastest cells, and plain decoding beside them.",
        .x = first_token ? "TTFT in ms" : "TPOT in ms",
        .y = "share of requests",
        .range = "[0:1]",
        .real = true,
        .curve = curve,
        .n = n
    };
    wg_line_chart_figure(to, &o);
    for (int i = 0; i < n; i++) {
        wg_free(curve[i].name);
        wg_free(curve[i].point);
    }
}

void wg_report_plot_ttft(const wg_plot_out *to, const wg_run_reader *run, const json_t *cells)
{
    latency(to, run, cells, true);
}

void wg_report_plot_tpot(const wg_plot_out *to, const wg_run_reader *run, const json_t *cells)
{
    latency(to, run, cells, false);
}
