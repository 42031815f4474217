/* SPDX-License-Identifier: MIT
 * The server's metrics in the text format of Prometheus. */
#include "serve/metrics.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { BUCKETS = 22 };

typedef enum histogram_id { H_FIRST, H_PER_TOKEN, H_BETWEEN, H_WHOLE, H_QUEUE, H_PROMPT, H_NEW, HISTOGRAMS } histogram_id;

static const double seconds[BUCKETS] = { .0005, .001, .002, .005, .01, .02, .04, .06, .08, .1, .25,
                                         .5,    .75,  1,    2.5,  5,   7.5, 10,  20,  40,  80, 160 };
static const double tokens[BUCKETS] = { 1,   2,   5,   10,  20,  50,  100, 200, 500, 1e3, 2e3,
                                        5e3, 1e4, 2e4, 5e4, 1e5, 2e5, 5e5, 1e6, 2e6, 5e6, 1e7 };

static const struct {
    const char *name, *doc;
    const double *bound; /* (BUCKETS) upper bounds; the last bucket, infinity, is implied */
} histogram_facts[HISTOGRAMS] = {
    { "time_to_first_token_seconds", "From the request to its first token.", seconds },
    { "time_per_output_token_seconds", "Of an answer: (last - first token) / (tokens - 1).", seconds },
    { "inter_token_latency_seconds", "Between events of a stream; one event has the tokens of one round.", seconds },
    { "e2e_request_latency_seconds", "From the request to its last token.", seconds },
    { "request_queue_time_seconds", "From the request to its first step.", seconds },
    { "request_prompt_tokens", "Tokens of a prompt.", tokens },
    { "request_generation_tokens", "Tokens of an answer.", tokens },
};

typedef struct histogram {
    int64_t bucket[BUCKETS + 1];
    double sum;
} histogram;

struct wgs_metrics {
    pthread_mutex_t lock;
    int64_t count[WGS_COUNTS], finished[WGS_ERROR + 1];
    int64_t drafts, drafted, accepted, at_position[WGS_POSITIONS], prompt_tokens, new_tokens;
    histogram of[HISTOGRAMS];
};

wgs_metrics *wgs_metrics_open(void)
{
    wgs_metrics *m = calloc(1, sizeof *m);
    if (m) pthread_mutex_init(&m->lock, NULL);
    return m;
}

void wgs_metrics_close(wgs_metrics *m)
{
    if (m) pthread_mutex_destroy(&m->lock);
    free(m);
}

void wgs_metrics_count(wgs_metrics *m, wgs_count what, int n)
{
    pthread_mutex_lock(&m->lock);
    m->count[what] += n;
    pthread_mutex_unlock(&m->lock);
}

static void observe(wgs_metrics *m, histogram_id which, double x)
{
    int i = 0;
    while (i < BUCKETS && x > histogram_facts[which].bound[i]) i++;
    m->of[which].bucket[i]++;
    m->of[which].sum += x;
}

void wgs_metrics_round(wgs_metrics *m, int drafted, int accepted, int n, double gap)
{
    pthread_mutex_lock(&m->lock);
    m->drafts += drafted > 0;
    m->drafted += drafted;
    m->accepted += accepted;
    m->new_tokens += n;
    for (int i = 0; i < accepted && i < WGS_POSITIONS; i++) m->at_position[i]++;
    if (gap > 0) observe(m, H_BETWEEN, gap);
    pthread_mutex_unlock(&m->lock);
}

void wgs_metrics_answer(wgs_metrics *m, const wgs_answer *a)
{
    const wgs_times *t = &a->times;
    const int n = wgs_answer_new_tokens(a);
    pthread_mutex_lock(&m->lock);
    m->finished[a->finish]++;
    m->prompt_tokens += a->prompt_tokens;
    if (t->started > 0) observe(m, H_QUEUE, t->started - t->submitted);
    if (t->first > 0) {
        observe(m, H_FIRST, t->first - t->submitted);
        observe(m, H_WHOLE, t->last - t->submitted);
        if (n > 1) observe(m, H_PER_TOKEN, (t->last - t->first) / (n - 1));
        observe(m, H_PROMPT, a->prompt_tokens);
        observe(m, H_NEW, n);
    }
    pthread_mutex_unlock(&m->lock);
}

