/* SPDX-License-Identifier: MIT
 * The endpoints: the table of paths and their handlers. */
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "serve/chat_prompt.h"
#include "serve/exchange.h"
#include "serve/serve_page.h"
#include "serve/stream.h"

/* The answers of a finished job as JSON; NULL: *p has the error of one of them. Called under the job's lock. */
static json_t *job_json(const wgs_job *j, wgs_problem *p)
{
    for (int i = 0; i < j->n; i++)
        if (j->answer[i].finish == WGS_ERROR) {
            wgs_refuse(p, j->answer[i].http, NULL, "%s", j->answer[i].error);
            return NULL;
        }
    json_t *all = wgs_answers_json(&j->head, j->answer, j->n);
    if (!all) wgs_refuse(p, 503, NULL, "out of memory for the answer");
    return all;
}

/* Answers with a document, or with the problem where the document is NULL. */
static void reply(wgs_exchange *x, json_t *all, const wgs_problem *p)
{
    if (all) wgs_reply_json(x, 200, all);
    else wgs_reply_problem(x, p);
}

bool wgs_reply_job(wgs_exchange *x)
{
    wgs_job *j = x->job;
    wgs_problem p;
    json_t *all = NULL;
    pthread_mutex_lock(&j->lock);
    const bool gone = wgs_job_gone(j), waits = j->running > 0 && !gone;
    if (waits) {
        j->suspended = true;
        MHD_suspend_connection(x->connection);
    } else if (!gone) all = job_json(j, &p);
    pthread_mutex_unlock(&j->lock);
    if (waits) return false;
    if (!gone) reply(x, all, &p);
    return true;
}

static bool has_model(const wgs_server *s, const char *name, wgs_problem *p)
{
    if (!strcmp(name, s->name)) return true;
    wgs_refuse(p, 404, "model", "there is no model '%.200s'; this server has '%s'", name, s->name);
    p->code = "model_not_found";
    return false;
}

static bool knows_model(const wgs_exchange *x, const wgs_request *r, wgs_problem *p)
{
    return !r->model || !*r->model || has_model(x->server, r->model, p);
}

/* Submits the requests of x->job to the scheduler. */
static void submit(wgs_exchange *x)
{
    wgs_problem p;
    wgs_job *j = x->job;
    if (!wgs_job_submit(j, x->connection, &p)) {
        wgs_job_leave(j, true);
        x->job = NULL;
        wgs_reply_problem(x, &p);
    } else if (j->request.stream) {
        x->job = NULL; /* the response owns the job now */
        wgs_reply_stream(x, wgs_stream_response(j));
    }
}

static void generate(wgs_exchange *x, bool chat)
{
    wgs_server *s = x->server;
    wgs_request r;
    wgs_problem p;
    if (atomic_load(&s->draining)) wgs_refuse(&p, 503, NULL, "the server is shutting down");
    else if (atomic_load(&s->streams) >= s->options->streams)
        wgs_refuse(&p, 429, NULL, "%ld requests are in work, as many as this server takes at once (--max-streams); try again",
                   s->options->streams);
    else {
        wgs_request_init(&r, chat);
        wgs_options_defaults(s->options, &r);
        if (wgs_request_read(&r, x->body.s, x->body.n, &p)) {
            if (!knows_model(x, &r, &p)) wgs_request_free(&r);
            else if ((x->job = wgs_job_open(s, &r, &p))) {
                if (x->job->request.format == WGS_FORMAT_TEXT) submit(x);
                else x->later = submit; /* compiling a grammar may take long */
                return;
            }
        }
    }
    wgs_reply_problem(x, &p);
}

static void completions(wgs_exchange *x) { return generate(x, false); }
static void chat_completions(wgs_exchange *x) { return generate(x, true); }

static void health(wgs_exchange *x)
{
    wgs_problem p;
    const bool draining = atomic_load(&x->server->draining);
    wgs_refuse(&p, 503, NULL, "the server is shutting down");
    reply(x, draining ? NULL : json_pack("{s:s}", "status", "ok"), &p);
}

static void live(wgs_exchange *x) { wgs_reply_json(x, 200, json_pack("{s:s}", "status", "alive")); }

static void version(wgs_exchange *x) { wgs_reply_json(x, 200, json_pack("{s:s}", "version", wg_version())); }

