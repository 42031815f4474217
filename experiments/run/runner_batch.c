/* SPDX-License-Identifier: MIT
 * A batch of prompts through one engine. Only wg_engine_step and wg_engine_prefill are timed. */
#include "experiments/run/runner_batch.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/clock.h"

static bool stopped(const wg_room *r) { return r->stop && *r->stop; }

static void request_reset(wg_request *q)
{
    const wg_request had = *q; /* keeps its arrays */
    *q = (wg_request){ .token = had.token,
                       .cap_tokens = had.cap_tokens,
                       .step = had.step,
                       .cap_steps = had.cap_steps,
                       .events = had.events,
                       .equals = -1,
                       .ttft = NAN,
                       .tpot = NAN,
                       .joules = NAN };
    q->events.n = 0;
}

void wg_request_fail(wg_request *q, wg_status s, const wg_error *e)
{
    char turn[40] = "";
    if (q->source->turns > 1) snprintf(turn, sizeof turn, "turn %d of %d: ", q->turn + 1, q->source->turns);
    q->status = s;
    snprintf(q->error, sizeof q->error, "%s%.460s", turn, e->text);
}

static wg_phases phases_between(const wg_phases *a, const wg_phases *b)
{
    return (wg_phases){ .draft = b->draft - a->draft,
                        .verify = b->verify - a->verify,
                        .accept = b->accept - a->accept,
                        .kv = b->kv - a->kv,
                        .measure = b->measure - a->measure };
}

void wg_phases_add(wg_phases *to, const wg_phases *p, double share)
{
    to->draft += p->draft * share;
    to->verify += p->verify * share;
    to->accept += p->accept * share;
    to->kv += p->kv * share;
}

/* Records a step, in memory allocated before the timed interval. */
static void trace_step(wg_request *q, const wg_seq *s, const wg_composite_step *mixture, int batch, double seconds,
                       const wg_phases *step)
{
    if (q->steps >= q->cap_steps) return;
    int accepted = 0;
    for (int i = s->n - s->last_emitted; i < s->n; i++) accepted += s->drafted[i];
    wg_step_record *t = &q->step[q->steps++];
    *t = (wg_step_record){ .position = s->n - s->last_emitted,
                           .nodes = s->last_nodes,
                           .probes = s->last_probes,
                           .height = s->last_height,
                           .accepted = accepted,
                           .emitted = s->last_emitted,
                           .batch = batch,
                           .composite = *mixture,
                           .seconds = seconds };
    wg_phases_add(&t->phases, step, 1);
}

static void finish_request(wg_request *q, const wg_seq *s, double first, double now)
{
    q->n = s->n - s->prompt;
    memcpy(q->token, s->token + s->prompt, (size_t)q->n * sizeof *q->token);
    q->finish = s->finish;
    q->counts = s->counts;
    q->on_device = s->on_device;
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
        q->prompt_tokens = g->prompts.question[q->source->before].n; /* equality is unknown until the baseline has run */
}

/* The state of a sequence in a batch, besides its request. */
typedef struct place {
    long decoded; /* rounds that the device decoded before the current step (wg_device_passes) */
    double share; /* its seconds in the present call */
} place;

/* The state of a batch: its requests and its clocks. */
typedef struct batch {
    const wg_room *room;
    const wg_group *g;
    wg_arm *a;
    const wg_batch_plan *plan;
    wg_seq **seq;               /* (n) NULL: closed */
    place at[WG_BATCH_MOST];    /* (n) */
    int of_slot[WG_BATCH_MOST]; /* conversation in each slot of the engine */
    int turn, left;             /* present turn; requests still running */
    bool begun;                 /* the first step of the turn has ended */
    double start, first_token;
    wg_tracer *tracer; /* NULL: this arm is not traced */
    double traced;     /* the tracer's clock when the batch began */
    double measured;   /* the engine's measuring clock when the batch began */
    wg_error *err;     /* error of the tracer, which ends the run */
    /* state of the engine's present call: */
    int k, reported, rows;      /* sequences of the step; those already reported; rows of the sequence with the most */
    double clock, seconds, now; /* start of the step; its duration; its end */
    double forward;             /* the target's seconds, already attributed */
    wg_phases phases;           /* the engine's phases, already attributed */
    bool by_device;             /* the step was decoded on the device */
    wg_status status;           /* status of the tracer */
} batch;

/* The request of the ith conversation's present turn, which it must have. */
static wg_request *request_of(const batch *b, int i)
{
    const wg_prompt *p = &b->g->dataset->prompt[b->plan->first];
    return &b->a->request[p[i].before - p->before + b->turn];
}

/* Whether it is neither finished nor waiting for the next turn. */
static bool is_running(const batch *b, int i) { return b->seq[i] && request_of(b, i)->finish == WG_RUNNING; }

static void close_seq(batch *b, int i)
{
    wg_seq_close(b->a->engine, b->seq[i]);
    b->seq[i] = NULL;
}

/* The clock without the time of tracing and measuring. */
static double batch_clock(const batch *b)
{
    const double traced = b->tracer ? b->tracer->seconds - b->traced : 0;
    return wg_clock_now() - traced - (wg_engine_phases(b->a->engine)->measure - b->measured);
}

