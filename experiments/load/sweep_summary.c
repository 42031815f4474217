/* SPDX-License-Identifier: MIT
 * The summary of a sweep: medians over tests, and ratios of throughput to the best other server and to the first load; and its
 * page, with drawings of throughput by load and latency by throughput. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/json_number.h"
#include "experiments/base/stats.h"
#include "experiments/load/load_sweep.h"
#include "experiments/report/charts.h"
#include "experiments/report/report_page.h"

static const char *const numbers[] = {
    "output_throughput",
    "request_throughput",
    "request_goodput",
    "median_ttft_ms",
    "p99_ttft_ms",
    "median_tpot_ms",
    "p99_tpot_ms",
    "median_itl_ms",
    "median_itl_per_token_ms",
    "median_e2el_ms",
    "p99_e2el_ms",
    "tokens_per_event",
    "spec_decode_acceptance_length",
    "spec_decode_acceptance_rate",
    "client_cpu_s",
    "duration",
};

static bool is_of(const json_t *p, const wg_swept_server *server, const wg_swept_load *l)
{
    return !strcmp(wg_json_word(p, "server"), server->name) && wg_json_int(p, "clients") == l->clients &&
           wg_json_real(p, "rate") == l->rate;
}

/* The values of a member over repeats; returns how many are numbers. */
static int values(const json_t *points, const wg_swept_server *server, const wg_swept_load *l, const char *key, double *to)
{
    int n = 0;
    for (size_t i = 0; i < json_array_size(points); i++) {
        const json_t *p = json_array_get(points, i);
        const double v = wg_json_measured(p, key);
        if (is_of(p, server, l) && !isnan(v) && n < WG_SWEEP_PAIRS) to[n++] = v;
    }
    return n;
}

/* The answers in the tests of a server at a load: (repeats turns) tokens and seconds, 0: no test. */
typedef struct answered {
    double tokens[WG_SWEEP_PAIRS], seconds[WG_SWEEP_PAIRS];
} answered;

static void answers(const wg_load_sweep *s, const json_t *points, int server, const wg_swept_load *l, answered *to)
{
    *to = (answered){ .tokens = { 0 } };
    for (size_t i = 0; i < json_array_size(points); i++) {
        const json_t *p = json_array_get(points, i);
        const long long at = wg_json_int(p, "repeat") * s->opt.turns + wg_json_int(p, "turn");
        const double tokens = wg_json_measured(p, "total_output_tokens"), seconds = wg_json_measured(p, "duration");
        if (!is_of(p, &s->server[server], l) || at < 0 || at >= WG_SWEEP_PAIRS || !(tokens > 0 && seconds > 0)) continue;
        to->tokens[at] = tokens;
        to->seconds[at] = seconds;
    }
}

/* The throughput of x over that of y, from the tests that both have. */
static wg_ratio over(answered *x, answered *y)
{
    int n = 0;
    for (int i = 0; i < WG_SWEEP_PAIRS; i++) {
        if (x->seconds[i] == 0 || y->seconds[i] == 0) continue;
        x->tokens[n] = x->tokens[i];
        x->seconds[n] = x->seconds[i];
        y->tokens[n] = y->tokens[i];
        y->seconds[n++] = y->seconds[i];
    }
    return (wg_ratio){ .a = x->tokens, .b = x->seconds, .c = y->tokens, .d = y->seconds, .n = n };
}

/* Adds a server's throughput over that of the best other server of its group at one load, with its interval; null: there is no
 * other. */
static void add_against_best(json_t *o, const wg_load_sweep *s, const json_t *points, int server, const wg_swept_load *l)
{
    answered own, other;
    double best = INFINITY;
    json_object_set_new(o, "over_best_other", json_null());
    for (int i = 0; i < s->servers; i++) {
        if (i == server || strcmp(s->server[i].group, s->server[server].group) != 0) continue;
        answers(s, points, server, l, &own);
        answers(s, points, i, l, &other);
        const wg_ratio r = over(&own, &other);
        if (!(wg_ratio_value(&r) < best)) continue;
        best = wg_ratio_value(&r);
        wg_ratio_set_json(o, "over_best_other", &r);
        json_object_set_new(o, "best_other", json_string(s->server[i].name));
    }
}

static void add_against_first(json_t *o, const wg_load_sweep *s, const json_t *points, int server, const wg_swept_load *l)
{
    answered here, first;
    answers(s, points, server, l, &here);
    answers(s, points, server, &s->load[0], &first);
    const wg_ratio r = over(&here, &first);
    json_object_set_new(o, "over_first_load", wg_json_number(wg_ratio_value(&r)));
}

static void add_counts(json_t *o, const json_t *points, const wg_swept_server *server, const wg_swept_load *l)
{
    static const char *const counts[] = { "completed", "failed", "not_sent" };
    const char *digest = NULL;
    bool equal = true;
    int tests = 0;
    json_int_t sum[3] = { 0 };
    for (size_t i = 0; i < json_array_size(points); i++) {
        const json_t *p = json_array_get(points, i);
        if (!is_of(p, server, l)) continue;
        const char *d = wg_json_word(p, "output_sha256");
        equal = equal && (!digest || !strcmp(digest, d));
        digest = d;
        tests++;
        for (int k = 0; k < 3; k++) sum[k] += wg_json_int(p, counts[k]);
    }
    for (int k = 0; k < 3; k++) json_object_set_new(o, counts[k], json_integer(sum[k]));
    json_object_set_new(o, "tests", json_integer(tests));
    json_object_set_new(o, "output_sha256", digest && equal ? json_string(digest) : json_null()); /* null: repeats differ */
}

static json_t *cell(const wg_load_sweep *s, const json_t *points, int server, const wg_swept_load *l)
{
    double v[WG_SWEEP_PAIRS];
    json_t *o = json_object();
    json_object_set_new(o, "server", json_string(s->server[server].name));
    json_object_set_new(o, "group", json_string(s->server[server].group));
    json_object_set(o, "labels", s->server[server].labels);
    json_object_set_new(o, "clients", json_integer(l->clients));
    json_object_set_new(o, "rate", l->clients ? json_null() : json_real(l->rate));
    add_counts(o, points, &s->server[server], l);
    for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++) {
        const int n = values(points, &s->server[server], l, numbers[k], v);
        json_object_set_new(o, numbers[k], wg_json_number(wg_quantile(v, n, 0.5)));
    }
    const int n = values(points, &s->server[server], l, "output_throughput", v);
    json_object_set_new(o, "output_throughput_range",
                        n ? json_pack("[f,f]", wg_quantile(v, n, 0), wg_quantile(v, n, 1)) : json_null());
    add_against_best(o, s, points, server, l);
    add_against_first(o, s, points, server, l);
    return o;
}

json_t *wg_load_sweep_summary(const wg_load_sweep *s, const json_t *points)
{
    json_t *cells = json_array();
    for (int k = 0; k < s->loads; k++)
        for (int i = 0; i < s->servers; i++) json_array_append_new(cells, cell(s, points, i, &s->load[k]));
    return json_pack("{s:i, s:s, s:s, s:b, s:O, s:o}", "schema", 1, "name", s->opt.name, "question", s->opt.question,
                     "complete", (int)json_array_size(points) == wg_load_sweep_tests(s), "left_out", s->left_out, "cells",
                     cells);
}

/* ---- the page */

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