static json_t *model_json(const wgs_server *s)
{
    return json_pack("{s:s, s:s, s:I, s:s, s:i, s:{s:i, s:s, s:s, s:s}}", "id", s->name, "object", "model", "created",
                     (json_int_t)s->created, "owned_by", "wager", "max_model_len", s->about.context, "meta", "n_vocab",
                     s->about.vocab, "tokenizer", s->about.tokenizer, "drafter", s->about.drafter, "rule", s->about.rule);
}

static void models(wgs_exchange *x)
{
    wgs_reply_json(x, 200, json_pack("{s:s, s:[o]}", "object", "list", "data", model_json(x->server)));
}

static void model(wgs_exchange *x)
{
    wgs_problem p;
    if (has_model(x->server, x->argument, &p)) wgs_reply_json(x, 200, model_json(x->server));
    else wgs_reply_problem(x, &p);
}

static void metrics(wgs_exchange *x)
{
    wgs_server *s = x->server;
    wg_scheduler_stats now = { .size = sizeof now };
    wgs_buffer out = { 0 };
    wg_scheduler_stats_get(s->scheduler, &now, NULL);
    const wgs_gauges g = { .running = now.running,
                           .waiting = now.waiting,
                           .connections = atomic_load(&s->connections),
                           .pages_used = now.pages - now.pages_free - now.pages_cached,
                           .pages_cached = now.pages_cached,
                           .pages = now.pages,
                           .cached_tokens = now.cached_tokens,
                           .evictions = now.evictions,
                           .preemptions = now.preemptions,
                           .seconds_draft = now.draft_seconds,
                           .seconds_verify = now.verify_seconds,
                           .seconds_accept = now.accept_seconds,
                           .seconds_kv = now.kv_seconds,
                           .seconds_prefill = now.prefill_seconds,
                           .undrafted = { now.undrafted_off, now.undrafted_policy, now.undrafted_other },
                           .model = s->name,
                           .drafter = s->about.drafter,
                           .rule = s->about.rule,
                           .profile = s->about.profile,
                           .version = wg_version() };
    wgs_metrics_write(s->metrics, s->options->metrics_prefix, &g, &out);
    wgs_reply_text(x, 200, "text/plain; version=0.0.4; charset=utf-8", &out);
    wgs_buffer_free(&out);
}

static void props(wgs_exchange *x)
{
    const wgs_server *s = x->server;
    const wgs_options *o = s->options;
    wg_scheduler_stats now = { .size = sizeof now };
    wg_scheduler_stats_get(s->scheduler, &now, NULL);
    json_t *all = json_pack("{s:s, s:s, s:s, s:i, s:i, s:b}", "model_path", s->about.model, "model_alias", s->name, "version",
                            wg_version(), "total_slots", s->about.batch, "queue", s->about.queue, "chat", s->about.chat);
    json_object_set_new(all, "default_generation_settings",
                        json_pack("{s:i, s:f, s:f, s:i, s:f}", "n_ctx", s->about.context, "temperature",
                                  o->sampling.temperature, "top_p", o->sampling.top_p, "top_k", o->sampling.top_k, "min_p",
                                  o->sampling.min_p));
    json_object_set_new(all, "speculation",
                        json_pack("{s:s, s:s, s:s, s:s, s:b, s:b, s:I, s:I}", "drafter", s->about.drafter, "rule",
                                  s->about.rule, "mode", o->speculation, "profile", s->about.profile, "lossless",
                                  s->about.lossless, "law_only", s->about.law_only, "drafted", (json_int_t)now.drafted,
                                  "accepted", (json_int_t)now.accepted));
    json_object_set_new(all, "batching",
                        json_pack("{s:s, s:i, s:i, s:b}", "mode", o->mode, "pages", now.pages, "page_tokens", now.page_tokens,
                                  "prefix_cache", !o->no_prefix_cache));
    json_object_set_new(all, "limits",
                        json_pack("{s:i, s:i, s:i, s:i, s:f, s:f}", "body_kib", (int)o->body_kib, "header_kib",
                                  (int)o->header_kib, "connections", (int)o->connections, "streams", (int)o->streams,
                                  "request_timeout_s", o->request_timeout, "idle_timeout_s", o->idle_timeout));
    json_object_set_new(all, "config", json_loads(s->config, 0, NULL));
    wgs_reply_json(x, 200, all);
}