/* Writes the lines # HELP and # TYPE of a series. */
static void head(wgs_buffer *out, const char *prefix, const char *name, const char *type, const char *doc)
{
    wgs_buffer_format(out, "# HELP %s%s %s\n# TYPE %s%s %s\n", prefix, name, doc, prefix, name, type);
}

static void counter(wgs_buffer *out, const char *prefix, const char *name, const char *doc, int64_t value)
{
    head(out, prefix, name, "counter", doc);
    wgs_buffer_format(out, "%s%s %" PRId64 "\n", prefix, name, value);
}

static void gauge(wgs_buffer *out, const char *prefix, const char *name, const char *doc, double value)
{
    head(out, prefix, name, "gauge", doc);
    wgs_buffer_format(out, "%s%s %.9g\n", prefix, name, value);
}

static void write_histogram(wgs_buffer *out, const char *prefix, histogram_id which, const histogram *h)
{
    const char *name = histogram_facts[which].name;
    int64_t n = 0;
    head(out, prefix, name, "histogram", histogram_facts[which].doc);
    for (int i = 0; i < BUCKETS; i++) {
        n += h->bucket[i];
        wgs_buffer_format(out, "%s%s_bucket{le=\"%g\"} %" PRId64 "\n", prefix, name, histogram_facts[which].bound[i], n);
    }
    n += h->bucket[BUCKETS];
    wgs_buffer_format(out, "%s%s_bucket{le=\"+Inf\"} %" PRId64 "\n%s%s_sum %.9g\n%s%s_count %" PRId64 "\n", prefix, name, n,
                      prefix, name, h->sum, prefix, name, n);
}

/* Writes a label with its value, in which quotes, backslashes and line ends are escaped. */
static void label(wgs_buffer *out, const char *name, const char *value)
{
    wgs_buffer_format(out, "%s=\"", name);
    for (const char *s = value ? value : ""; *s; s++) {
        if (*s == '\n') wgs_buffer_puts(out, "\\n");
        else {
            if (*s == '"' || *s == '\\') wgs_buffer_puts(out, "\\");
            wgs_buffer_put(out, s, 1);
        }
    }
    wgs_buffer_puts(out, "\"");
}

static void write_speculation(const wgs_metrics *m, const char *prefix, wgs_buffer *out)
{
    static const char *const name = "spec_decode_num_accepted_tokens_per_pos_total";
    counter(out, prefix, "spec_decode_num_drafts_total", "Rounds with a draft.", m->drafts);
    counter(out, prefix, "spec_decode_num_draft_tokens_total", "Draft tokens that were verified.", m->drafted);
    counter(out, prefix, "spec_decode_num_accepted_tokens_total", "Draft tokens that were accepted.", m->accepted);
    head(out, prefix, name, "counter", "Accepted draft tokens, by their place in the draft.");
    for (int i = 0; i < WGS_POSITIONS && (i < 8 || m->at_position[i]); i++)
        wgs_buffer_format(out, "%s%s{position=\"%d\"} %" PRId64 "\n", prefix, name, i, m->at_position[i]);
}

