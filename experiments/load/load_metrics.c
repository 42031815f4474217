/* SPDX-License-Identifier: MIT
 * Metrics of a load test (load_metrics.h). */
#include "experiments/load/load_metrics.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "core/base/json_number.h"
#include "core/base/mem.h"
#include "experiments/base/stats.h"
#include "experiments/load/load_test.h"

/* ---- records of requests */

const char *const wg_load_outcome_names[WG_LOAD_KINDS] = {
#define X(name, word, doc) [WG_LOAD_##name] = word,
    WG_LOAD_OUTCOMES(X)
#undef X
};

bool wg_load_record_event(wg_load_record *r, double at, int tokens)
{
    if (r->events == 0) {
        r->first = r->last = at;
        r->first_tokens = tokens;
        r->events = 1;
        return true;
    }
    const int n = r->events - 1;
    if (n == r->room) {
        const size_t more = r->room ? 2 * (size_t)r->room : 64;
        double *gap = wg_realloc(r->gap, more, sizeof *gap);
        if (gap) r->gap = gap;
        int *of = wg_realloc(r->gap_tokens, more, sizeof *of);
        if (of) r->gap_tokens = of;
        if (!gap || !of) return false;
        r->room = (int)more;
    }
    r->gap[n] = at - r->last;
    r->gap_tokens[n] = tokens;
    r->last = at;
    r->events++;
    return true;
}

void wg_load_record_close(wg_load_record *r)
{
    wg_free(r->gap);
    wg_free(r->gap_tokens);
    wg_free(r->text);
    r->gap = NULL;
    r->gap_tokens = NULL;
    r->text = NULL;
}

double wg_load_record_tpot(const wg_load_record *r)
{
    return r->events > 1 && r->tokens > 1 ? (r->last - r->first) / (r->tokens - 1) : NAN;
}

/* ---- metrics */

/* A growing list of seconds. */
typedef struct sample {
    double *v;
    int n;
    size_t room;
    bool failed;
} sample;

static void take(sample *s, double v)
{
    wg_error none; /* the sample remembers that it failed */
    if (wg_grow((void **)&s->v, &s->room, (size_t)s->n + 1, sizeof *s->v, "seconds", &none)) s->failed = true;
    else s->v[s->n++] = v;
}

typedef struct samples {
    sample ttft, tpot, itl, per_token, e2el, queue, late;
} samples;

static void put(json_t *o, const char *form, const char *name, double v)
{
    char key[80];
    snprintf(key, sizeof key, form, name);
    json_object_set_new(o, key, wg_json_number(v));
}

/* mean_, median_, std_ and pNN_NAME_ms; null without a value. Sorts the sample. */
static void put_statistics(json_t *o, const wg_load_measured *m, const char *name, sample *s)
{
    double sum = 0, square = 0;
    for (int i = 0; i < s->n; i++) sum += s->v[i];
    const double mean = s->n ? sum / s->n : NAN;
    for (int i = 0; i < s->n; i++) square += (s->v[i] - mean) * (s->v[i] - mean);
    put(o, "mean_%s_ms", name, mean * 1e3);
    put(o, "median_%s_ms", name, wg_quantile(s->v, s->n, 0.5) * 1e3);
    put(o, "std_%s_ms", name, s->n ? sqrt(square / s->n) * 1e3 : NAN);
    for (int i = 0; i < m->percentiles; i++) {
        char form[48];
        snprintf(form, sizeof form, "p%.10g_%%s_ms", m->percentile[i]);
        put(o, form, name, wg_quantile(s->v, s->n, m->percentile[i] / 100) * 1e3);
    }
    wg_free(s->v);
}

static double e2el(const wg_load_record *r) { return r->last - r->start; }
static double ttft(const wg_load_record *r) { return r->first - r->start; }

static bool is_good(const wg_load_goals *g, const wg_load_record *r)
{
    const double tpot = r->tokens > 1 ? wg_load_record_tpot(r) : 0;
    return (!g->ttft || ttft(r) * 1e3 <= g->ttft) && (!g->tpot || tpot * 1e3 <= g->tpot) &&
           (!g->e2el || e2el(r) * 1e3 <= g->e2el);
}

