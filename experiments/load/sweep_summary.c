/* SPDX-License-Identifier: MIT
 * The summary of a sweep: medians over repeats, and shares of the best. */
#include <math.h>
#include <string.h>

#include "experiments/base/json_number.h"
#include "experiments/base/stats.h"
#include "experiments/load/load_sweep.h"

enum { REPEATS = 1000 };

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
        if (is_of(p, server, l) && !isnan(v) && n < REPEATS) to[n++] = v;
    }
    return n;
}

/* Throughput of one repeat; NaN without it. */
static double throughput(const json_t *points, const wg_swept_server *server, const wg_swept_load *l, int repeat)
{
    for (size_t i = 0; i < json_array_size(points); i++) {
        const json_t *p = json_array_get(points, i);
        if (is_of(p, server, l) && wg_json_int(p, "repeat") == repeat) return wg_json_measured(p, "output_throughput");
    }
    return NAN;
}

/* Of a server and the others of its group (all: of all servers), at one load: its throughput over the best of the others, the
 * median over repeats of ratios within a repeat. NaN: it has no others. */
static double against_best(const wg_load_sweep *s, const json_t *points, int server, const wg_swept_load *l)
{
    double ratio[REPEATS];
    int n = 0;
    for (int repeat = 0; repeat < s->opt.repeats; repeat++) {
        double best = NAN;
        for (int i = 0; i < s->servers; i++)
            if (i != server && !strcmp(s->server[i].group, s->server[server].group))
                best = fmax(best, throughput(points, &s->server[i], l, repeat)); /* fmax skips NaN */
        const double own = throughput(points, &s->server[server], l, repeat);
        if (own > 0 && best > 0) ratio[n++] = own / best;
    }
    return wg_quantile(ratio, n, 0.5);
}

/* The throughput over that of the same server at the first load. */
static double against_first(const wg_load_sweep *s, const json_t *points, int server, const wg_swept_load *l)
{
    double ratio[REPEATS];
    int n = 0;
    for (int repeat = 0; repeat < s->opt.repeats; repeat++) {
        const double v =
            throughput(points, &s->server[server], l, repeat) / throughput(points, &s->server[server], &s->load[0], repeat);
        if (isfinite(v)) ratio[n++] = v;
    }
    return wg_quantile(ratio, n, 0.5);
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
    double v[REPEATS];
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
    json_object_set_new(o, "over_best_other", wg_json_number(against_best(s, points, server, l)));
    json_object_set_new(o, "over_first_load", wg_json_number(against_first(s, points, server, l)));
    return o;
}

json_t *wg_load_sweep_summary(const wg_load_sweep *s, const json_t *points)
{
    json_t *cells = json_array();
    for (int k = 0; k < s->loads; k++)
        for (int i = 0; i < s->servers; i++) json_array_append_new(cells, cell(s, points, i, &s->load[k]));
    return json_pack("{s:i, s:s, s:s, s:b, s:O, s:o}", "schema", 1, "name", s->opt.name, "question", s->opt.question,
                     "complete", (int)json_array_size(points) == s->opt.repeats * s->loads * s->servers, "left_out",
                     s->left_out, "cells", cells);
}
