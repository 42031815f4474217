/* SPDX-License-Identifier: MIT
 * wager load: measures a server of OpenAI's protocol under load, in one test or a sweep of many. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/base/json.h"
#include "core/base/json_line.h"
#include "core/base/mem.h"
#include "core/base/number.h"
#include "core/base/option.h"
#include "core/base/save.h"
#include "experiments/cli/cli.h"
#include "experiments/cli/commands.h"
#include "experiments/cli/load_sweep_command.h"
#include "experiments/cli/signals.h"
#include "experiments/load/arrivals.h"
#include "experiments/load/load_test.h"
#include "experiments/load/load_text.h"

typedef struct load {
    const char *sweep, *prompts, *arrivals, *endpoint, *goodput, *percentiles, *extra, *out;
    long requests, warmups, clients, n, seed, words, range, line;
    double rate, burstiness, temperature, timeout, ready;
    bool resume, json, detailed, ignore_eos, no_stream, one_connection_each;
    wg_load_test test;
    wg_load_goals goals;
    double percentile[WG_LOAD_PERCENTILES];
    int n_percentiles;
    const char *url, *model, *key;
} load;

/* Parses "ttft:200,tpot:20", limits in milliseconds. */
static wg_status read_goals(wg_load_goals *g, const char *text, wg_error *err)
{
    static const char *const names[] = { "ttft", "tpot", "e2el" };
    double *const to[] = { &g->ttft, &g->tpot, &g->e2el };
    for (const char *at = text; *at;) {
        const size_t n = strcspn(at, ",");
        char one[64];
        snprintf(one, sizeof one, "%.*s", (int)n, at);
        char *colon = strchr(one, ':');
        double v = 0;
        int k = 0;
        if (colon) *colon = '\0';
        while (k < 3 && strcmp(one, names[k]) != 0) k++;
        if (n >= sizeof one || !colon || k == 3 || !wg_number_parse(colon + 1, &v) || !(v > 0))
            return wg_fail(err, WG_EINVAL, "--goodput '%s': expected limits in ms such as ttft:200,tpot:20,e2el:3000", text);
        *to[k] = v;
        at += n + (at[n] == ',');
    }
    return WG_OK;
}

static wg_status read_percentiles(load *l, wg_error *err)
{
    for (const char *at = l->percentiles;; at++) {
        char one[32];
        double v;
        const size_t n = strcspn(at, ",");
        snprintf(one, sizeof one, "%.*s", (int)n, at);
        if (n >= sizeof one || !wg_number_parse(one, &v) || !(v > 0 && v <= 100) || l->n_percentiles == WG_LOAD_PERCENTILES)
            return wg_fail(err, WG_EINVAL, "--percentiles '%s': expected up to %d numbers above 0, at most 100, such as 50,99",
                           l->percentiles, WG_LOAD_PERCENTILES);
        l->percentile[l->n_percentiles++] = v;
        at += n;
        if (!*at) return WG_OK;
    }
}

static wg_status read_extra(load *l, wg_error *err)
{
    wg_json *doc;
    if (!l->extra) return WG_OK;
    WG_TRY(wg_json_parse(&doc, "--extra", l->extra, strlen(l->extra), err));
    const bool object = json_is_object(wg_json_root(doc));
    if (object) l->test.extra = json_incref(wg_json_root(doc));
    wg_json_close(doc);
    return object ? WG_OK : wg_fail(err, WG_EINVAL, "--extra: expected a JSON object, the members of which every request gets");
}

static wg_status check(const load *l, wg_error *err)
{
    if (l->rate > 0 && l->arrivals) return wg_fail(err, WG_EINVAL, "--rate and --arrivals: both say when requests arrive");
    if (l->rate == 0 && !l->arrivals && !l->clients)
        return wg_fail(err, WG_EINVAL,
                       "--clients 0: without a limit of requests at a time their arrivals are needed: --rate R "
                       "or --arrivals FILE");
    if (l->key && strlen(l->key) > 900) return wg_fail(err, WG_EINVAL, "--key: longer than 900 bytes");
    if (strncmp(l->url, "http://", 7) != 0 && strncmp(l->url, "https://", 8) != 0)
        return wg_fail(err, WG_EINVAL, "'%s' is no address of a server; expected http://HOST:PORT", l->url);
    if (strlen(l->url) > 900) return wg_fail(err, WG_EINVAL, "the address is longer than 900 bytes");
    if (l->range >= l->words)
        return wg_fail(err, WG_EINVAL, "--words-range %ld: prompts of %ld words would have none", l->range, l->words);
    return WG_OK;
}