/* ---- totals ------------------------------------------------------------------------------------------------------ */

typedef struct totals {
    double input, output, cached, events, counted, drafts, draft_tokens, accepted_tokens;
    int completed, good, connections, without_done, kind[WG_LOAD_KINDS];
} totals;

static double said(long v) { return v > 0 ? (double)v : 0; }

static void add_completed(totals *t, samples *s, const wg_load_measured *m, const wg_load_record *r)
{
    t->completed++;
    t->good += is_good(&m->goals, r);
    t->input += said(r->prompt_tokens);
    t->cached += said(r->cached_tokens);
    t->output += r->tokens;
    t->events += r->events;
    t->counted += r->counted;
    t->without_done += r->without_done;
    t->drafts += said(r->drafts);
    t->draft_tokens += said(r->draft_tokens);
    t->accepted_tokens += said(r->accepted_tokens);
    take(&s->ttft, ttft(r));
    take(&s->e2el, e2el(r));
    if (r->tokens > 1) take(&s->tpot, wg_load_record_tpot(r));
    for (int i = 0; i + 1 < r->events; i++) {
        take(&s->itl, r->gap[i]);
        for (int k = 0; k < r->gap_tokens[i]; k++) take(&s->per_token, r->gap[i] / r->gap_tokens[i]);
    }
}

static totals add_up(const wg_load_measured *m, samples *s)
{
    totals t = { .completed = 0 };
    for (int i = 0; i < m->n; i++) {
        const wg_load_record *r = &m->record[i];
        t.kind[r->outcome]++;
        t.connections += r->new_connection;
        take(&s->late, r->start - r->arrival);
        if (r->outcome != WG_LOAD_COMPLETED) continue;
        take(&s->queue, r->start - r->arrival);
        add_completed(&t, s, m, r);
    }
    return t;
}

static void put_totals(json_t *o, const wg_load_measured *m, const totals *t)
{
    const bool goals = m->goals.ttft || m->goals.tpot || m->goals.e2el;
    const double per = m->seconds > 0 ? 1 / m->seconds : NAN;
    json_object_set_new(o, "duration", wg_json_number(m->seconds));
    json_object_set_new(o, "completed", json_integer(t->completed));
    json_object_set_new(o, "failed", json_integer(m->n - t->completed));
    json_object_set_new(o, "total_input_tokens", wg_json_plain(t->input));
    json_object_set_new(o, "total_output_tokens", wg_json_plain(t->output));
    json_object_set_new(o, "request_throughput", wg_json_number(t->completed * per));
    json_object_set_new(o, "request_goodput", goals ? wg_json_number(t->good * per) : json_null());
    json_object_set_new(o, "output_throughput", wg_json_number(t->output * per));
    json_object_set_new(o, "total_token_throughput", wg_json_number((t->input + t->output) * per));
}

/* ---- the most at a time ------------------------------------------------------------------------------------------ */

static int by_time(const void *a, const void *b)
{
    const double *x = a, *y = b; /* by time, then departures (-1) before arrivals (+1) */
    return x[0] != y[0] ? (x[0] > y[0]) - (x[0] < y[0]) : (x[1] > y[1]) - (x[1] < y[1]);
}

/* Requests in flight at once, of those completed. */
static int most_concurrent(const wg_load_measured *m)
{
    double(*change)[2] = wg_calloc((size_t)m->n * 2 + 1, sizeof *change);
    int n = 0, now = 0, most = 0;
    for (int i = 0; change && i < m->n; i++) {
        if (m->record[i].outcome != WG_LOAD_COMPLETED) continue;
        change[n][0] = m->record[i].start, change[n++][1] = 1;
        change[n][0] = m->record[i].last, change[n++][1] = -1;
    }
    if (n) qsort(change, (size_t)n, sizeof *change, by_time);
    for (int i = 0; i < n; i++) {
        now += change[i][1] > 0 ? 1 : -1;
        if (now > most) most = now;
    }
    wg_free(change);
    return most;
}