/* A cache of tokens' texts as JSON. Each text is made once, because an allocation is slow when memory is nearly exhausted. */
typedef struct pieces {
    const wgs_server *server;
    size_t *from, *bytes; /* (vocabulary) place and length of each text in `text`; bytes 0: not made yet */
    wgs_buffer text;
} pieces;

static void make_piece(pieces *all, int32_t token)
{
    char *text = NULL;
    size_t bytes = 0;
    wgs_buffer b = { 0 };
    if (wg_scheduler_detokenize(all->server->scheduler, &token, 1, 1, &text, &bytes, NULL)) b.failed = true;
    else wgs_buffer_put_utf8(&b, text, bytes);
    json_t *piece = b.failed ? NULL : json_stringn(b.s ? b.s : "", b.n);
    char *quoted = piece ? json_dumps(piece, JSON_ENCODE_ANY) : NULL;
    all->from[token] = all->text.n;
    all->bytes[token] = quoted ? strlen(quoted) : 0;
    if (quoted) wgs_buffer_puts(&all->text, quoted);
    else all->text.failed = true;
    free(quoted);
    json_decref(piece);
    wgs_buffer_free(&b);
    wg_text_free(text);
}

static void put_piece(wgs_buffer *out, pieces *all, int32_t token)
{
    if (!all->bytes[token]) make_piece(all, token);
    out->failed |= all->text.failed;
    if (!out->failed) wgs_buffer_put(out, all->text.s + all->from[token], all->bytes[token]);
}

/* Tokens with their texts, where the texts are asked for: `with_pieces` (llama.cpp), `return_token_strs` (vLLM). The list is
 * written as text, because a JSON document of millions of values takes ten times the memory; it ends early where memory runs
 * out. */
static void put_tokens(wgs_buffer *out, const wgs_server *s, const int32_t *token, int n, const wgs_request *r)
{
    const size_t vocab = r->with_pieces || r->return_token_strs ? (size_t)s->about.vocab : 1;
    pieces all = { .server = s, .from = calloc(vocab, sizeof *all.from), .bytes = calloc(vocab, sizeof *all.bytes) };
    out->failed = !all.from || !all.bytes;
    wgs_buffer_format(out, "{\"count\":%d,\"max_model_len\":%d,\"tokens\":[", n, s->about.context);
    for (int i = 0; i < n && !out->failed; i++) {
        char id[40];
        const char *const form = r->with_pieces ? "%s{\"id\":%d,\"piece\":" : "%s%d";
        wgs_buffer_put(out, id, (size_t)snprintf(id, sizeof id, form, i ? "," : "", (int)token[i]));
        if (!r->with_pieces) continue;
        put_piece(out, &all, token[i]);
        wgs_buffer_puts(out, "}");
    }
    wgs_buffer_puts(out, r->return_token_strs ? "],\"token_strs\":[" : "]");
    for (int i = 0; i < n && r->return_token_strs && !out->failed; i++) {
        if (i) wgs_buffer_puts(out, ",");
        put_piece(out, &all, token[i]);
    }
    wgs_buffer_puts(out, r->return_token_strs ? "]}" : "}");
    wgs_buffer_free(&all.text);
    free(all.from);
    free(all.bytes);
}

/* The tokens of a request's text or messages. */
static bool request_tokens(const wgs_server *s, const wgs_request *r, int32_t **token, int *n, wgs_problem *p)
{
    wg_error e;
    if (r->messages) return wgs_conversation_tokens(s, r->messages, r->template_options, token, n, p);
    if (!wg_scheduler_tokenize(s->scheduler, r->prompt[0].text, r->prompt[0].bytes, r->parse_special, r->add_special_tokens,
                               token, n, &e))
        return true;
    wgs_problem_of(p, &e);
    return false;
}

static void tokenize(wgs_exchange *x)
{
    wgs_problem p;
    wgs_request r;
    wgs_buffer out = { 0 };
    int32_t *token = NULL;
    int n = 0;
    wgs_request_init(&r, false);
    if (!wgs_tokenize_read(&r, x->body.s, x->body.n, &p)) wgs_reply_problem(x, &p);
    else if (!knows_model(x, &r, &p) || !request_tokens(x->server, &r, &token, &n, &p)) wgs_reply_problem(x, &p);
    else {
        put_tokens(&out, x->server, token, n, &r);
        wgs_reply_text(x, 200, "application/json", &out);
    }
    wgs_buffer_free(&out);
    wg_tokens_free(token);
    wgs_request_free(&r);
}

