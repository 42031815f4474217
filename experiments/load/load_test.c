/* SPDX-License-Identifier: MIT
 * Load tests (load_test.h). */
#include "experiments/load/load_test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "core/base/clock.h"
#include "core/base/mem.h"
#include "core/base/short_turns.h"
#include "experiments/load/answer_stream.h"
#include "experiments/load/arrivals.h"
#include "experiments/load/http.h"
#include "kernels/philox.h"

enum { SMALL_ANSWER = 4 << 20, SMALL_SECONDS = 10, BODY_MOST = 512, UNLIMITED_CLIENTS = 1024 };

typedef struct loader loader;

/* A request under way. */
typedef struct flight {
    loader *of;
    wg_load_record *record; /* NULL: a warm-up, which is not recorded */
    wg_sse sse;
    bool busy, finished; /* finished: a finish_reason came */
    long said;           /* completion tokens by usage; -1: unknown */
    long counted;        /* tokens of events so far */
    bool all_counted;    /* every event gave its tokens */
    char *body;          /* (body_n) owned: beginning of an error's body, or a whole answer without stream */
    size_t body_n, body_room;
    wg_sha256_state digest;
} flight;

struct loader {
    const wg_load_test *t;
    wg_load_result *out;
    wg_http *http;
    flight *flight; /* (slots) */
    int slots, busy;
    double *arrival, began; /* arrival: (requests) owned */
    char url[1024];         /* address of completions */
    bool nomem;
};

