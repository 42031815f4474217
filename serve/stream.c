/* SPDX-License-Identifier: MIT
 * A job as server-sent events. */
#include "serve/stream.h"

#include <stdlib.h>
#include <string.h>

#include "serve/json_memory.h"

/* How much of an answer was sent. */
typedef struct progress {
    int tokens, rounds, counted; /* counted: rounds whose draft tokens an event has counted */
    size_t text;
    bool role, last;
} progress;

typedef struct stream {
    wgs_job *job;
    wgs_buffer out; /* events; the bytes before `at` were sent */
    size_t at;
    progress *of; /* (job->n) */
    int next;     /* the answer whose event is written next: answers take turns */
    bool complete;
} stream;

enum { BLOCK = 16384, ENOUGH = 8192 }; /* bytes of a block of libmicrohttpd; bytes of events written in advance */

static void put_event(stream *s, json_t *event)
{
    char *text = event ? json_dumps(event, JSON_COMPACT) : NULL;
    json_decref(event);
    if (!text) {
        s->out.failed = true;
        return;
    }
    wgs_buffer_puts(&s->out, "data: ");
    wgs_buffer_puts(&s->out, text);
    wgs_buffer_puts(&s->out, "\n\n");
    free(text);
}

/* The number of the first `to` tokens whose counts are final. If a stop string cuts a round, the last token that is kept no
 * longer counts as an accepted draft token. */
static int decided(const wgs_answer *a, const progress *sent, int to)
{
    int k = sent->counted;
    while (k < a->rounds && a->round[k].tokens < to) k++;
    return to > sent->tokens && k < a->rounds && a->round[k].tokens > to ? to - 1 : to;
}

/* The part of an answer that was not sent, up to the end of round `round`; -1: the echoed prompt. */
static wgs_part part_of(const wgs_answer *a, const progress *sent, int index, int round)
{
    const bool whole = round == a->rounds - 1 && a->finish != WGS_RUNS;
    const int tokens = round < 0 ? a->echoed : whole ? a->tokens : a->round[round].tokens;
    wgs_part p = { .index = index, .token_from = sent->tokens, .token_to = sent->tokens, .text_from = sent->text };
    p.text_to = round < 0 ? a->text_from : whole ? a->text.n : a->round[round].settled;
    while (p.token_to < tokens && (whole || a->token[p.token_to].end <= p.text_to)) p.token_to++;
    if (!whole && round >= 0) p.token_to = decided(a, sent, p.token_to);
    return p;
}

/* Writes an event. Its counts are those of the tokens that it carries; a round's drafts count with its last token. */
static void put_part(stream *s, const wgs_answer *a, progress *sent, wgs_part *p)
{
    const wgs_head *h = &s->job->head;
    if (h->request->chat && !sent->role) put_event(s, wgs_role_json(h, p->index));
    sent->role = true;
    for (int i = p->token_from; i < p->token_to; i++) p->accepted += a->token[i].drafted;
    for (; sent->counted < a->rounds && a->round[sent->counted].tokens <= p->token_to; sent->counted++)
        p->drafted += a->round[sent->counted].drafted;
    put_event(s, wgs_part_json(h, a, p));
    sent->tokens = p->token_to;
    sent->text = p->text_to;
}

static void put_error(stream *s, const wgs_answer *a)
{
    wgs_problem p;
    wgs_refuse(&p, a->http ? a->http : 500, NULL, "%s", a->error);
    put_event(s, wgs_problem_json(&p));
    s->complete = true; /* without [DONE], because the answer is incomplete */
}