uint32_t wg_request_address(const wg_group *g, int prompt, int repeat)
{
    return (uint32_t)prompt * (uint32_t)g->like->setup.top.repeats + (uint32_t)repeat;
}

/* Feeds a question and prefills it. */
static wg_status ask(batch *b, int i, wg_request *q, wg_error *err)
{
    const wg_question *question = &b->g->prompts.question[q->source->before];
    wg_status s = WG_EINVAL;
    if (b->turn && !b->seq[i]) wg_fail(err, s, "it was not run, because the one before it failed");
    else
        s = wg_conversation_ask(b->a->engine, &b->seq[i], question, b->turn,
                                wg_request_address(b->g, q->prompt, b->plan->repeat), b->plan->max_new, b->g->by.of.acceptor,
                                err);
    if (s) return s;
    q->prompt_tokens = b->seq[i]->n;
    q->cached = wg_kv_len(b->seq[i]->kv);
    const double start = wg_clock_now();
    s = wg_engine_prefill(b->a->engine, b->seq[i], err);
    q->prefill = wg_clock_now() - start;
    return s;
}

/* Feeds the questions of all conversations that have this turn; an error is that request's failure. */
static wg_status begin_turn(batch *b)
{
    wg_status s = WG_OK;
    b->start = b->first_token = batch_clock(b);
    b->begun = false;
    b->left = 0;
    for (int i = 0; i < b->plan->n; i++) {
        wg_error e;
        const int prompt = b->plan->first + i;
        if (b->turn >= b->g->dataset->prompt[prompt].turns) continue;
        wg_request *q = request_of(b, i);
        wg_request_begin(b->g, b->a, q, prompt, b->turn, b->plan->repeat);
        const wg_status bad = ask(b, i, q, &e);
        b->left += !bad;
        if (!bad) continue;
        wg_request_fail(q, bad, &e);
        close_seq(b, i);
    }
    for (int i = 0; b->tracer && !s && i < b->plan->n; i++)
        if (b->seq[i]) s = wg_tracer_begin(b->tracer, request_of(b, i), b->seq[i], b->err);
    return s;
}

/* ---- a step ------------------------------------------------------------------------------------------------------ */

static void begin_step(batch *b, int k, double now)
{
    b->k = k;
    b->reported = 0;
    b->clock = now;
    b->forward = wg_engine_target(b->a->engine)->seconds;
    b->phases = *wg_engine_phases(b->a->engine);
}

/* Ends the timing of a step, when its first sequence is reported. */
static void step_over(batch *b, bool by_device)
{
    b->now = batch_clock(b);
    b->seconds = b->now - b->clock;
    b->rows = 1;
    b->by_device = by_device;
    if (!b->begun) b->first_token = b->now;
}

/* Starts the next step's clock, when all sequences of a step have been reported. A device does not wait for the host, so its
 * next step has already begun. */
static void end_step(batch *b)
{
    const wg_phases step = phases_between(&b->phases, wg_engine_phases(b->a->engine));
    if (b->a->warm) wg_warm_step(b->a->warm, &step, b->seconds, b->k, b->rows);
    b->begun = true;
    begin_step(b, b->left, b->by_device ? b->now : batch_clock(b));
}

/* Seconds in the target's passes since the step began; for rounds that the device decodes, all but the draft. */
static double forward_seconds(const batch *b, const wg_phases *step)
{
    return b->by_device ? step->verify : wg_engine_target(b->a->engine)->seconds - b->forward;
}

/* Adds a request's share of the finished step. */
static wg_status account(batch *b, wg_request *q, const wg_seq *seq, const wg_tree *tree)
{
    wg_engine *e = b->a->engine;
    const wg_phases step = phases_between(&b->phases, wg_engine_phases(e));
    q->decode += b->seconds / b->k;
    q->forward += forward_seconds(b, &step) / b->k;
    wg_phases_add(&q->phases, &step, 1.0 / b->k);
    const wg_composite_step mixture = wg_composite_totals_add_step(&q->composite, wg_engine_drafter(e), seq);
    trace_step(q, seq, &mixture, b->k, b->seconds, &step);
    wg_pass_stats_step(&q->pass_stats, seq, tree, b->k, wg_kv_page_slots(wg_engine_kv(e)));
    if (!b->begun) q->ttft = b->now - b->start;
    else wg_event_add(&q->events, b->now - q->last, seq->last_emitted);
    q->last = b->now;
    return b->tracer ? wg_tracer_round(b->tracer, q, q->steps - 1, seq, e, tree, b->err) : WG_OK;
}

/* After each step of a sequence (wg_round_fn). */
static bool take_step(void *user, const wg_seq *seq, const wg_tree *tree)
{
    batch *b = user;
    const int i = b->of_slot[seq->slot];
    wg_request *q = request_of(b, i);
    const bool by_device = seq->on_device.decoded > b->at[i].decoded;
    b->at[i].decoded = seq->on_device.decoded;
    if (b->reported++ == 0) step_over(b, by_device);
    const int rows = seq->last_nodes + seq->last_probes;
    b->rows = rows > b->rows ? rows : b->rows;
    b->at[i].share += b->seconds / b->k;
    if (!b->status) b->status = account(b, q, seq, tree);
    if (!b->status && seq->finish != WG_RUNNING) {
        if (b->tracer) b->status = wg_tracer_end(b->tracer, q, seq, b->err);
        finish_request(q, seq, b->first_token, b->now);
        b->left--;
    }
    if (b->reported == b->k) end_step(b);
    return !b->status && !stopped(b->room);
}