static void add_tokens(double *second, int n, double at, double tokens)
{
    if (at >= 0 && at < n) second[(int)at] += tokens;
}

/* Tokens in the fullest second, counted from the first request sent. */
static double most_tokens(const wg_load_measured *m)
{
    double from = INFINITY, to = 0, most = 0;
    for (int i = 0; i < m->n; i++) {
        if (m->record[i].outcome != WG_LOAD_COMPLETED) continue;
        from = fmin(from, m->record[i].start);
        to = fmax(to, m->record[i].last);
    }
    if (!(to - from < 1e7)) return 0;
    const int n = (int)(to - from) + 1;
    double *second = wg_calloc((size_t)n, sizeof *second);
    for (int i = 0; second && i < m->n; i++) {
        const wg_load_record *r = &m->record[i];
        if (r->outcome != WG_LOAD_COMPLETED) continue;
        double at = r->first - from;
        add_tokens(second, n, at, r->first_tokens);
        for (int k = 0; k + 1 < r->events; k++) add_tokens(second, n, at += r->gap[k], r->gap_tokens[k]);
    }
    for (int i = 0; second && i < n; i++) most = fmax(most, second[i]);
    wg_free(second);
    return most;
}

/* ---- metrics beyond vLLM's ------------------------------------------------------------------------------------ */

/* latency = TTFT + TPOT (n - 1), with the mean TPOT of the test instead of each request's own, against the measured time until
 * the response was complete: the relative error of each request. */
static json_t *latency_model(const wg_load_measured *m, const sample *tpot)
{
    sample error = { .n = 0 };
    double sum = 0, predicted = 0, measured = 0;
    for (int i = 0; i < tpot->n; i++) sum += tpot->v[i];
    const double mean = tpot->n ? sum / tpot->n : 0;
    for (int i = 0; i < m->n; i++) {
        const wg_load_record *r = &m->record[i];
        if (r->outcome != WG_LOAD_COMPLETED) continue;
        const double p = ttft(r) + mean * (r->tokens - 1), t = r->end - r->start;
        predicted += p;
        measured += t;
        take(&error, fabs(p / t - 1));
    }
    const double middle = wg_quantile(error.v, error.n, 0.5), high = wg_quantile(error.v, error.n, 0.99);
    json_t *o = json_object();
    json_object_set_new(o, "predicted_mean_ms", wg_json_number(error.n ? predicted / error.n * 1e3 : NAN));
    json_object_set_new(o, "measured_mean_ms", wg_json_number(error.n ? measured / error.n * 1e3 : NAN));
    json_object_set_new(o, "median_relative_error", wg_json_number(middle));
    json_object_set_new(o, "p99_relative_error", wg_json_number(high));
    wg_free(error.v);
    return o;
}

static void put_acceptance(json_t *o, double drafts, double draft_tokens, double accepted, const char *source)
{
    json_object_set_new(o, "spec_decode_acceptance_rate",
                        wg_json_number(draft_tokens > 0 ? accepted / draft_tokens * 100 : NAN));
    json_object_set_new(o, "spec_decode_acceptance_length", wg_json_number(drafts > 0 ? 1 + accepted / drafts : NAN));
    json_object_set_new(o, "spec_decode_num_drafts", wg_json_plain(drafts));
    json_object_set_new(o, "spec_decode_draft_tokens", wg_json_plain(draft_tokens));
    json_object_set_new(o, "spec_decode_accepted_tokens", wg_json_plain(accepted));
    json_object_set_new(o, "spec_decode_source", json_string(source));
}

