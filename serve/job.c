/* SPDX-License-Identifier: MIT
 * A job: the answers that one HTTP request asks for. */
#include "serve/job.h"

#include "serve/chat_prompt.h"
#include "serve/special_stops.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

double wgs_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

void wgs_problem_of(wgs_problem *p, const wg_error *e)
{
    const int http = e->code == WG_EFULL                                  ? 429
                     : e->code == WG_EINTERRUPTED || e->code == WG_ENOMEM ? 503
                     : e->code == WG_ECONTEXT || e->code == WG_EINVAL || e->code == WG_EUNSUPPORTED || e->code == WG_EMODEL
                         ? 400
                         : 500;
    wgs_refuse(p, http, NULL, "%s", e->text);
    if (e->code == WG_ECONTEXT) p->code = "context_length_exceeded";
}

/* Resumes the connection, so that the HTTP thread continues the request. Called under the job's lock. */
static void wake(wgs_job *j)
{
    if (!j->suspended) return;
    j->suspended = false;
    MHD_resume_connection(j->connection);
}

static void list_add(wgs_job *j)
{
    wgs_server *s = j->server;
    pthread_mutex_lock(&s->lock);
    j->after = s->first;
    if (s->first) s->first->before = j;
    s->first = j;
    pthread_mutex_unlock(&s->lock);
}

static void list_remove(wgs_job *j)
{
    wgs_server *s = j->server;
    pthread_mutex_lock(&s->lock);
    if (j->before) j->before->after = j->after;
    else if (s->first == j) s->first = j->after;
    if (j->after) j->after->before = j->before;
    pthread_mutex_unlock(&s->lock);
}

static void destroy(wgs_job *j)
{
    for (int i = 0; i < j->n; i++) {
        wgs_answer_free(&j->answer[i]);
        wg_detokenizer_close(j->slot[i].words);
    }
    free(j->answer);
    free(j->slot);
    wg_text_free(j->piece_text);
    wg_grammar_close(j->grammar);
    wgs_request_free(&j->request);
    pthread_mutex_destroy(&j->lock);
    free(j);
}

/* Releases one reference; the last one frees the job. */
static void release(wgs_job *j)
{
    pthread_mutex_lock(&j->lock);
    const int left = --j->refs;
    pthread_mutex_unlock(&j->lock);
    if (left) return;
    list_remove(j);
    destroy(j);
}

/* The bytes that a token adds to a text in which another token precedes it. */
static const char *piece_of(void *user, int32_t token, size_t *n)
{
    wgs_job *j = user;
    const int32_t first = j->server->about.bos >= 0 ? j->server->about.bos : 0, both[] = { first, token };
    char *before = NULL;
    size_t bytes = 0, whole = 0;
    *n = 0;
    wg_text_free(j->piece_text);
    j->piece_text = NULL;
    if (!wg_scheduler_detokenize(j->server->scheduler, both, 1, 1, &before, &bytes, NULL) &&
        !wg_scheduler_detokenize(j->server->scheduler, both, 2, 1, &j->piece_text, &whole, NULL) && whole >= bytes)
        *n = whole - bytes;
    wg_text_free(before);
    return *n ? j->piece_text + bytes : "";
}

wgs_job *wgs_job_open(wgs_server *s, wgs_request *r, wgs_problem *p)
{
    wgs_job *j = calloc(1, sizeof *j);
    const int n = r->n * (r->chat ? 1 : r->prompts);
    uint64_t seed = r->seed;
    if (!j) {
        wgs_request_free(r);
        wgs_refuse(p, 503, NULL, "out of memory for a request");
        return NULL;
    }
    if (!r->seeded && getrandom(&seed, sizeof seed, 0) == sizeof seed) seed &= ((uint64_t)1 << 53) - 1; /* exact in any JSON */
    pthread_mutex_init(&j->lock, NULL);
    j->server = s;
    j->refs = 1;
    j->socket = -1;
    j->request = *r;
    snprintf(j->id, sizeof j->id, "%s-%llx-%llx", r->chat ? "chatcmpl" : "cmpl", (unsigned long long)s->created,
             (unsigned long long)atomic_fetch_add(&s->serial, 1));
    j->head = (wgs_head){ .request = &j->request, .id = j->id, .model = s->name, .fingerprint = s->fingerprint };
    j->head.created = (int64_t)time(NULL);
    j->head.seed = seed;
    j->head.draft_length = r->draft_length > 0 ? r->draft_length : 0;
    j->head.piece = piece_of;
    j->head.user = j;
    j->answer = calloc((size_t)n, sizeof *j->answer);
    j->slot = calloc((size_t)n, sizeof *j->slot);
    if (!j->answer || !j->slot) {
        wgs_refuse(p, 503, NULL, "out of memory for %d answers", n);
        destroy(j);
        return NULL;
    }
    j->n = j->running = n;
    for (int i = 0; i < n; i++) {
        j->slot[i] = (wgs_slot){ .job = j, .index = i };
        j->answer[i].stops = &j->request.stops;
        j->answer[i].include_stop = r->include_stop;
    }
    list_add(j);
    atomic_fetch_add(&s->streams, 1);
    return j;
}

