/* SPDX-License-Identifier: MIT
 * A batch of prompts through one engine. The clock runs around wg_engine_step and wg_engine_prefill only. */
#include "experiments/runner_batch.h"

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
    q->status = s;
    snprintf(q->error, sizeof q->error, "%.500s", e->text);
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
static void trace_step(wg_request *q, const wg_seq *s, int batch, double seconds, const wg_phases *step)
{
    if (q->steps >= q->cap_steps) return;
    int accepted = 0;
    for (int i = s->n - s->last_emitted; i < s->n; i++) accepted += s->drafted[i];
    wg_step_record *t = &q->step[q->steps++];
    *t = (wg_step_record){ .position = s->n - s->last_emitted, .nodes = s->last_nodes, .probes = s->last_probes,
                           .height = s->last_height, .accepted = accepted, .emitted = s->last_emitted, .batch = batch,
                           .seconds = seconds / batch };
    wg_phases_add(&t->phases, step, 1.0 / batch);
}

static void finish_request(wg_engine *e, wg_request *q, wg_seq *s, double first, double now)
{
    q->n = s->n - s->prompt;
    memcpy(q->token, s->token + s->prompt, (size_t)q->n * sizeof *q->token);
    q->finish = s->finish;
    q->counts = s->counts;
    if (q->n > 1 && now > first) q->tpot = (now - first) / (q->n - 1);
    wg_seq_close(e, s);
}

void wg_request_begin(const wg_group *g, const wg_arm *a, wg_request *q, int prompt, int repeat)
{
    request_reset(q);
    q->cell = a->cell;
    q->group = g->like->group;
    q->prompt = prompt;
    q->repeat = repeat;
    q->source = &g->dataset->prompt[prompt];
    q->prompt_tokens = g->prompts.n ? g->prompts.n[prompt] : 0; /* else its line will say */
}

/* Opens and prefills; what cannot be is that request's failure. Returns how many are ready, in seq[] (NULL: failed). */
static int open_batch(const wg_group *g, wg_arm *a, wg_seq **seq, int first, int n, int repeat, int max_new)
{
    int ready = 0;
    for (int i = 0; i < n; i++) {
        wg_request *q = &a->request[i];
        wg_error e;
        const int prompt = first + i, repeats = g->like->top.repeats;
        wg_request_begin(g, a, q, prompt, repeat);
        seq[i] = NULL;
        wg_status s = wg_seq_open(a->engine, &seq[i], (uint32_t)prompt * (uint32_t)repeats + (uint32_t)repeat,
                                  g->prompts.token[prompt], q->prompt_tokens, max_new, &e);
        const double start = wg_clock_now();
        if (!s) s = wg_engine_prefill(a->engine, seq[i], &e);
        q->prefill = wg_clock_now() - start;
        if (!s) {
            ready++;
            continue;
        }
        request_fail(q, s, &e);
        if (seq[i]) wg_seq_close(a->engine, seq[i]);
        seq[i] = NULL;
    }
    return ready;
}

/* A batch under way: its requests and its clock. */
typedef struct batch {
    const wg_room *room;
    wg_arm *a;
    wg_seq **seq; /* (n) NULL: over */
    int n, left;  /* requests, and those still running */
    bool begun;   /* the first step is over */
    double start, first_token;
    wg_tracer *tracer; /* NULL: none, or not of this wg_arm */
    double traced;     /* its clock when the batch began */
    double measured;   /* the engine's clock of measurements, then */
    wg_error *err;     /* of the tracer, whose failure ends the run */
} batch;

