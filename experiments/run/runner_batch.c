/* SPDX-License-Identifier: MIT
 * A batch of prompts through one engine. The clock runs around wg_engine_step and wg_engine_prefill only. */
#include "experiments/run/runner_batch.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/clock.h"

static bool stopped(const wg_room *r) { return r->stop && *r->stop; }

static void request_reset(wg_request *q)
{
    int32_t *token = q->token;
    wg_step_record *step = q->step;
    wg_events events = q->events;
    const int cap = q->cap_steps;
    events.n = 0;
    *q = (wg_request){ .token = token, .step = step, .cap_steps = cap, .events = events, .equals = -1, .ttft = NAN, .tpot = NAN,
                       .joules = NAN };
}

static void request_fail(wg_request *q, wg_status s, const wg_error *e)
{
    char turn[40] = "";
    if (q->source->turns > 1) snprintf(turn, sizeof turn, "turn %d of %d: ", q->turn + 1, q->source->turns);
    q->status = s;
    snprintf(q->error, sizeof q->error, "%s%.460s", turn, e->text);
}

static wg_phases phases_between(const wg_phases *a, const wg_phases *b)
{
    return (wg_phases){ .draft = b->draft - a->draft, .verify = b->verify - a->verify, .accept = b->accept - a->accept,
                        .kv = b->kv - a->kv, .measure = b->measure - a->measure };
}

void wg_phases_add(wg_phases *to, const wg_phases *p, double share)
{
    to->draft += p->draft * share;
    to->verify += p->verify * share;
    to->accept += p->accept * share;
    to->kv += p->kv * share;
}

/* Room was made before the clock started. */
static void trace_step(wg_request *q, const wg_seq *s, const wg_mixture_step *mixture, int batch, double seconds,
                       const wg_phases *step)
{
    if (q->steps >= q->cap_steps) return;
    int accepted = 0;
    for (int i = s->n - s->last_emitted; i < s->n; i++) accepted += s->drafted[i];
    wg_step_record *t = &q->step[q->steps++];
    *t = (wg_step_record){ .position = s->n - s->last_emitted, .nodes = s->last_nodes, .probes = s->last_probes,
                           .height = s->last_height, .accepted = accepted, .emitted = s->last_emitted, .batch = batch,
                           .mixture = *mixture, .seconds = seconds / batch };
    wg_phases_add(&t->phases, step, 1.0 / batch);
}

static void finish_request(wg_request *q, const wg_seq *s, double first, double now)
{
    q->n = s->n - s->prompt;
    memcpy(q->token, s->token + s->prompt, (size_t)q->n * sizeof *q->token);
    q->finish = s->finish;
    q->counts = s->counts;
    if (q->n > 1 && now > first) q->tpot = (now - first) / (q->n - 1);
}

void wg_request_begin(const wg_group *g, const wg_arm *a, wg_request *q, int prompt, int turn, int repeat)
{
    request_reset(q);
    q->cell = a->cell;
    q->group = g->like->group;
    q->prompt = prompt;
    q->turn = turn;
    q->repeat = repeat;
    q->source = &g->dataset->prompt[prompt];
    if (turn == 0 && g->prompts.question)
        q->prompt_tokens = g->prompts.question[q->source->before].n; /* else to be found out */
}

/* A batch under way: its requests and its clock. */
typedef struct batch {
    const wg_room *room;
    const wg_group *g;
    wg_arm *a;
    wg_seq **seq; /* (n) NULL: over */
    int first, n, repeat, turns, max_new; /* as of wg_batch_run */
    int turn, left; /* at hand; requests still running */
    bool begun;   /* the first step of the turn is over */
    double start, first_token;
    wg_tracer *tracer; /* NULL: none, or not of this wg_arm */
    double traced;     /* its clock when the batch began */
    double measured;   /* the engine's clock of measurements, then */
    wg_error *err;     /* of the tracer, whose failure ends the run */
} batch;

/* The request at hand of the ith conversation; it must have that turn. */
static wg_request *request_of(const batch *b, int i)
{
    const wg_prompt *p = &b->g->dataset->prompt[b->first];
    return &b->a->request[p[i].before - p->before + b->turn];
}

/* Not over, and not waiting for the next turn. */
static bool is_running(const batch *b, int i) { return b->seq[i] && request_of(b, i)->finish == WG_RUNNING; }

static void close_seq(batch *b, int i)
{
    wg_seq_close(b->a->engine, b->seq[i]);
    b->seq[i] = NULL;
}

/* Now, as if nothing had been traced or measured. */
static double batch_clock(const batch *b)
{
    const double traced = b->tracer ? b->tracer->seconds - b->traced : 0;
    return wg_clock_now() - traced - (wg_engine_phases(b->a->engine)->measure - b->measured);
}

/* Asks and prefills. */
static wg_status ask(batch *b, int i, wg_request *q, wg_error *err)
{
    const wg_question *question = &b->g->prompts.question[q->source->before];
    const uint32_t repeats = (uint32_t)b->g->like->top.repeats;
    wg_status s = WG_EINVAL;
    if (b->turn && !b->seq[i]) wg_fail(err, s, "it was not asked, because the one before it failed");
    else
        s = wg_conversation_ask(b->a->engine, &b->seq[i], question, b->turn,
                                (uint32_t)q->prompt * repeats + (uint32_t)b->repeat, b->max_new, err);
    if (s) return s;
    q->prompt_tokens = b->seq[i]->n;
    q->cached = wg_kv_len(b->seq[i]->kv);
    const double start = wg_clock_now();
    s = wg_engine_prefill(b->a->engine, b->seq[i], err);
    q->prefill = wg_clock_now() - start;
    return s;
}