/* The text that a token adds behind the tokens before it. */
static void words_of(wgs_slot *slot, int32_t token, const char **text, size_t *n)
{
    *text = "";
    *n = 0;
    if (wg_detokenizer_put(slot->words, &token, 1, text, n, NULL)) *n = 0;
}

typedef void put_fn(wgs_answer *a, wgs_token t, const char *bytes, size_t n, const int32_t *top_token,
                    const double *top_logprob);

static void put_token(wgs_answer *a, wgs_token t, const char *bytes, size_t n, const int32_t *top_token,
                      const double *top_logprob)
{
    wgs_answer_token(a, t, bytes, n, top_token, top_logprob);
}

static void put_tokens(wgs_slot *slot, const wg_event *e, put_fn *put, bool first_is_given)
{
    wgs_answer *a = &slot->job->answer[slot->index];
    for (int i = 0; i < e->n && a->finish == WGS_RUNS; i++) {
        const char *text;
        size_t n;
        words_of(slot, e->token[i], &text, &n);
        const bool scored = e->logprob && !(first_is_given && i == 0);
        const wgs_token t = { .id = e->token[i],
                              .drafted = e->drafted && e->drafted[i],
                              .scored = scored,
                              .logprob = scored ? e->logprob[i] : 0,
                              .tops = scored && e->top_token ? e->top : 0 };
        put(a, t, text, n, e->top_token + (size_t)i * (size_t)e->top, e->top_logprob + (size_t)i * (size_t)e->top);
    }
}

static void finish(wgs_slot *slot, wgs_finish why)
{
    wgs_job *j = slot->job;
    wgs_answer *a = &j->answer[slot->index];
    const char *tail = "";
    size_t n = 0;
    if (a->finish == WGS_RUNS && wg_detokenizer_put(slot->words, NULL, 0, &tail, &n, NULL)) n = 0;
    wgs_answer_end(a, why, tail, n);
}

static wgs_finish finish_of(wg_end end)
{
    return end == WG_END_EOS || end == WG_END_STOP ? WGS_STOP
           : end == WG_END_LENGTH                  ? WGS_LENGTH
           : end == WG_END_DEADLINE                ? WGS_ERROR
                                                   : WGS_ABORT;
}

/* Adds the rounds that are settled to the metrics. */
static void count_rounds(wgs_job *j, wgs_answer *a)
{
    int tokens;
    for (const wgs_round *r; (r = wgs_answer_settled(a, &tokens));)
        wgs_metrics_round(j->server->metrics, r->drafted, r->accepted, tokens, r->gap);
}

static void on_round(wgs_slot *slot, const wg_event *e)
{
    wgs_job *j = slot->job;
    wgs_answer *a = &j->answer[slot->index];
    if (a->finish != WGS_RUNS) return; /* a stop string ended the answer; later tokens are dropped */
    int accepted = 0;
    const double gap = a->times.last > 0 ? e->now - a->times.last : 0;
    for (int i = 0; i < e->n; i++) accepted += e->drafted[i];
    a->times.first = e->first_token;
    a->times.last = e->now;
    if (j->request.max_tokens) put_tokens(slot, e, put_token, false);
    else finish(slot, WGS_LENGTH);
    const bool stopped = a->finish != WGS_RUNS && e->end == WG_END_NOT;
    const wgs_finish why = finish_of(e->end);
    if (e->end != WG_END_NOT && (why == WGS_STOP || why == WGS_LENGTH))
        finish(slot, why); /* the last event carries the end together with its text */
    wgs_answer_round(a, e->nodes, accepted, gap);
    count_rounds(j, a);
    if (stopped) wg_scheduler_cancel(j->server->scheduler, e->id, NULL);
}