/* The place-th of the k sequences of a step. */
static wg_status settle(batch *b, int i, int place, int k, double forward, double seconds, const wg_phases *step, double now)
{
    wg_request *q = &b->a->request[i];
    wg_seq *seq = b->seq[i];
    wg_status s = WG_OK;
    q->decode += seconds / k;
    q->forward += forward / k;
    wg_phases_add(&q->phases, step, 1.0 / k);
    trace_step(q, seq, k, seconds, step);
    wg_load_step(&q->load, seq, &b->a->engine->tree[place], k, wg_kv_page_slots(b->a->engine->kv));
    if (!b->begun) q->ttft = now - b->start;
    else wg_event_add(&q->events, now - q->last, seq->last_emitted);
    q->last = now;
    if (b->tracer) s = wg_tracer_round(b->tracer, q, seq, b->a->engine, place, b->err);
    if (s || seq->finish == WG_RUNNING) return s;
    if (b->tracer) s = wg_tracer_end(b->tracer, q, seq, b->err);
    finish_request(b->a->engine, q, seq, b->first_token, now);
    b->seq[i] = NULL;
    b->left--;
    return s;
}

static void drop(batch *b, int i)
{
    wg_seq_close(b->a->engine, b->seq[i]);
    b->seq[i] = NULL;
    b->left--;
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

/* Now, as if nothing had been traced or measured. */
static double batch_clock(const batch *b)
{
    const double traced = b->tracer ? b->tracer->seconds - b->traced : 0;
    return wg_clock_now() - traced - (b->a->engine->phases.measure - b->measured);
}

/* One step of the running requests from .. to-1. A step that fails leaves every sequence as it was, so whose fault it is shows
 * by stepping each alone: only that request fails. */
static wg_status step_batch(batch *b, int from, int to)
{
    wg_engine *e = b->a->engine;
    wg_seq **active = b->room->active;
    int k = 0;
    for (int i = from; i < to; i++)
        if (b->seq[i]) active[k++] = b->seq[i];
    if (k == 0) return WG_OK;
    wg_error err;
    const wg_phases before = e->phases;
    const double forward = e->target->seconds, clock = batch_clock(b);
    const wg_status s = stopped(b->room) ? WG_EINTERRUPTED : wg_engine_step(e, active, k, &err);
    const double now = batch_clock(b);
    if (s == WG_EINTERRUPTED) return s;
    if (s && k > 1) {
        for (int i = from; i < to; i++) WG_TRY(step_batch(b, i, i + 1));
        return WG_OK;
    }
    const wg_phases step = phases_between(&before, &e->phases);
    if (!b->begun) b->first_token = now;
    if (b->a->warm && !s) wg_warm_step(b->a->warm, &step, now - clock, k, most_rows(active, k));
    const double target = e->target->seconds - forward;
    for (int i = from, place = 0; i < to; i++) {
        if (!b->seq[i]) continue;
        if (!s) {
            WG_TRY(settle(b, i, place++, k, target, now - clock, &step, now));
            continue;
        }
        request_fail(&b->a->request[i], s, &err);
        drop(b, i);
    }
    return WG_OK;
}

wg_status wg_batch_run(const wg_room *room, const wg_group *g, wg_arm *a, int first, int n, int repeat, int max_new,
                       wg_tracer *tracer, wg_error *err)
{
    batch b = { .room = room, .a = a, .seq = room->seq, .n = n, .start = wg_clock_now(), .tracer = tracer, .err = err,
                .measured = a->engine->phases.measure };
    wg_status s = WG_OK;
    b.first_token = b.start;
    b.traced = tracer ? tracer->seconds : 0;
    b.left = open_batch(g, a, b.seq, first, n, repeat, max_new);
    for (int i = 0; tracer && !s && i < n; i++)
        if (b.seq[i]) s = wg_tracer_begin(tracer, &a->request[i], b.seq[i], err);
    const double start = wg_clock_now(), joules = wg_energy_joules(room->energy);
    for (; !s && b.left > 0; b.begun = true) s = step_batch(&b, 0, n);
    const double watts = (wg_energy_joules(room->energy) - joules) / (wg_clock_now() - start);
    for (int i = 0; i < n; i++) a->request[i].joules = watts * a->request[i].decode;
    for (int i = 0; i < n; i++)
        if (b.seq[i]) drop(&b, i);
    return s;
}