/* Adds speculation by the server's counters, else by its responses; nothing if neither has any. */
static void put_speculation(json_t *o, const wg_load_measured *m, const totals *t)
{
    const wg_server_counters *a = m->before, *b = m->after;
    if (!a || !b || !a->found || !b->found) {
        if (t->draft_tokens > 0) put_acceptance(o, t->drafts, t->draft_tokens, t->accepted_tokens, "responses");
        return;
    }
    const double drafts = b->drafts - a->drafts;
    if (!(b->draft_tokens - a->draft_tokens > 0)) return;
    put_acceptance(o, drafts, b->draft_tokens - a->draft_tokens, b->accepted_tokens - a->accepted_tokens, "metrics");
    json_t *list = json_array();
    for (int i = 0; i < b->positions && drafts > 0; i++)
        json_array_append_new(list, wg_json_number((b->accepted_at[i] - a->accepted_at[i]) / drafts));
    json_object_set_new(o, "spec_decode_per_position_acceptance_rates", list);
}

/* The digest of all completed texts in the order of requests: equal digests, equal answers. */
static json_t *digest(const wg_load_measured *m)
{
    wg_sha256_state s;
    char hex[WG_SHA256_HEX];
    wg_sha256_begin(&s);
    for (int i = 0; i < m->n; i++)
        if (m->record[i].outcome == WG_LOAD_COMPLETED) wg_sha256_add(&s, m->record[i].sha256, WG_SHA256_HEX - 1);
    wg_sha256_end(&s, hex);
    return json_string(hex);
}

static void put_own(json_t *o, const wg_load_measured *m, const totals *t)
{
    json_t *kinds = json_object(), *first = json_object();
    for (int k = WG_LOAD_COMPLETED + 1; k < WG_LOAD_KINDS; k++)
        json_object_set_new(kinds, wg_load_outcome_names[k], json_integer(t->kind[k]));
    for (int i = m->n - 1; i >= 0; i--)
        if (m->record[i].outcome != WG_LOAD_COMPLETED)
            json_object_set_new(first, wg_load_outcome_names[m->record[i].outcome], wg_json_text(m->record[i].error));
    json_object_set_new(o, "failed_by_kind", kinds);
    json_object_set_new(o, "first_errors", first);
    json_object_set_new(o, "planned", json_integer(m->planned));
    json_object_set_new(o, "not_sent", json_integer(m->planned - m->n));
    json_object_set_new(o, "without_done", json_integer(t->without_done));
    json_object_set_new(o, "cached_tokens", wg_json_plain(t->cached));
    json_object_set_new(o, "connections", json_integer(t->connections));
    json_object_set_new(o, "tokens_per_event", wg_json_number(t->events > 0 ? t->output / t->events : NAN));
    json_object_set_new(o, "event_tokens_known", wg_json_number(t->completed ? t->counted / t->completed : NAN));
    json_object_set_new(o, "client_cpu_s", wg_json_number(m->client_cpu));
    json_object_set_new(o, "output_sha256", digest(m));
}

/* ---- a list of each request -------------------------------------------------------------------------------------- */

static json_t *gaps(const wg_load_record *r, bool tokens)
{
    json_t *list = json_array();
    for (int i = 0; i + 1 < r->events; i++)
        json_array_append_new(list, tokens ? json_integer(r->gap_tokens[i]) : wg_json_number(r->gap[i]));
    return list;
}

static void put_lists(json_t *o, const wg_load_measured *m)
{
    static const char *const names[] = { "input_lens",  "output_lens", "ttfts",           "itls",   "itl_tokens", "latencies",
                                         "start_times", "queue_times", "generated_texts", "errors", "outcomes",   "sha256" };
    enum { LISTS = sizeof names / sizeof *names };
    json_t *list[LISTS];
    for (int k = 0; k < LISTS; k++) json_object_set_new(o, names[k], list[k] = json_array());
    for (int i = 0; i < m->n; i++) {
        const wg_load_record *r = &m->record[i];
        const bool any = r->events > 0;
        json_t *text = r->text ? json_stringn(r->text, r->text_n) : json_string("");
        json_t *v[LISTS] = { json_integer(r->prompt_tokens > 0 ? r->prompt_tokens : 0),
                             json_integer(r->tokens),
                             wg_json_number(any ? ttft(r) : 0),
                             gaps(r, false),
                             gaps(r, true),
                             wg_json_number(any ? e2el(r) : 0),
                             wg_json_number(r->start),
                             wg_json_number(r->start - r->arrival),
                             text ? text : json_string("?"),
                             wg_json_text(r->error),
                             json_string(wg_load_outcome_names[r->outcome]),
                             json_string(r->sha256) };
        for (int k = 0; k < LISTS; k++) json_array_append_new(list[k], v[k]);
    }
}