/* Logs once that a whole answer had no draft although speculation was on. */
static void tell_undrafted(wgs_server *s, const wgs_request *r, const wgs_answer *a)
{
    const char *drafter = s->about.drafter;
    const bool asked = strcmp(drafter, "none") && r->draft_length != 0 && s->options->speculation[0] != 'o';
    if (!asked || a->drafted || a->passes < 2 || atomic_exchange(&s->undrafted, true)) return;
    fprintf(stderr, "wager-serve: an answer of %d tokens had no draft: %s %s\n", a->tokens, drafter,
            strncmp(drafter, "auto", 4) ? "found nothing to propose"
                                        : "expected none to pay here; --draft KIND:length=N drafts always");
}

static void on_last(wgs_slot *slot, const wg_event *e)
{
    wgs_job *j = slot->job;
    wgs_answer *a = &j->answer[slot->index];
    slot->open = false;
    const wgs_finish why = e->kind == WG_EVENT_FAILED ? WGS_ERROR : finish_of(e->end);
    if (a->finish == WGS_RUNS && why == WGS_ERROR) {
        a->http = e->kind != WG_EVENT_FAILED ? 504 : e->status == WG_ENOMEM ? 503 : 500;
        if (e->kind == WG_EVENT_FAILED)
            snprintf(a->error, sizeof a->error, "%s", e->message ? e->message : "the engine failed");
        else
            snprintf(a->error, sizeof a->error,
                     "the answer took longer than %g seconds; ask for less, or raise --request-timeout",
                     j->server->options->request_timeout);
    }
    finish(slot, why);
    count_rounds(j, a);
    if (a->failed) {
        a->finish = WGS_ERROR;
        a->http = 503;
        snprintf(a->error, sizeof a->error, "out of memory for an answer of %d tokens", a->tokens);
    }
    if (e->first_token > 0) a->times.first = e->first_token;
    wgs_metrics_answer(j->server->metrics, a);
    tell_undrafted(j->server, &j->request, a);
}

static void on_event(void *user, const wg_event *e)
{
    wgs_slot *slot = user;
    wgs_job *j = slot->job;
    pthread_mutex_lock(&j->lock);
    wgs_answer *a = &j->answer[slot->index];
    const bool ran = a->finish == WGS_RUNS, last = e->kind == WG_EVENT_ENDED || e->kind == WG_EVENT_FAILED;
    slot->id = e->id;
    a->prompt_tokens = e->prompt_tokens;
    a->cached_tokens = e->cached_tokens;
    a->times.started = e->admitted;
    if (e->kind == WG_EVENT_STARTED && j->request.echo) put_tokens(slot, e, wgs_answer_echo, true);
    if (e->kind == WG_EVENT_ROUND) on_round(slot, e);
    if (last) on_last(slot, e);
    j->running -= ran && a->finish != WGS_RUNS;
    if (j->request.stream ? e->kind != WG_EVENT_STARTED : !j->running) wake(j);
    pthread_mutex_unlock(&j->lock);
    if (last) release(j);
}

/* Cancels the requests that have not ended. Called without the job's lock, because the scheduler's events take it. */
static void cancel(wgs_job *j)
{
    for (int i = 0; i < j->n; i++) {
        pthread_mutex_lock(&j->lock);
        const uint64_t id = j->slot[i].open ? j->slot[i].id : 0;
        pthread_mutex_unlock(&j->lock);
        if (id) wg_scheduler_cancel(j->server->scheduler, id, NULL);
    }
}

/* The prompt of answer i as tokens. *own: what the caller frees by wg_tokens_free; NULL where the tokens are the request's. */
static bool prompt_tokens(wgs_job *j, int i, const int32_t **token, int32_t **own, int *n, wgs_problem *p)
{
    const wgs_request *r = &j->request;
    wg_error e;
    wg_status s = WG_OK;
    *own = NULL;
    if (r->chat) {
        const bool good = wgs_conversation_tokens(j->server, r->messages, r->template_options, own, n, p);
        *token = *own;
        return good;
    }
    if (r->prompt[i].text)
        s = wg_scheduler_tokenize(j->server->scheduler, r->prompt[i].text, r->prompt[i].bytes, 1, r->add_special_tokens, own, n,
                                  &e);
    else {
        *token = r->prompt[i].token;
        *n = r->prompt[i].n;
        return true;
    }
    if (s) wgs_problem_of(p, &e);
    *token = *own;
    return !s;
}

