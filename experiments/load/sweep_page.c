/* SPDX-License-Identifier: MIT
 * The page of a sweep: throughput by load, latency by throughput, and a table of all tests. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/json_number.h"
#include "experiments/load/load_sweep.h"
#include "experiments/report/html.h"
#include "experiments/report/line_chart.h"

typedef struct page {
    const wg_load_sweep *s;
    const json_t *summary, *machine;
} page;

static const json_t *cell_of(const page *p, int server, int load)
{
    return json_array_get(json_object_get(p->summary, "cells"), (size_t)(load * p->s->servers + server));
}

/* ---- drawings ---------------------------------------------------------------------------------------------------- */

/* Draws y against x, a curve per server with a point per load; x NULL: the load. clients: loads of the closed loop, else of the
 * open one. */
static void chart(FILE *f, const page *p, bool clients, const char *x, const char *y, const wg_line_chart *form)
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
    if (points) wg_line_chart_figure(&(wg_plot_out){ .f = f, .form = WG_PLOT_PAGE }, &c);
}

static void drawings(FILE *f, const page *p, bool clients)
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
    chart(f, p, clients, NULL, "output_throughput", &by_load);
    chart(f, p, clients, "output_throughput", "median_tpot_ms", &curve);
    chart(f, p, clients, NULL, "p99_ttft_ms", &first);
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

static const struct {
    const char *key, *title, *form;
} columns[] = {
    { "output_throughput", "tokens/s", "%.1f" },
    { "over_first_load", "over the first load", "%.2fx" },
    { "over_best_other", "over the best other", "%.2fx" },
    { "median_ttft_ms", "TTFT p50 ms", "%.1f" },
    { "p99_ttft_ms", "TTFT p99 ms", "%.1f" },
    { "median_tpot_ms", "TPOT p50 ms", "%.2f" },
    { "p99_tpot_ms", "TPOT p99 ms", "%.2f" },
    { "median_itl_ms", "ITL p50 ms", "%.2f" },
    { "p99_e2el_ms", "E2EL p99 ms", "%.1f" },
    { "spec_decode_acceptance_length", "tokens a pass that drafted", "%.2f" },
    { "request_goodput", "goodput/s", "%.2f" },
};
enum { COLUMNS = sizeof columns / sizeof *columns };

/* The interval of a member, where it has one. */
static void put_interval(FILE *f, const json_t *cell, const char *key)
{
    char name[60];
    snprintf(name, sizeof name, "%s_ci", key);
    const double low = wg_json_item(cell, name, 0), high = wg_json_item(cell, name, 1);
    if (isfinite(low)) fprintf(f, " <small>%.2f..%.2f</small>", low, high);
}

static void put_cell(FILE *f, const page *p, int server, int load)
{
    const wg_swept_load *l = &p->s->load[load];
    const json_t *c = cell_of(p, server, load);
    fputs("<tr><th scope=\"row\" class=\"w\">", f);
    wg_html_name(f, p->s->server[server].name);
    fputs("</th><td>", f);
    if (l->clients) fprintf(f, "%d clients", l->clients);
    else fprintf(f, "%g/s", l->rate);
    fputs("</td>", f);
    for (int k = 0; k < COLUMNS; k++) {
        const double v = wg_json_measured(c, columns[k].key);
        fputs("<td>", f);
        if (isfinite(v)) fprintf(f, columns[k].form, v);
        else fputs("&ndash;", f);
        put_interval(f, c, columns[k].key);
        fputs("</td>", f);
    }
    fprintf(f, "<td>%lld of %lld</td><td class=\"mono\">%.8s</td></tr>\n", (long long)wg_json_int(c, "completed"),
            (long long)(wg_json_int(c, "completed") + wg_json_int(c, "failed")), wg_json_word(c, "output_sha256"));
}

static void table(FILE *f, const page *p)
{
    fputs("<h2>Numbers</h2>\n", f);
    wg_html_table(f,
                  "A line a server and load: medians over tests. Over the best other: the throughput over that of the best of "
                  "the servers that differ from it in the last member of `vary` alone, with its 95 % interval. The last column "
                  "begins the digest of the answers; it is empty where repeats differ.");
    fputs("<thead><tr><th scope=\"col\">server</th><th scope=\"col\">load</th>", f);
    for (int k = 0; k < COLUMNS; k++) fprintf(f, "<th scope=\"col\">%s</th>", columns[k].title);
    fputs("<th scope=\"col\">completed</th><th scope=\"col\">answers</th></tr></thead>\n<tbody>\n", f);
    for (int k = 0; k < p->s->loads; k++)
        for (int i = 0; i < p->s->servers; i++) put_cell(f, p, i, k);
    wg_html_table_end(f);
}

static void head(FILE *f, const page *p)
{
    const json_t *cpu = json_object_get(p->machine, "cpu");
    fputs("<h1>", f);
    wg_html_puts(f, p->s->opt.name);
    fputs("</h1>\n<p>", f);
    wg_html_puts(f, p->s->opt.question);
    fprintf(f, "</p>\n<p class=\"soft\">%d tests of each server and load, in turn; ", p->s->opt.repeats * p->s->opt.turns);
    wg_html_puts(f, wg_json_word(cpu, "model"));
    fprintf(f, ", %lld processors. The client runs on the same machine.</p>\n", (long long)wg_json_int(cpu, "cores_online"));
    if (!json_is_true(json_object_get(p->summary, "complete")))
        fputs("<p class=\"warn\">The sweep has not run to its end: <code>--resume</code> goes on.</p>\n", f);
}

static wg_status write_page(FILE *f, void *arg, wg_error *err)
{
    const page *p = arg;
    (void)err;
    wg_html_begin(f, p->s->opt.name);
    head(f, p);
    drawings(f, p, true);
    drawings(f, p, false);
    if (!wg_plot_available(WG_PLOT_PAGE)) fputs("<p class=\"soft\">Without gnuplot there are no drawings.</p>\n", f);
    table(f, p);
    fputs("<h2>Servers</h2>\n<dl>\n", f);
    for (int i = 0; i < p->s->servers; i++) {
        fputs("<dt>", f);
        wg_html_puts(f, p->s->server[i].name);
        fputs("</dt><dd><code>", f);
        wg_html_puts(f, p->s->server[i].command);
        fputs("</code></dd>\n", f);
    }
    fputs("</dl>\n", f);
    wg_plot_script(f);
    wg_html_end(f);
    return WG_OK;
}

wg_status wg_load_sweep_page(const char *path, const wg_load_sweep *s, const json_t *summary, const json_t *machine,
                             wg_error *err)
{
    page p = { s, summary, machine };
    return wg_html_save(path, write_page, &p, err);
}