static void detokenize(wgs_exchange *x)
{
    wgs_problem p;
    wg_error e;
    wgs_request r;
    json_t *all = NULL;
    char *text = NULL;
    size_t bytes = 0;
    wgs_request_init(&r, false);
    if (wgs_detokenize_read(&r, x->body.s, x->body.n, &p) && knows_model(x, &r, &p)) {
        if (wg_scheduler_detokenize(x->server->scheduler, r.prompt[0].token, r.prompt[0].n, 1, &text, &bytes, &e))
            wgs_problem_of(&p, &e);
        else wgs_refuse(&p, 503, NULL, "out of memory for the text of %d tokens", r.prompt[0].n);
    }
    if (text) {
        wgs_buffer b = { 0 };
        wgs_buffer_put_utf8(&b, text, bytes);
        json_t *whole = b.failed ? NULL : json_stringn(b.s ? b.s : "", b.n);
        all = json_pack("{s:O, s:o}", "prompt", whole, "content", whole);
        wgs_buffer_free(&b);
    }
    wg_text_free(text);
    wgs_request_free(&r);
    reply(x, all, &p);
}

/* Reads the body of a chat and answers with its prompt as a text. */
static void apply_template(wgs_exchange *x)
{
    wgs_problem p;
    wgs_buffer b = { 0 };
    wgs_request r;
    json_t *all = NULL;
    wgs_request_init(&r, true);
    if (wgs_request_read(&r, x->body.s, x->body.n, &p) && knows_model(x, &r, &p) &&
        wgs_conversation_text(x->server, r.messages, r.template_options, &b, &p)) {
        all = json_pack("{s:o}", "prompt", json_stringn(b.s ? b.s : "", b.n));
        wgs_refuse(&p, 503, NULL, "out of memory for the prompt");
    }
    wgs_buffer_free(&b);
    wgs_request_free(&r);
    reply(x, all, &p);
}

/* Writes the page. Its script and style carry a nonce that is new each time, so the browser runs no other script in it. */
static void write_page(wgs_buffer *out, const char *word)
{
    static const char *const tags[] = { "<style", "<script" };
    const char *s = wgs_page;
    for (;;) {
        const char *next = NULL;
        for (int i = 0; i < 2; i++) {
            const char *at = strstr(s, tags[i]);
            if (at && (!next || at < next)) next = at;
        }
        if (!next) break;
        next += strcspn(next, " >");
        wgs_buffer_put(out, s, (size_t)(next - s));
        wgs_buffer_format(out, " nonce=\"%s\"", word);
        s = next;
    }
    wgs_buffer_puts(out, s);
}

static void page(wgs_exchange *x)
{
    wgs_problem p;
    wgs_buffer out = { 0 };
    uint64_t word[2];
    char text[40], policy[300];
    if (x->server->options->no_page) {
        wgs_refuse(&p, 404, NULL, "this server has no page (--no-page)");
        wgs_reply_problem(x, &p);
        return;
    }
    if (getrandom(word, sizeof word, 0) != sizeof word) {
        wgs_refuse(&p, 503, NULL, "the system has no random numbers yet; try again");
        wgs_reply_problem(x, &p);
        return;
    }
    snprintf(text, sizeof text, "%016llx%016llx", (unsigned long long)word[0], (unsigned long long)word[1]);
    snprintf(policy, sizeof policy,
             "default-src 'none'; script-src 'nonce-%s'; style-src 'nonce-%s'; connect-src 'self'; img-src data:; "
             "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
             text, text);
    write_page(&out, text);
    wgs_reply_page(x, &out, policy);
    wgs_buffer_free(&out);
}

const wgs_endpoint wgs_endpoints[] = {
    { "POST", "/v1/completions", false, completions },
    { "POST", "/v1/chat/completions", false, chat_completions },
    { "GET", "/v1/models", false, models },
    { "GET", "/v1/models/", false, model },
    { "GET", "/health", true, health },
    { "GET", "/v1/health", true, health },
    { "GET", "/live", true, live },
    { "GET", "/metrics", true, metrics },
    { "GET", "/version", false, version },
    { "GET", "/props", false, props },
    { "POST", "/tokenize", false, tokenize },
    { "POST", "/detokenize", false, detokenize },
    { "POST", "/apply-template", false, apply_template },
    { "GET", "/", true, page },
    { NULL, NULL, false, NULL },
};