static bool fits(const wgs_job *j, int n, wgs_problem *p)
{
    const char *param = j->request.chat ? "messages" : "prompt";
    const int context = j->server->about.context;
    if (!n) return wgs_refuse(p, 400, param, "the prompt is empty, and this model puts nothing before a text; give a text");
    if (n < context) return true;
    /* clients recognise this sentence */
    wgs_refuse(p, 400, param, "This model's maximum context length is %d tokens. The prompt has %d; expected at most %d",
               context, n, context - 1);
    p->code = "context_length_exceeded";
    return false;
}

/* The request as the scheduler takes it, without the prompt. */
static wg_request request_of(const wgs_job *j, const wg_sampler_options *sampling, const wg_token_bias *bias)
{
    const wgs_request *r = &j->request;
    wg_request q = { .size = sizeof q };
    q.seed = j->head.seed;
    q.ignore_end = r->ignore_eos;
    q.stop = r->stop_token;
    q.stops = r->stop_tokens;
    q.priority = r->priority;
    q.deadline = j->server->options->request_timeout;
    q.sampling = sampling;
    q.bias = r->biases ? bias : NULL;
    q.biases = r->biases;
    q.grammar = j->grammar;
    q.logprobs = r->logprobs >= 0;
    q.top = r->logprobs > 0 ? r->logprobs : 0;
    q.echo = r->echo;
    q.no_draft = r->draft_length == 0;
    q.draft_most = r->draft_length > 0 ? r->draft_length : 0;
    q.on_event = on_event;
    return q;
}

/* Submits all answers to one prompt; `first` is the index of the first one. */
static bool submit_prompt(wgs_job *j, wg_request *q, int first, wgs_problem *p)
{
    const wgs_request *r = &j->request;
    const int room = j->server->about.context - q->n, wanted = r->max_tokens > 0 ? r->max_tokens : r->max_tokens < 0 ? room : 1;
    const long most = j->server->options->max_tokens;
    wg_error e;
    if (most && r->max_tokens > most)
        return wgs_refuse(p, 400, "max_tokens", "'max_tokens' is %d; this server's answers have at most %ld tokens",
                          r->max_tokens, most);
    q->max_tokens = wanted < room ? wanted : room;
    if (most && q->max_tokens > most) q->max_tokens = (int)most;
    for (int i = 0; i < r->n; i++) {
        wgs_slot *slot = &j->slot[first + i];
        const char *text;
        size_t bytes;
        uint64_t id = 0;
        wg_status s = wg_detokenizer_open(&slot->words, j->server->scheduler, &e);
        if (!s && !r->echo) words_of(slot, q->token[q->n - 1], &text, &bytes); /* the answer's text continues the prompt's */
        q->number = (uint32_t)i;
        q->user = slot;
        pthread_mutex_lock(&j->lock);
        slot->open = true;
        j->refs++;
        pthread_mutex_unlock(&j->lock);
        if (!s) s = wg_scheduler_submit(j->server->scheduler, q, &id, &e);
        pthread_mutex_lock(&j->lock);
        if (!s) slot->id = id;
        else {
            slot->open = false;
            j->refs--;
        }
        pthread_mutex_unlock(&j->lock);
        if (s) {
            wgs_problem_of(p, &e);
            return false;
        }
    }
    return true;
}

static bool check(wgs_job *j, wgs_problem *p)
{
    wgs_request *r = &j->request;
    for (int i = 0; i < r->stop_tokens; i++)
        if (r->stop_token[i] >= j->server->about.vocab)
            return wgs_refuse(p, 400, "stop_token_ids", "'stop_token_ids' has token %d; this model has %d tokens",
                              (int)r->stop_token[i], j->server->about.vocab);
    for (int i = 0; i < r->biases; i++)
        if (r->bias[i].token >= j->server->about.vocab)
            return wgs_refuse(p, 400, "logit_bias", "'logit_bias' has token %d; this model has %d tokens",
                              (int)r->bias[i].token, j->server->about.vocab);
    return wgs_special_stops(j->server, r, p);
}