/* Sets the test that the flags describe. The caller frees *arrival and *prompts in any case. */
static wg_status prepare(load *l, wg_dataset **prompts, double **arrival, wg_error *err)
{
    wg_load_test *t = &l->test;
    int n = (int)l->requests;
    WG_TRY(check(l, err));
    WG_TRY(read_percentiles(l, err));
    if (l->goodput) WG_TRY(read_goals(&l->goals, l->goodput, err));
    WG_TRY(read_extra(l, err));
    if (l->prompts) WG_TRY(wg_dataset_open(prompts, l->prompts, NULL, err));
    if (l->arrivals) WG_TRY(wg_arrivals_read(arrival, &n, n, l->arrivals, err));
    t->url = l->url;
    t->model = l->model;
    t->key = l->key;
    t->chat = l->endpoint[1] == 'h';
    t->no_stream = l->no_stream;
    t->prompts = *prompts;
    t->input_words = (int)l->words;
    t->input_range = (int)l->range;
    t->requests = n;
    t->warmups = (int)l->warmups;
    t->clients = (int)l->clients;
    t->rate = l->rate;
    t->burstiness = l->burstiness;
    t->arrival = *arrival;
    t->max_tokens = (int)l->n;
    t->temperature = l->temperature;
    t->seed = (uint64_t)l->seed;
    t->ignore_eos = l->ignore_eos;
    t->keep_text = l->detailed;
    t->one_connection_each = l->one_connection_each;
    t->seconds = l->timeout;
    t->line_most = (size_t)l->line;
    t->stop = wg_cli_catch_signals();
    return WG_OK;
}

static void show(void *user, int sent, int ended)
{
    const load *l = user;
    fprintf(stderr, "\r\033[K%d of %d requests sent, %d ended", sent, l->test.requests, ended);
}

/* Whether each request was answered or rejected because of load. */
static bool all_well(const json_t *m)
{
    const json_t *kinds = json_object_get(m, "failed_by_kind");
    return json_integer_value(json_object_get(m, "failed")) == json_integer_value(json_object_get(kinds, "rejected")) &&
           json_integer_value(json_object_get(m, "completed")) > 0;
}

static int report(const load *l, const wg_load_result *r, wg_error *err)
{
    json_t *m = wg_load_result_json(&l->test, r, &l->goals, l->percentile, l->n_percentiles, l->detailed);
    wg_status s = m ? WG_OK : wg_nomem(err, 1, "the metrics of a load test");
    if (m && l->out) s = wg_json_save(m, l->out, err);
    if (m && l->json) wg_json_put_line(json_incref(m), JSON_REAL_PRECISION(9));
    else if (m) wg_load_print(stdout, m);
    const bool well = m && all_well(m);
    json_decref(m);
    return s ? wg_cli_fail(err) : well ? WG_EXIT_OK : WG_EXIT_FAILED;
}

static int run(load *l)
{
    wg_dataset *prompts = NULL;
    double *arrival = NULL;
    wg_load_result r = { .n = 0 };
    wg_error err;
    wg_status s = prepare(l, &prompts, &arrival, &err);
    if (!s && wg_cli_terminal(STDERR_FILENO) && !l->json) l->test.progress = show, l->test.progress_user = l;
    if (!s && l->ready > 0) s = wg_load_wait_ready(l->url, l->ready, l->test.stop, &err);
    if (!s) s = wg_load_test_run(&l->test, &r, &err);
    if (l->test.progress) fputs("\r\033[K", stderr);
    int status = WG_EXIT_OK;
    if (!s || (s == WG_EINTERRUPTED && r.n)) status = report(l, &r, s ? &(wg_error){ .code = WG_OK } : &err);
    if (s) status = wg_cli_fail(&err);
    wg_load_result_close(&r);
    json_decref((json_t *)(uintptr_t)l->test.extra);
    wg_dataset_close(prompts);
    wg_free(arrival);
    return status;
}