/* Asks all conversations that have this turn; what cannot be is that request's failure. */
static wg_status begin_turn(batch *b)
{
    wg_status s = WG_OK;
    b->start = b->first_token = batch_clock(b);
    b->begun = false;
    b->left = 0;
    for (int i = 0; i < b->n; i++) {
        wg_error e;
        const int prompt = b->first + i;
        if (b->turn >= b->g->dataset->prompt[prompt].turns) continue;
        wg_request *q = request_of(b, i);
        wg_request_begin(b->g, b->a, q, prompt, b->turn, b->repeat);
        const wg_status bad = ask(b, i, q, &e);
        b->left += !bad;
        if (!bad) continue;
        request_fail(q, bad, &e);
        close_seq(b, i);
    }
    for (int i = 0; b->tracer && !s && i < b->n; i++)
        if (b->seq[i]) s = wg_tracer_begin(b->tracer, request_of(b, i), b->seq[i], b->err);
    return s;
}

/* The place-th of the k sequences of a step. */
static wg_status settle(batch *b, int i, int place, int k, double forward, double seconds, const wg_phases *step, double now)
{
    wg_request *q = request_of(b, i);
    wg_seq *seq = b->seq[i];
    wg_status s = WG_OK;
    q->decode += seconds / k;
    q->forward += forward / k;
    wg_phases_add(&q->phases, step, 1.0 / k);
    const wg_mixture_step mixture = wg_mixture_add_step(&q->mixture, wg_engine_drafter(b->a->engine), seq);
    trace_step(q, seq, &mixture, k, seconds, step);
    wg_load_step(&q->load, seq, &wg_engine_last_step(b->a->engine).tree[place], k,
                 wg_kv_page_slots(wg_engine_kv(b->a->engine)));
    if (!b->begun) q->ttft = now - b->start;
    else wg_event_add(&q->events, now - q->last, seq->last_emitted);
    q->last = now;
    if (b->tracer) s = wg_tracer_round(b->tracer, q, seq, b->a->engine, place, b->err);
    if (s || seq->finish == WG_RUNNING) return s;
    if (b->tracer) s = wg_tracer_end(b->tracer, q, seq, b->err);
    finish_request(q, seq, b->first_token, now);
    if (b->turn + 1 == q->source->turns || b->turn + 1 == b->turns) close_seq(b, i);
    b->left--;
    return s;
}

/* Rows of the pass of the sequence that had most: nodes and probes. */
static int most_rows(wg_seq *const *seq, int n)
{
    int most = 1;
    for (int i = 0; i < n; i++) {
        const int rows = seq[i]->last_nodes + seq[i]->last_probes;
        most = rows > most ? rows : most;
    }
    return most;
}

/* One step of the running requests from .. to-1. A step that fails leaves every sequence as it was, so whose fault it is shows
 * by stepping each alone: only that request fails. */
static wg_status step_batch(batch *b, int from, int to)
{
    wg_engine *e = b->a->engine;
    wg_seq **active = b->room->active;
    int k = 0;
    for (int i = from; i < to; i++)
        if (is_running(b, i)) active[k++] = b->seq[i];
    if (k == 0) return WG_OK;
    wg_error err;
    const wg_phases before = *wg_engine_phases(e);
    const double forward = wg_engine_target(e)->seconds, clock = batch_clock(b);
    const wg_status s = stopped(b->room) ? WG_EINTERRUPTED : wg_engine_step(e, active, k, &err);
    const double now = batch_clock(b);
    if (s == WG_EINTERRUPTED) return s;
    if (s && k > 1) {
        for (int i = from; i < to; i++) WG_TRY(step_batch(b, i, i + 1));
        return WG_OK;
    }
    const wg_phases step = phases_between(&before, wg_engine_phases(e));
    if (!b->begun) b->first_token = now;
    if (b->a->warm && !s) wg_warm_step(b->a->warm, &step, now - clock, k, most_rows(active, k));
    const double target = wg_engine_target(e)->seconds - forward;
    for (int i = from, place = 0; i < to; i++) {
        if (!is_running(b, i)) continue;
        if (!s) {
            WG_TRY(settle(b, i, place++, k, target, now - clock, &step, now));
            continue;
        }
        request_fail(request_of(b, i), s, &err);
        close_seq(b, i);
        b->left--;
    }
    return WG_OK;
}

/* A turn of all conversations that have it, to its end. */
static wg_status run_turn(batch *b)
{
    wg_status s = begin_turn(b);
    const double start = wg_clock_now(), joules = wg_energy_joules(b->room->energy);
    for (; !s && b->left > 0; b->begun = true) s = step_batch(b, 0, b->n);
    const double watts = (wg_energy_joules(b->room->energy) - joules) / (wg_clock_now() - start);
    for (int i = 0; i < b->n; i++)
        if (b->turn < b->g->dataset->prompt[b->first + i].turns) request_of(b, i)->joules = watts * request_of(b, i)->decode;
    return s;
}

wg_status wg_batch_run(const wg_room *room, const wg_group *g, wg_arm *a, int first, int n, int repeat, int turns, int max_new,
                       wg_tracer *tracer, wg_error *err)
{
    batch b = { .room = room,
                .g = g,
                .a = a,
                .seq = room->seq,
                .first = first,
                .n = n,
                .repeat = repeat,
                .turns = turns,
                .max_new = max_new,
                .tracer = tracer,
                .traced = tracer ? tracer->seconds : 0,
                .measured = wg_engine_phases(a->engine)->measure,
                .err = err };
    wg_status s = WG_OK;
    memset(b.seq, 0, (size_t)n * sizeof *b.seq);
    for (; b.turn < turns && !s; b.turn++) s = run_turn(&b);
    for (int i = 0; i < n; i++) close_seq(&b, i);
    return s;
}