/* Compiles the grammar or schema that the request asks for. */
static bool open_grammar(wgs_job *j, wgs_problem *p)
{
    static const wg_grammar_kind kinds[] = {
        [WGS_FORMAT_JSON] = WG_GRAMMAR_JSON, [WGS_FORMAT_SCHEMA] = WG_GRAMMAR_SCHEMA, [WGS_FORMAT_GRAMMAR] = WG_GRAMMAR_GBNF
    };
    const wgs_request *r = &j->request;
    wg_error e;
    if (r->format == WGS_FORMAT_TEXT) return true;
    char *schema = r->format == WGS_FORMAT_SCHEMA ? json_dumps(r->schema, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
    if (r->format == WGS_FORMAT_SCHEMA && !schema) return wgs_refuse(p, 503, r->format_field, "out of memory for the schema");
    const char *text = r->format == WGS_FORMAT_GRAMMAR ? r->grammar : schema;
    const wg_status s = wg_grammar_open(&j->grammar, j->server->scheduler, kinds[r->format], text, text ? strlen(text) : 0, &e);
    free(schema);
    return !s || wgs_refuse(p, s == WG_ENOMEM ? 503 : 400, r->format_field, "%s", e.text);
}

/* The sampler options of a request; members that it leaves out are the server's. */
static wg_sampler_options sampling_of(const wgs_request *r, const wg_sampler_options *own)
{
    wg_sampler_options s = *own;
    s.temperature = r->temperature;
    s.top_p = r->top_p;
    s.min_p = r->min_p;
    s.top_k = r->top_k > 0 ? r->top_k : 0;
    s.repetition_penalty = r->repetition_penalty;
    s.frequency_penalty = r->frequency_penalty;
    s.presence_penalty = r->presence_penalty;
    return s;
}

bool wgs_job_submit(wgs_job *j, struct MHD_Connection *connection, wgs_problem *p)
{
    const wgs_request *r = &j->request;
    const wg_sampler_options *own = &j->server->options->sampling, sampling = sampling_of(r, own);
    wg_token_bias bias[WGS_BIASES];
    for (int i = 0; i < r->biases; i++) bias[i] = (wg_token_bias){ r->bias[i].token, (float)r->bias[i].bias };
    if (!check(j, p) || !open_grammar(j, p)) return false;
    wg_request q = request_of(j, memcmp(&sampling, own, sizeof sampling) ? &sampling : NULL, bias);
    pthread_mutex_lock(&j->lock); /* wgs_jobs_ping may already see this job */
    j->connection = connection;
    j->heard = wgs_now();
    pthread_mutex_unlock(&j->lock);
    for (int i = 0; i < (r->chat ? 1 : r->prompts); i++) {
        int32_t *own = NULL;
        const bool good = prompt_tokens(j, i, &q.token, &own, &q.n, p) && fits(j, q.n, p) && submit_prompt(j, &q, i * r->n, p);
        wg_tokens_free(own);
        if (!good) return false; /* wgs_job_leave cancels the requests that were submitted */
    }
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    if (info) {
        j->socket = info->connect_fd;
        wgs_watch_add(j->server->watch, j->socket, j);
    }
    return true;
}

/* Marks the client as gone and counts it, once, if an answer of its still runs. Called under the job's lock. */
static void set_gone(wgs_job *j)
{
    if (j->running > 0 && !j->gone) wgs_metrics_count(j->server->metrics, WGS_CLIENTS_GONE, 1);
    j->gone = true;
}

void wgs_job_leave(wgs_job *j, bool told)
{
    if (j->socket >= 0) wgs_watch_remove(j->server->watch, j->socket);
    atomic_fetch_sub(&j->server->streams, 1);
    pthread_mutex_lock(&j->lock);
    if (!told) set_gone(j); /* a write failed before the watch saw the socket close */
    j->connection = NULL;
    j->suspended = false;
    pthread_mutex_unlock(&j->lock);
    cancel(j);
    release(j);
}

void wgs_job_client_gone(void *job)
{
    wgs_job *j = job;
    pthread_mutex_lock(&j->lock);
    set_gone(j);
    wake(j);
    pthread_mutex_unlock(&j->lock);
    cancel(j);
}

void wgs_jobs_abort(wgs_server *s, bool silently)
{
    pthread_mutex_lock(&s->lock);
    for (wgs_job *j = s->first; j; j = j->after) {
        cancel(j);
        pthread_mutex_lock(&j->lock);
        j->gone |= silently;
        if (silently) wake(j);
        pthread_mutex_unlock(&j->lock);
    }
    pthread_mutex_unlock(&s->lock);
}

void wgs_jobs_ping(wgs_server *s, double seconds)
{
    const double now = wgs_now();
    pthread_mutex_lock(&s->lock);
    for (wgs_job *j = s->first; j; j = j->after) {
        pthread_mutex_lock(&j->lock);
        if (j->request.stream && j->connection && j->suspended && now - j->heard >= seconds) {
            j->ping = true;
            wake(j);
        }
        pthread_mutex_unlock(&j->lock);
    }
    pthread_mutex_unlock(&s->lock);
}