int wg_cmd_load(int argc, char **argv)
{
    load l = { .endpoint = "completions",
               .percentiles = "90,95,99",
               .requests = 100,
               .clients = 1,
               .n = 64,
               .seed = 1,
               .words = 64,
               .line = WG_LOAD_LINE,
               .burstiness = 1,
               .temperature = 0,
               .timeout = 600 };
    const wg_flag flags[] = {
        { "clients", 'c', WG_FLAG_INT, &l.clients, "N",
          "closed loop: requests at a time. With --rate or --arrivals: most at a time, 0: any number", 0, WG_LOAD_CLIENTS },
        { "rate", 'r', WG_FLAG_FLOAT, &l.rate, "R",
          "open loop: mean number of requests a second, Poisson process; 0: closed loop", 0, 1e6 },
        { "burstiness", 0, WG_FLAG_FLOAT, &l.burstiness, "B",
          "with --rate: shape of the gamma distribution of gaps; below 1: bursts", 1e-3, 1e6 },
        { "arrivals", 0, WG_FLAG_STRING, &l.arrivals, "FILE",
          "open loop: a file with the time of each request, seconds from the start, one a line", 0, 0 },
        { "requests", 0, WG_FLAG_INT, &l.requests, "N", "number of requests", 1, 10000000 },
        { "warmups", 0, WG_FLAG_INT, &l.warmups, "N", "number of requests before the test, which do not count", 0, 1000000 },
        { "prompts", 'p', WG_FLAG_STRING, &l.prompts, "FILE", "prompts (JSONL), used in turn; else made-up prompts", 0, 0 },
        { "words", 0, WG_FLAG_INT, &l.words, "N", "words of a made-up prompt", 1, 1000000 },
        { "words-range", 0, WG_FLAG_INT, &l.range, "N", "made-up prompts have up to N words more or fewer", 0, 1000000 },
        { "n", 'n', WG_FLAG_INT, &l.n, "N", "most tokens of an answer", 1, 1000000 },
        { "ignore-eos", 0, WG_FLAG_BOOL, &l.ignore_eos, NULL,
          "generate all -n tokens: end tokens do not end an answer, where the server supports it", 0, 0 },
        { "temp", 't', WG_FLAG_FLOAT, &l.temperature, "T", "temperature; 0 is greedy", 0, 100 },
        { "seed", 0, WG_FLAG_INT, &l.seed, "S", "seed of arrivals and of made-up prompts; request i has the seed S + i", 0,
          2147483647 },
        { "endpoint", 0, WG_FLAG_CHOICE, &l.endpoint, "completions|chat", "the endpoint of the requests", 0, 0 },
        { "no-stream", 0, WG_FLAG_BOOL, &l.no_stream, NULL, "ask for complete answers instead of streams", 0, 0 },
        { "model", 'm', WG_FLAG_STRING, &l.model, "NAME", "the model named in requests; else the server's first", 0, 0 },
        { "key", 0, WG_FLAG_STRING, &l.key, "KEY", "the API key", 0, 0 },
        { "extra", 0, WG_FLAG_STRING, &l.extra, "JSON",
          "JSON object of members to add to every request, such as {\"top_p\": 0.9}", 0, 0 },
        { "timeout", 0, WG_FLAG_FLOAT, &l.timeout, "S", "seconds after which a request is given up", 0.01, 1e6 },
        { "line-limit", 0, WG_FLAG_INT, &l.line, "N", "longest line of a stream, in bytes", 1024, 1 << 30 },
        { "ready", 0, WG_FLAG_FLOAT, &l.ready, "S", "wait at most S seconds for the server's /health; 0: do not wait", 0, 1e6 },
        { "one-connection-each", 0, WG_FLAG_BOOL, &l.one_connection_each, NULL, "open a new connection for each request", 0,
          0 },
        { "goodput", 0, WG_FLAG_STRING, &l.goodput, "K:MS,...",
          "limits of a request that counts as goodput: ttft, tpot, e2el in ms", 0, 0 },
        { "percentiles", 0, WG_FLAG_STRING, &l.percentiles, "P,...", "percentiles of each latency", 0, 0 },
        { "out", 'o', WG_FLAG_STRING, &l.out, "FILE", "write the numbers as JSON", 0, 0 },
        { "detailed", 0, WG_FLAG_BOOL, &l.detailed, NULL, "the numbers of --out and --json include every request with its text",
          0, 0 },
        { "json", 0, WG_FLAG_BOOL, &l.json, NULL, "print the numbers as JSON", 0, 0 },
        { "sweep", 0, WG_FLAG_STRING, &l.sweep, "CONFIG", "test every server of a config at every load, into the folder --out",
          0, 0 },
        { "resume", 0, WG_FLAG_BOOL, &l.resume, NULL, "with --sweep: continue in the folder", 0, 0 },
        { 0 },
    };
    const int done = wg_cli_parse("load", flags, argc, argv, &l.url, 0, 1);
    if (done >= 0) return done;
    wg_error err;
    if (!l.sweep && l.out && wg_save_check(l.out, &err)) return wg_cli_fail(&err);
    if (!l.sweep && l.url && !l.resume) return run(&l);
    if (l.sweep && !l.url && l.out) return wg_load_sweep_command(l.sweep, l.out, l.resume);
    fputs("wager load: expected the address of a server, or --sweep CONFIG --out FOLDER, perhaps with --resume\n", stderr);
    return WG_EXIT_USAGE;
}