/* Shares the last wait for the device, after device decode, in proportion to the sequences' times in the call. */
static void share_rest(batch *b, int from, int to)
{
    const wg_phases rest = phases_between(&b->phases, wg_engine_phases(b->a->engine));
    const double seconds = batch_clock(b) - b->clock, forward = forward_seconds(b, &rest);
    double all = 0;
    for (int i = from; i < to; i++) all += b->at[i].share;
    for (int i = from; i < to && all > 0; i++) {
        if (b->at[i].share <= 0) continue;
        wg_request *q = request_of(b, i);
        const double share = b->at[i].share / all;
        q->decode += seconds * share;
        q->forward += forward * share;
        wg_phases_add(&q->phases, &rest, share);
    }
}

/* Closes the sequences that are finished and have no further turn. */
static void close_finished(batch *b)
{
    for (int i = 0; i < b->plan->n; i++) {
        if (!b->seq[i] || b->seq[i]->finish == WG_RUNNING) continue;
        if (b->turn + 1 == request_of(b, i)->source->turns || b->turn + 1 == b->plan->turns) close_seq(b, i);
    }
}

enum { PLANS = 1024 }; /* most plans of a sequence in a step: composites have a policy per component */

/* Steps the running requests from .. to-1 once, or with `all` as often as the engine does without the host. A failed step
 * leaves every sequence unchanged, so each is then stepped alone, and only the request that causes the failure fails. */
static wg_status step_batch(batch *b, int from, int to, bool all)
{
    wg_engine *e = b->a->engine;
    wg_seq **active = b->room->active;
    int k = 0;
    for (int i = from; i < to; i++) {
        b->at[i].share = 0;
        if (!is_running(b, i)) continue;
        b->at[i] = (place){ .decoded = b->seq[i]->on_device.decoded };
        b->of_slot[b->seq[i]->slot] = i;
        active[k++] = b->seq[i];
    }
    if (k == 0) return WG_OK;
    wg_error err;
    if (b->a->second) WG_TRY(wg_length_log_reserve(&b->a->lengths, (size_t)k * PLANS, b->err));
    if (stopped(b->room)) return WG_EINTERRUPTED;
    const long massless = wg_engine_massless(e);
    b->status = WG_OK;
    b->by_device = false;
    begin_step(b, k, batch_clock(b));
    const wg_status s = wg_engine_rounds(e, active, k, all ? INT_MAX : 1, take_step, b, &err);
    if (b->status) return b->status;
    if (b->by_device) share_rest(b, from, to);
    close_finished(b);
    if (!s) return WG_OK;
    if (k > 1) {
        for (int i = from; i < to; i++) WG_TRY(step_batch(b, i, i + 1, false));
        return WG_OK;
    }
    for (int i = from; i < to; i++) {
        if (!is_running(b, i)) continue;
        wg_request_fail(request_of(b, i), s, &err);
        wg_audit *audit = &request_of(b, i)->counts.audit; /* may give the reason */
        *audit = b->seq[i]->counts.audit;
        audit->massless = wg_engine_massless(e) > massless;
        close_seq(b, i);
        b->left--;
    }
    return WG_OK;
}

/* Runs a turn of all conversations that have it, to its end. */
static wg_status run_turn(batch *b)
{
    wg_status s = begin_turn(b);
    const double start = wg_clock_now(), joules = wg_energy_joules(b->room->energy);
    const bool all = wg_engine_decodes_on_device(b->a->engine);
    while (!s && b->left > 0) s = step_batch(b, 0, b->plan->n, all);
    const double watts = (wg_energy_joules(b->room->energy) - joules) / (wg_clock_now() - start);
    for (int i = 0; i < b->plan->n; i++)
        if (b->turn < b->g->dataset->prompt[b->plan->first + i].turns)
            request_of(b, i)->joules = watts * request_of(b, i)->decode;
    return s;
}

wg_status wg_batch_run(const wg_room *room, const wg_group *g, wg_arm *a, const wg_batch_plan *plan, wg_tracer *tracer,
                       wg_error *err)
{
    batch b = { .room = room,
                .g = g,
                .a = a,
                .seq = room->seq,
                .plan = plan,
                .tracer = tracer,
                .traced = tracer ? tracer->seconds : 0,
                .measured = wg_engine_phases(a->engine)->measure,
                .err = err };
    wg_status s = WG_OK;
    memset(b.seq, 0, (size_t)plan->n * sizeof *b.seq);
    wg_length_log_record(&a->lengths);
    for (; b.turn < plan->turns && !s; b.turn++) s = run_turn(&b);
    for (int i = 0; i < plan->n; i++) close_seq(&b, i);
    return s;
}