static void write_gauges(const char *prefix, const wgs_gauges *now, wgs_buffer *out)
{
    static const char *const phase[] = { "draft", "verify", "accept", "kv", "prefill" };
    static const char *const reason[] = { "off", "policy", "drafter" };
    const double spent[] = { now->seconds_draft, now->seconds_verify, now->seconds_accept, now->seconds_kv,
                             now->seconds_prefill };
    gauge(out, prefix, "num_requests_running", "Answers that are being generated.", now->running);
    gauge(out, prefix, "num_requests_waiting", "Answers that wait for their first step.", now->waiting);
    gauge(out, prefix, "http_connections", "Open connections.", now->connections);
    gauge(out, prefix, "kv_cache_usage_perc", "Share of the pages of the cache that answers use.",
          now->pages > 0 ? (double)now->pages_used / now->pages : 0);
    gauge(out, prefix, "kv_pages_used", "Pages of the cache that answers use.", now->pages_used);
    gauge(out, prefix, "kv_pages_cached", "Pages of texts that have ended, kept for prompts that begin alike.",
          now->pages_cached);
    gauge(out, prefix, "kv_pages", "Pages of the cache.", now->pages);
    counter(out, prefix, "prefix_cache_hit_tokens_total", "Tokens of prompts that were found in the cache.",
            now->cached_tokens);
    counter(out, prefix, "prefix_cache_evictions_total", "Earlier texts that gave way.", now->evictions);
    counter(out, prefix, "num_preemptions_total", "Answers that gave up their pages and were computed again.",
            now->preemptions);
    head(out, prefix, "spec_round_seconds_total", "counter", "Time of all rounds, by phase.");
    for (int i = 0; i < 5; i++)
        wgs_buffer_format(out, "%sspec_round_seconds_total{phase=\"%s\"} %.9g\n", prefix, phase[i], spent[i]);
    head(out, prefix, "spec_disabled_rounds_total", "counter", "Passes without a draft, by the reason.");
    for (int i = 0; i < 3; i++)
        wgs_buffer_format(out, "%sspec_disabled_rounds_total{reason=\"%s\"} %" PRId64 "\n", prefix, reason[i],
                          now->undrafted[i]);
    head(out, prefix, "build_info", "gauge", "What serves.");
    wgs_buffer_format(out, "%sbuild_info{", prefix);
    label(out, "version", now->version);
    wgs_buffer_puts(out, ",");
    label(out, "model", now->model);
    wgs_buffer_puts(out, ",");
    label(out, "drafter", now->drafter);
    wgs_buffer_puts(out, ",");
    label(out, "rule", now->rule);
    wgs_buffer_puts(out, ",");
    label(out, "profile", now->profile);
    wgs_buffer_puts(out, "} 1\n");
}

void wgs_metrics_write(wgs_metrics *m, const char *prefix, const wgs_gauges *now, wgs_buffer *out)
{
    pthread_mutex_lock(&m->lock);
    write_speculation(m, prefix, out);
    counter(out, prefix, "prompt_tokens_total", "Tokens of prompts.", m->prompt_tokens);
    counter(out, prefix, "generation_tokens_total", "Tokens of answers.", m->new_tokens);
    head(out, prefix, "request_success_total", "counter", "Answers that have ended, by how.");
    for (int i = WGS_STOP; i <= WGS_ERROR; i++)
        wgs_buffer_format(out, "%srequest_success_total{finished_reason=\"%s\"} %" PRId64 "\n", prefix, wgs_finish_names[i],
                          m->finished[i]);
    counter(out, prefix, "http_responses_total", "Answers of HTTP.", m->count[WGS_HTTP_ANSWERS]);
    counter(out, prefix, "http_errors_total", "Answers of HTTP with a status from 400 on.", m->count[WGS_HTTP_ERRORS]);
    counter(out, prefix, "requests_rejected_total", "Requests that found a full queue (429).", m->count[WGS_REJECTED]);
    counter(out, prefix, "clients_gone_total", "Clients that left before their answer was complete.",
            m->count[WGS_CLIENTS_GONE]);
    for (int i = 0; i < HISTOGRAMS; i++) write_histogram(out, prefix, (histogram_id)i, &m->of[i]);
    pthread_mutex_unlock(&m->lock);
    write_gauges(prefix, now, out);
}