static double cpu_seconds(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + 1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static bool stopped(const wg_load_test *t) { return t->stop && *t->stop; }

/* The first failure of a request is its outcome. */
static bool fail(flight *f, wg_load_outcome outcome, const char *text, size_t n)
{
    wg_load_record *r = f->record;
    if (r && r->outcome == WG_LOAD_COMPLETED) {
        r->outcome = outcome;
        snprintf(r->error, sizeof r->error, "%.*s", (int)(n < sizeof r->error ? n : sizeof r->error - 1), text);
    }
    return false;
}

static bool append(char **to, size_t *n, size_t *room, const char *bytes, size_t more)
{
    if (*n + more + 1 > *room) {
        const size_t want = 2 * (*n + more + 1);
        char *grown = wg_realloc(*to, want, 1);
        if (!grown) return false;
        *to = grown;
        *room = want;
    }
    memcpy(*to + *n, bytes, more);
    *n += more;
    return true;
}

/* ---- the body of a request */

enum { WORDS = 0x776f7264 }; /* purpose of these draws */

/* Short words that most tokenizers hold whole, so that a prompt has about as many tokens as words. */
static const char *const made_up[] = { "the",  "a",     "cat",  "dog", "sun",  "sea", "day",  "night", "man",   "girl", "boy",
                                       "tree", "house", "went", "saw", "was",  "had", "said", "big",   "small", "red",  "old",
                                       "to",   "in",    "on",   "and", "with", "her", "his",  "they",  "very",  "then" };

/* A made-up prompt: equal for equal seeds and numbers, and from its first word on different for others, so that a cache of
 * prefixes does not shorten it. */
static json_t *synthetic(const wg_load_test *t, int number)
{
    const wg_philox length = wg_philox_at(t->seed, WORDS, (uint32_t)number, 0, 1);
    const int spread = 2 * t->input_range + 1;
    const int n = t->input_words - t->input_range + (int)(wg_philox_double(length.v[0], length.v[1]) * spread);
    char *text = wg_calloc((size_t)(n < 1 ? 1 : n), 8), *end = text;
    for (int i = 0; text && i < n; i++) {
        const wg_philox draw = wg_philox_at(t->seed, WORDS, (uint32_t)number, (uint32_t)i, 0);
        end += sprintf(end, "%s%s", i ? " " : "", made_up[draw.v[0] % (sizeof made_up / sizeof *made_up)]);
    }
    json_t *v = text ? json_string(text) : NULL;
    wg_free(text);
    return v;
}

static json_t *prompt_of(const wg_load_test *t, int number)
{
    if (!t->prompts) return synthetic(t, number);
    const int at = number < 0 ? -1 - number : number;
    const wg_prompt *p = &t->prompts->prompt[at % t->prompts->n];
    return json_stringn(p->text, p->bytes);
}

/* The JSON body of request `number`, or of warm-up -1 - number; released by free(). NULL: out of memory, or a prompt is not
 * UTF-8. */
static char *request_body(const wg_load_test *t, const char *model, int number)
{
    json_t *o = json_object(), *prompt = prompt_of(t, number);
    if (t->chat) prompt = json_pack("[{s:s, s:o}]", "role", "user", "content", prompt);
    bool failed = json_object_set_new(o, t->chat ? "messages" : "prompt", prompt) != 0;
    json_object_set_new(o, "model", json_string(model));
    json_object_set_new(o, "max_tokens", json_integer(t->max_tokens));
    if (t->chat) json_object_set_new(o, "max_completion_tokens", json_integer(t->max_tokens));
    if (!isnan(t->temperature)) json_object_set_new(o, "temperature", json_real(t->temperature));
    json_object_set_new(o, "seed", json_integer((json_int_t)((t->seed + (uint64_t)(number < 0 ? 0 : number)) & INT32_MAX)));
    json_object_set_new(o, "stream", json_boolean(!t->no_stream));
    if (!t->no_stream) json_object_set_new(o, "stream_options", json_pack("{s:b}", "include_usage", 1));
    if (t->ignore_eos) json_object_set_new(o, "ignore_eos", json_true());
    if (t->extra) failed = failed || json_object_update(o, (json_t *)(uintptr_t)t->extra) != 0;
    char *text = failed ? NULL : json_dumps(o, JSON_COMPACT);
    json_decref(o);
    return text;
}

/* ---- an answer --------------------------------------------------------------------------------------------------- */

static void take_numbers(flight *f, const wg_completion_chunk *c)
{
    wg_load_record *r = f->record;
    if (c->completion_tokens >= 0) f->said = c->completion_tokens;
    if (c->prompt_tokens >= 0) r->prompt_tokens = (int)c->prompt_tokens;
    if (c->cached_tokens >= 0) r->cached_tokens = (int)c->cached_tokens;
    if (c->drafts >= 0) r->drafts = c->drafts;
    if (c->draft_tokens >= 0) r->draft_tokens = c->draft_tokens;
    if (c->accepted_tokens >= 0) r->accepted_tokens = c->accepted_tokens;
}

/* Whether a chunk has output of the model. */
static bool speaks(const wg_completion_chunk *c) { return c->text_n + c->reasoning_n > 0; }

/* The tokens of a chunk; -1: unknown. If every chunk has usage, they are its difference from the previous one. */
static long tokens_of(const flight *f, const wg_completion_chunk *c)
{
    const bool begins = f->record->events == 0 && speaks(c);
    if (c->tokens >= 0 || c->completion_tokens < 0) return c->tokens;
    return f->said >= 0 ? c->completion_tokens - f->said : begins ? c->completion_tokens : -1;
}

/* Adds to the text of a record, which includes reasoning. */
static void keep_text(flight *f, const char *text, size_t n)
{
    wg_load_record *r = f->record;
    if (n == 0) return;
    wg_sha256_add(&f->digest, text, n);
    if (f->of->t->keep_text && !append(&r->text, &r->text_n, &r->text_room, text, n)) f->of->nomem = true;
}

/* Handles a chunk with tokens, which is an event; tokens without text belong to an incomplete character. If the tokens are
 * unknown, a chunk with text counts as one. */
static bool take_tokens(flight *f, const wg_completion_chunk *c)
{
    wg_load_record *r = f->record;
    long tokens = tokens_of(f, c);
    const bool unknown = tokens < 0 && speaks(c);
    keep_text(f, c->reasoning, c->reasoning_n);
    keep_text(f, c->text, c->text_n);
    if (unknown) tokens = 1;
    if (tokens > 0) {
        f->all_counted = f->all_counted && !unknown;
        f->counted += tokens;
        f->of->nomem = !wg_load_record_event(r, wg_clock_now() - f->of->began, (int)tokens) || f->of->nomem;
    }
    return !f->of->nomem;
}

static bool take_event(void *user, const char *data, size_t n)
{
    flight *f = user;
    wg_completion_chunk c;
    bool goes_on = wg_completion_chunk_read(&c, data, n);
    if (!goes_on) fail(f, WG_LOAD_MALFORMED, data, n);
    else if (c.error) goes_on = fail(f, WG_LOAD_SERVER, c.error, strlen(c.error));
    else if (f->record) {
        goes_on = take_tokens(f, &c);
        take_numbers(f, &c);
        if (c.done) f->record->without_done = false;
    }
    f->finished = f->finished || c.finish || c.done;
    wg_completion_chunk_close(&c);
    return goes_on;
}

static bool too_long(flight *f)
{
    char why[100];
    const int n = snprintf(why, sizeof why, "a line or an answer of more than %zu bytes", f->of->t->line_most);
    return fail(f, WG_LOAD_TOO_LONG, why, (size_t)n);
}

static bool take_body(void *user, int status, const char *bytes, size_t n)
{
    flight *f = user;
    const size_t most = status == 200 ? f->of->t->line_most : BODY_MOST;
    if (status == 200 && !f->of->t->no_stream) {
        const wg_sse_state s = wg_sse_feed(&f->sse, bytes, n, take_event, f);
        if (s == WG_SSE_MALFORMED) return fail(f, WG_LOAD_MALFORMED, bytes, n);
        if (s == WG_SSE_LONG) return too_long(f);
        f->of->nomem = f->of->nomem || s == WG_SSE_NOMEM;
        return s == WG_SSE_OK;
    }
    if (n > most - f->body_n) {
        if (status == 200) return too_long(f);
        n = most - f->body_n;
    }
    return append(&f->body, &f->body_n, &f->body_room, bytes, n) || !(f->of->nomem = true);
}

/* ---- begin and end of a request ---------------------------------------------------------------------------------- */

static wg_status begin(loader *l, int slot, int number, wg_error *err)
{
    flight *f = &l->flight[slot];
    wg_load_record *r = number < 0 ? NULL : &l->out->record[number];
    char *body = request_body(l->t, l->out->model, number);
    if (!body) return wg_nomem(err, 1, "a request");
    f->record = r;
    f->finished = false;
    f->said = -1;
    f->counted = 0;
    f->all_counted = true;
    f->body_n = 0;
    wg_sse_restart(&f->sse);
    wg_sha256_begin(&f->digest);
    const wg_http_request q = {
        .url = l->url, .body = body, .n = strlen(body), .seconds = l->t->seconds, .on_body = take_body, .user = f
    };
    const double now = wg_clock_now() - l->began;
    if (r)
        *r = (wg_load_record){ .arrival = l->arrival ? l->arrival[number] : now,
                               .start = now,
                               .first = NAN,
                               .last = NAN,
                               .end = NAN,
                               .prompt_tokens = -1,
                               .cached_tokens = -1,
                               .drafts = -1,
                               .draft_tokens = -1,
                               .accepted_tokens = -1,
                               .without_done = !l->t->no_stream };
    const wg_status s = wg_http_start(l->http, slot, &q, err);
    free(body);
    f->busy = s == WG_OK;
    l->busy += f->busy;
    if (r && f->busy) l->out->n = number + 1;
    return s;
}

static void judge(flight *f, const wg_http_end *e)
{
    static const wg_load_outcome of[] = { [WG_HTTP_COMPLETE] = WG_LOAD_COMPLETED,
                                          [WG_HTTP_UNREACHABLE] = WG_LOAD_UNREACHABLE,
                                          [WG_HTTP_BROKEN] = WG_LOAD_DROPPED,
                                          [WG_HTTP_TIMEOUT] = WG_LOAD_TIMEOUT,
                                          [WG_HTTP_GIVEN_UP] = WG_LOAD_CANCELLED };
    wg_load_record *r = f->record;
    static const char empty[] = "an answer without tokens", cut[] = "the stream ended before finish_reason and [DONE]";
    if (e->status && e->status != 200 && e->result == WG_HTTP_COMPLETE)
        fail(f, e->status == 429 || e->status == 503 ? WG_LOAD_REJECTED : WG_LOAD_STATUS, f->body ? f->body : "", f->body_n);
    if (e->result != WG_HTTP_COMPLETE && !(f->finished && e->result == WG_HTTP_BROKEN))
        fail(f, of[e->result], e->error, strlen(e->error));
    if (!f->finished) fail(f, WG_LOAD_DROPPED, cut, sizeof cut - 1);
    if (r->events == 0) fail(f, WG_LOAD_EMPTY, empty, sizeof empty - 1);
}

static void end(loader *l, flight *f, const wg_http_end *e)
{
    wg_load_record *r = f->record;
    f->busy = false;
    l->busy--;
    if (!r) return;
    r->status = e->status;
    r->new_connection = e->new_connection;
    if (l->t->no_stream && e->status == 200 && e->result == WG_HTTP_COMPLETE) take_event(f, f->body ? f->body : "", f->body_n);
    r->end = wg_clock_now() - l->began;
    r->tokens = (int)(f->said >= 0 ? f->said : f->counted);
    if (r->events > 0 && r->tokens < 1) r->tokens = 1;
    r->counted = f->all_counted && f->counted == r->tokens;
    wg_sha256_end(&f->digest, r->sha256);
    judge(f, e);
}

/* ---- the loop ---------------------------------------------------------------------------------------------------- */

static int free_slot(const loader *l)
{
    for (int i = 0; i < l->slots; i++)
        if (!l->flight[i].busy) return i;
    return -1;
}

/* Sends the requests that are due. *wait: seconds until the next is. */
static wg_status send_due(loader *l, int *sent, int requests, bool warm, double *wait, wg_error *err)
{
    *wait = 0.1;
    while (*sent < requests && l->busy < l->slots) {
        const double due = warm || !l->arrival ? 0 : l->arrival[*sent] - (wg_clock_now() - l->began);
        if (due > 0) {
            *wait = due < *wait ? due : *wait;
            break;
        }
        WG_TRY(begin(l, free_slot(l), warm ? -1 - *sent : *sent, err));
        ++*sent;
    }
    return WG_OK;
}

static wg_status run_requests(loader *l, int requests, bool warm, wg_error *err)
{
    int sent = 0, ended = 0;
    for (double wait; ended < requests && !stopped(l->t);) {
        wg_http_end e;
        bool any = false;
        WG_TRY(send_due(l, &sent, requests, warm, &wait, err));
        wg_http_wait(l->http, 0);
        while (wg_http_ended(l->http, &e)) end(l, &l->flight[e.slot], &e), ended++, any = true;
        if (l->nomem) return wg_nomem(err, 1, "the records of a load test");
        if (l->t->progress && !warm) l->t->progress(l->t->progress_user, sent, ended);
        if (!any && ended < requests) wg_http_wait(l->http, wait);
    }
    return WG_OK;
}

/* Records running requests as cancelled, when the test is interrupted. */
static void cancel(loader *l)
{
    static const char why[] = "the test was interrupted";
    for (int i = 0; i < l->slots; i++) {
        const wg_http_end e = { .slot = i, .result = WG_HTTP_GIVEN_UP };
        flight *f = &l->flight[i];
        if (!f->busy) continue;
        wg_http_abandon(l->http, i);
        fail(f, WG_LOAD_CANCELLED, why, sizeof why - 1);
        end(l, f, &e);
    }
}

/* ---- before and after -------------------------------------------------------------------------------------------- */

static wg_status find_model(loader *l, wg_error *err)
{
    char url[1024], *text;
    size_t n;
    int status;
    if (l->t->model) return (l->out->model = wg_strdup(l->t->model)) ? WG_OK : wg_nomem(err, 1, "a name");
    snprintf(url, sizeof url, "%s/v1/models", l->t->url);
    WG_TRY(wg_http_get(l->http, url, SMALL_SECONDS, SMALL_ANSWER, &text, &n, &status, err));
    json_t *o = json_loadb(text, n, 0, NULL);
    const char *id = json_string_value(json_object_get(json_array_get(json_object_get(o, "data"), 0), "id"));
    if (id) l->out->model = wg_strdup(id);
    const wg_status s = status != 200 || !id
                            ? wg_fail(err, WG_EIO, "%s names no model (status %d); name it: --model", url, status)
                        : l->out->model ? WG_OK
                                        : wg_nomem(err, n, "a name");
    json_decref(o);
    wg_free(text);
    return s;
}

/* Reads the server's counters; their absence is not an error. */
static void read_counters(loader *l, wg_server_counters *c)
{
    char url[1024], *text = NULL;
    size_t n;
    int status;
    wg_error ignored;
    *c = (wg_server_counters){ .found = false };
    snprintf(url, sizeof url, "%s/metrics", l->t->url);
    if (wg_http_get(l->http, url, SMALL_SECONDS, SMALL_ANSWER, &text, &n, &status, &ignored)) return;
    if (status == 200) wg_server_counters_read(c, text, n);
    wg_free(text);
}

static wg_status open_loader(loader *l, wg_error *err)
{
    const wg_load_test *t = l->t;
    const bool open = t->rate > 0 || t->arrival;
    const int most = t->requests > t->warmups ? t->requests : t->warmups;
    l->slots = t->clients ? t->clients : UNLIMITED_CLIENTS;
    if (l->slots > most) l->slots = most < 1 ? 1 : most;
    WG_TRY(
        wg_http_open(&l->http, &(wg_http_options){ .slots = l->slots, .key = t->key, .reuse = !t->one_connection_each }, err));
    l->flight = wg_calloc((size_t)l->slots, sizeof *l->flight);
    l->out->record = wg_calloc((size_t)t->requests, sizeof *l->out->record);
    if (open) l->arrival = wg_calloc((size_t)t->requests, sizeof *l->arrival);
    if (!l->flight || !l->out->record || (open && !l->arrival))
        return wg_nomem(err, (size_t)t->requests * sizeof *l->out->record, "the records of a load test");
    for (int i = 0; i < l->slots; i++) {
        l->flight[i].of = l;
        wg_sse_init(&l->flight[i].sse, t->line_most);
    }
    if (t->arrival) memcpy(l->arrival, t->arrival, (size_t)t->requests * sizeof *l->arrival);
    else if (open) wg_arrivals_gamma(l->arrival, t->requests, t->rate, t->burstiness, t->seed);
    snprintf(l->url, sizeof l->url, "%s/v1/%scompletions", t->url, t->chat ? "chat/" : "");
    return find_model(l, err);
}

static wg_status measure(loader *l, wg_error *err)
{
    const wg_load_test *t = l->t;
    wg_short_turns(); /* so that the events of several rounds do not seem to arrive together */
    WG_TRY(run_requests(l, t->warmups, true, err));
    read_counters(l, &l->out->before);
    const double cpu = cpu_seconds();
    l->began = wg_clock_now();
    const wg_status s = run_requests(l, t->requests, false, err);
    if (!s) cancel(l);
    l->out->seconds = wg_clock_now() - l->began;
    l->out->client_cpu = cpu_seconds() - cpu;
    if (!s && !stopped(t)) read_counters(l, &l->out->after);
    return s;
}

wg_status wg_load_test_run(const wg_load_test *t, wg_load_result *out, wg_error *err)
{
    loader l = { .t = t, .out = out };
    *out = (wg_load_result){ .n = 0 };
    wg_status s = open_loader(&l, err);
    if (!s) s = measure(&l, err);
    wg_http_close(l.http);
    for (int i = 0; l.flight && i < l.slots; i++) {
        wg_sse_close(&l.flight[i].sse);
        wg_free(l.flight[i].body);
    }
    wg_free(l.flight);
    wg_free(l.arrival);
    if (!s && stopped(t)) return wg_fail(err, WG_EINTERRUPTED, "interrupted after %d of %d requests", out->n, t->requests);
    return s;
}

void wg_load_result_close(wg_load_result *r)
{
    for (int i = 0; i < r->n; i++) wg_load_record_close(&r->record[i]);
    wg_free(r->record);
    wg_free(r->model);
    *r = (wg_load_result){ .n = 0 };
}

/* The status of GET url path; 0: no answer. */
static int status_of(wg_http *h, const char *url, const char *path)
{
    char whole[1024], *text = NULL;
    int status = 0;
    size_t n;
    wg_error ignored;
    snprintf(whole, sizeof whole, "%s%s", url, path);
    if (wg_http_get(h, whole, 2, SMALL_ANSWER, &text, &n, &status, &ignored)) status = 0;
    wg_free(text);
    return status;
}

wg_status wg_load_wait_ready(const char *url, double seconds, const volatile sig_atomic_t *stop, wg_error *err)
{
    wg_http *h;
    int status = 0;
    WG_TRY(wg_http_open(&h, &(wg_http_options){ .slots = 1, .reuse = true }, err));
    for (const double until = wg_clock_now() + seconds; status != 200 && wg_clock_now() < until && !(stop && *stop);) {
        status = status_of(h, url, "/health");
        if (status == 404) status = status_of(h, url, "/v1/models"); /* a server that has no /health */
        if (status != 200) wg_http_wait(h, 0.02);
    }
    wg_http_close(h);
    if (stop && *stop) return wg_fail(err, WG_EINTERRUPTED, "interrupted");
    return status == 200 ? WG_OK : wg_fail(err, WG_EIO, "%s/health did not answer 200 within %g s", url, seconds);
}
