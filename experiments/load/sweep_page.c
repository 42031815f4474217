/* SPDX-License-Identifier: MIT
 * The page of a sweep: its summary, and drawings of throughput by load and latency by throughput. */
#include <math.h>
#include <stdio.h>

#include "core/base/json_number.h"
#include "experiments/load/load_sweep.h"
#include "experiments/report/charts.h"
#include "experiments/report/report_page.h"

typedef struct page {
    const wg_load_sweep *s;
    const json_t *summary;
    json_t *figures; /* owned */
} page;

static const json_t *cell_of(const page *p, int server, int load)
{
    return json_array_get(json_object_get(p->summary, "cells"), (size_t)(load * p->s->servers + server));
}

/* ---- drawings ---------------------------------------------------------------------------------------------------- */

/* A curve a server, a point a load: y against x, which is the load where its key is NULL. clients: the loads of a closed loop,
 * else those of an open one. */
static void chart(const page *p, bool clients, const char *x, const char *y, const wg_line_chart *form)
{
    wg_chart_line line[WG_SWEEP_SERVERS];
    static wg_chart_point point[WG_SWEEP_SERVERS][WG_SWEEP_LOADS]; /* pages are written by one thread */
    char names[WG_SWEEP_SERVERS][WG_SWEEP_NAME];
    wg_line_chart c = *form;
    int points = 0;
    for (int i = 0; i < p->s->servers; i++) {
        snprintf(names[i], sizeof names[i], "%s", p->s->server[i].name);
        line[i] = (wg_chart_line){ .name = names[i], .point = point[i] };
        for (int k = 0; k < p->s->loads; k++) {
            const wg_swept_load *l = &p->s->load[k];
            const json_t *cell = cell_of(p, i, k);
            const double at = x ? wg_json_measured(cell, x) : l->clients ? l->clients : l->rate;
            const double v = wg_json_measured(cell, y);
            if ((l->clients > 0) == clients && isfinite(at) && isfinite(v))
                point[i][line[i].n++] = (wg_chart_point){ at, v, NAN, NAN };
        }
        points += line[i].n;
    }
    c.curve = line;
    c.n = p->s->servers;
    if (points) wg_line_chart_figure(&(wg_plot_out){ .page = p->figures }, &c);
}

static void drawings(const page *p, bool clients)
{
    const char *load = clients ? "clients" : "requests a second";
    const wg_line_chart by_load = { .title = "Throughput by load",
                                    .caption = "Tokens a second of all answers together, by load.",
                                    .x = load,
                                    .y = "tokens/s",
                                    .range = "[0:*]",
                                    .real = true };
    const wg_line_chart curve = { .title = "Latency by throughput",
                                  .caption = "Median time per output token against throughput; each curve goes through the "
                                             "loads in order.",
                                  .x = "tokens/s",
                                  .y = "TPOT ms",
                                  .range = "[0:*]",
                                  .real = true };
    const wg_line_chart first = { .title = "Time to first token by load",
                                  .caption = "99th percentile of the time to the first token, by load.",
                                  .x = load,
                                  .y = "p99 TTFT ms",
                                  .range = "[0:*]",
                                  .real = true };
    chart(p, clients, NULL, "output_throughput", &by_load);
    chart(p, clients, "output_throughput", "median_tpot_ms", &curve);
    chart(p, clients, NULL, "p99_ttft_ms", &first);
}

wg_status wg_load_sweep_page(const char *path, const wg_load_sweep *s, const json_t *summary, const json_t *machine,
                             wg_error *err)
{
    const page p = { .s = s, .summary = summary, .figures = json_array() };
    const bool drawn = wg_plot_available(WG_PLOT_PAGE);
    json_t *servers = json_array();
    if (drawn) drawings(&p, true);
    if (drawn) drawings(&p, false);
    for (int i = 0; i < s->servers; i++)
        json_array_append_new(servers, json_pack("{s:o, s:o}", "name", wg_json_text(s->server[i].name), "command",
                                                 wg_json_text(s->server[i].command)));
    json_t *document =
        json_pack("{s:s, s:o, s:o, s:i, s:O, s:O, s:o, s:b, s:o}", "kind", "load", "name", wg_json_text(s->opt.name),
                  "question", wg_json_text(s->opt.question), "tests", s->opt.repeats * s->opt.turns, "summary", summary,
                  "machine", machine, "servers", servers, "no_gnuplot", !drawn, "figures", p.figures);
    const wg_status status = wg_page_save(path, document, err);
    json_decref(document);
    return status;
}