/* Writes the next event of answer i; false: there is none yet. */
static bool advance(stream *s, int i)
{
    const wgs_answer *a = &s->job->answer[i];
    const bool chat = s->job->head.request->chat;
    progress *sent = &s->of[i];
    if (sent->last) return false;
    if (a->echoed > sent->tokens) {
        wgs_part p = part_of(a, sent, i, -1);
        put_part(s, a, sent, &p);
        return true;
    }
    if (sent->rounds < a->rounds) {
        wgs_part p = part_of(a, sent, i, sent->rounds++);
        p.last = !chat && sent->rounds == a->rounds && a->finish != WGS_RUNS && a->finish != WGS_ERROR;
        sent->last = p.last;
        if (p.last || p.token_to > p.token_from || p.text_to > p.text_from) put_part(s, a, sent, &p);
        return true;
    }
    if (a->finish == WGS_RUNS) return false;
    sent->last = true;
    if (a->finish == WGS_ERROR) put_error(s, a);
    else {
        wgs_part p = {
            .index = i, .token_from = sent->tokens, .token_to = a->tokens, .text_from = sent->text, .text_to = a->text.n
        };
        if (chat && (p.text_to > p.text_from || p.token_to > p.token_from))
            put_part(s, a, sent, &p); /* the text that was held back */
        p = (wgs_part){
            .index = i, .token_from = a->tokens, .token_to = a->tokens, .text_from = a->text.n, .text_to = a->text.n
        };
        if (!chat) p.token_from = sent->tokens, p.text_from = sent->text;
        p.last = true;
        put_part(s, a, sent, &p);
    }
    return true;
}

/* Writes events until a block is full or none is left. Called under the job's lock. */
static void fill(stream *s)
{
    wgs_job *j = s->job;
    bool all = true;
    for (int idle = 0; idle < j->n && s->out.n < ENOUGH && !s->complete; s->next = (s->next + 1) % j->n)
        idle = advance(s, s->next) ? 0 : idle + 1;
    for (int i = 0; i < j->n; i++) all = all && s->of[i].last;
    if (!all || s->complete) return;
    if (j->request.include_usage) put_event(s, wgs_usage_event_json(&j->head, j->answer, j->n));
    wgs_buffer_puts(&s->out, "data: [DONE]\n\n");
    s->complete = true;
}

static ssize_t read_stream(void *user, uint64_t place, char *to, size_t room)
{
    stream *s = user;
    wgs_job *j = s->job;
    ssize_t n = 0;
    (void)place;
    wgs_json_begin();
    pthread_mutex_lock(&j->lock);
    if (s->at == s->out.n) {
        s->at = s->out.n = 0;
        if (!s->complete && !wgs_job_gone(j)) fill(s);
        if (!s->out.n && j->ping) wgs_buffer_puts(&s->out, ":\n\n");
        j->ping = false;
    }
    /* The stream ends without [DONE]. MHD_CONTENT_READER_END_WITH_ERROR would leave the connection open: libmicrohttpd
     * 0.9.75 closes it at the next event of its socket, and a client that has gone causes none. */
    if (wgs_job_gone(j) || s->out.failed) n = MHD_CONTENT_READER_END_OF_STREAM;
    else if (s->at < s->out.n) {
        n = (ssize_t)(s->out.n - s->at < room ? s->out.n - s->at : room);
        memcpy(to, s->out.s + s->at, (size_t)n);
        s->at += (size_t)n;
        j->heard = wgs_now();
    } else if (s->complete) n = MHD_CONTENT_READER_END_OF_STREAM;
    else {
        j->suspended = true;
        MHD_suspend_connection(j->connection);
    }
    pthread_mutex_unlock(&j->lock);
    return n;
}

static void end_stream(void *user)
{
    stream *s = user;
    wgs_job_leave(s->job, s->complete);
    wgs_buffer_free(&s->out);
    free(s->of);
    free(s);
}

struct MHD_Response *wgs_stream_response(wgs_job *j)
{
    stream *s = calloc(1, sizeof *s);
    progress *of = calloc((size_t)j->n, sizeof *of);
    struct MHD_Response *r = NULL;
    if (s && of) {
        s->job = j;
        s->of = of;
        r = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK, read_stream, s, end_stream);
    }
    if (!r) {
        wgs_job_leave(j, true);
        free(of);
        free(s);
        return NULL;
    }
    MHD_add_response_header(r, "Content-Type", "text/event-stream");
    MHD_add_response_header(r, "Cache-Control", "no-cache");
    MHD_add_response_header(r, "X-Accel-Buffering", "no");
    return r;
}