json_t *wg_load_metrics(const wg_load_measured *m, bool detailed)
{
    samples s = { .ttft = { .n = 0 } };
    json_t *o = json_object();
    const totals t = add_up(m, &s);
    const bool failed = s.ttft.failed || s.tpot.failed || s.itl.failed || s.per_token.failed || s.e2el.failed || s.late.failed;
    put_totals(o, m, &t);
    json_object_set_new(o, "latency_model", latency_model(m, &s.tpot));
    put_statistics(o, m, "ttft", &s.ttft);
    put_statistics(o, m, "tpot", &s.tpot);
    put_statistics(o, m, "itl", &s.itl);
    put_statistics(o, m, "itl_per_token", &s.per_token);
    put_statistics(o, m, "e2el", &s.e2el);
    if (m->open_loop) put_statistics(o, m, "client_queue_time", &s.queue);
    else wg_free(s.queue.v);
    json_object_set_new(o, "late_ms", wg_json_number(m->open_loop ? wg_quantile(s.late.v, s.late.n, 0.99) * 1e3 : NAN));
    wg_free(s.late.v);
    json_object_set_new(o, "max_output_tokens_per_s", wg_json_number(most_tokens(m)));
    json_object_set_new(o, "max_concurrent_requests", json_integer(most_concurrent(m)));
    put_speculation(o, m, &t);
    put_own(o, m, &t);
    if (detailed) put_lists(o, m);
    if (!failed) return o;
    json_decref(o);
    return NULL;
}

/* ---- a result as an object: the members of the test, then its metrics */

static void put_test(json_t *o, const wg_load_test *t, const wg_load_result *r)
{
    char date[32];
    const time_t now = time(NULL);
    struct tm tm;
    localtime_r(&now, &tm);
    strftime(date, sizeof date, "%Y%m%d-%H%M%S", &tm);
    json_object_set_new(o, "date", json_string(date));
    json_object_set_new(o, "endpoint_type", json_string(t->chat ? "openai-chat" : "openai"));
    json_object_set_new(o, "backend", json_string(t->chat ? "openai-chat" : "openai"));
    json_object_set_new(o, "label", json_null());
    json_object_set_new(o, "model_id", wg_json_text(r->model));
    json_object_set_new(o, "tokenizer_id", json_null());
    json_object_set_new(o, "num_prompts", json_integer(t->requests));
    json_object_set_new(o, "request_rate",
                        t->arrival    ? json_string("trace")
                        : t->rate > 0 ? json_real(t->rate)
                                      : json_string("inf"));
    json_object_set_new(o, "burstiness", json_real(t->burstiness));
    json_object_set_new(o, "max_concurrency", t->clients ? json_integer(t->clients) : json_null());
}

json_t *wg_load_result_json(const wg_load_test *t, const wg_load_result *r, const wg_load_goals *goals,
                            const double *percentile, int percentiles, bool detailed)
{
    wg_load_measured m = { .record = r->record,
                           .n = r->n,
                           .planned = t->requests,
                           .seconds = r->seconds,
                           .client_cpu = r->client_cpu,
                           .goals = *goals,
                           .open_loop = t->rate > 0 || t->arrival,
                           .before = &r->before,
                           .after = &r->after };
    for (; m.percentiles < percentiles && m.percentiles < WG_LOAD_PERCENTILES; m.percentiles++)
        m.percentile[m.percentiles] = percentile[m.percentiles];
    json_t *o = json_object(), *numbers = wg_load_metrics(&m, detailed);
    put_test(o, t, r);
    if (numbers) json_object_update(o, numbers);
    json_decref(numbers);
    if (numbers) return o;
    json_decref(o);
    return NULL;
}
