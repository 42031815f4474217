/* SPDX-License-Identifier: MIT
 * The second pass (second_pass.h). */
#include "experiments/run/second_pass.h"

#include <stdio.h>
#include <string.h>

#include "core/trace/trace.h"

wg_status wg_second_pass_open(wg_arm *a, const wg_config *config, const wg_cell *cell, const wg_engine_parts *parts,
                              const wg_engine_options *opt, wg_error *err)
{
    const wg_setup_top *top = &config->top;
    const bool audit = top->audit || (top->alpha && wg_setup_is_outside(&cell->setup, config->plugins));
    const bool needed = top->alpha || audit || top->trace == WG_TRACE_PROBS;
    if (!needed) return WG_OK;
    if (top->second_pass == WG_SECOND_PASS_AUTO && !wg_engine_verifies_on_device(a->engine)) {
        wg_engine_measure(a->engine, top->alpha, audit);
        return WG_OK;
    }
    wg_engine_options o = *opt;
    o.host_rows = true;
    o.measure_alpha = top->alpha;
    o.audit = audit;
    const wg_status s = wg_engine_open(&a->second, parts, &o, err);
    return s ? wg_fail_in(err, s, "the second pass, which measures alpha and traces (\"alpha\": false goes without)") : WG_OK;
}

/* The state of a batch. */
typedef struct pass {
    const wg_room *room;
    const wg_group *g;
    wg_arm *a;
    const wg_batch_plan *plan;
    wg_seq **seq;            /* (n) NULL: closed */
    int step[WG_BATCH_MOST]; /* (n) steps of its turn so far */
    int turn, left;
    wg_tracer *tracer; /* NULL: none */
    wg_error *err;     /* error of the tracer */
} pass;

/* The timed request of the ith conversation's present turn, which it must have. */
static wg_request *request_of(const pass *p, int i)
{
    const wg_prompt *prompt = &p->g->dataset->prompt[p->plan->first];
    return &p->a->request[prompt[i].before - prompt->before + p->turn];
}

static bool has_turn(const pass *p, int i) { return p->turn < p->g->dataset->prompt[p->plan->first + i].turns; }
static bool is_running(const pass *p, int i) { return p->seq[i] && has_turn(p, i) && p->seq[i]->finish == WG_RUNNING; }

static void close_seq(pass *p, int i)
{
    wg_seq_close(p->a->second, p->seq[i]);
    p->seq[i] = NULL;
}

/* Fails the request because the passes differ, unless it has failed already. */
static void differ(pass *p, int i, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static void differ(pass *p, int i, const char *fmt, ...)
{
    wg_request *q = request_of(p, i);
    char what[300];
    wg_error e;
    va_list list;
    va_start(list, fmt);
    vsnprintf(what, sizeof what, fmt, list);
    va_end(list);
    wg_fail(&e, WG_EREPLAY, "the second pass, which measures alpha and traces, differs from the timed one: %s; %s", what,
            wg_device_is_fast(p->g->like->setup.target.device)
                ? "this device does not keep the Prefix Law, set \"alpha\": false"
                : "a drafter that is no function of its text, its requests and its seed? set \"alpha\": false to go without");
    if (!q->status) wg_request_fail(q, WG_EREPLAY, &e);
}

static wg_status begin_turn(pass *p)
{
    wg_status s = WG_OK;
    p->left = 0;
    for (int i = 0; i < p->plan->n; i++) {
        wg_error e;
        if (!has_turn(p, i)) continue;
        wg_request *q = request_of(p, i);
        const wg_question *question = &p->g->prompts.question[q->source->before];
        p->step[i] = 0;
        if (p->turn && !p->seq[i]) {
            differ(p, i, "the turn before did");
            continue;
        }
        if (wg_conversation_ask(p->a->second, &p->seq[i], question, p->turn,
                                wg_request_address(p->g, q->prompt, p->plan->repeat), p->plan->max_new, p->g->by.of.acceptor,
                                &e)) {
            differ(p, i, "%.200s", e.text);
            close_seq(p, i);
            continue;
        }
        p->left++;
        if (!s && p->tracer && !q->status) s = wg_tracer_begin(p->tracer, q, p->seq[i], p->err);
    }
    return s;
}

/* Whether a step equals the one that the timed pass recorded; true where it recorded no steps. */
static bool same_step(const wg_request *q, int step, const wg_seq *s)
{
    if (step >= q->steps) return q->cap_steps == 0;
    const wg_step_record *t = &q->step[step];
    return t->position == s->n - s->last_emitted && t->nodes == s->last_nodes && t->probes == s->last_probes &&
           t->emitted == s->last_emitted;
}

/* Compares the counts of both passes, and the text. */
static void compare(pass *p, int i)
{
    const wg_seq *s = p->seq[i];
    wg_request *q = request_of(p, i);
    const wg_counts *want = &q->counts, *got = &s->counts;
    const int n = s->n - s->prompt;
    int same = 0;
    while (same < n && same < q->n && s->token[s->prompt + same] == q->token[same]) same++;
    if (same < n || same < q->n) differ(p, i, "token %d of the text", same);
    else if (got->passes != want->passes || got->drafted != want->drafted || got->accepted != want->accepted ||
             got->probes != want->probes)
        differ(p, i, "%ld passes, %ld drafted and %ld accepted tokens, and not %ld, %ld and %ld", got->passes, got->drafted,
               got->accepted, want->passes, want->drafted, want->accepted);
    if (q->status) return;
    q->counts.alpha_sum = got->alpha_sum;
    q->counts.alpha_n = got->alpha_n;
    q->counts.alpha_star_sum = got->alpha_star_sum;
    q->counts.alpha_star_n = got->alpha_star_n;
    q->counts.independent_sum = got->independent_sum;
    q->counts.independent_n = got->independent_n;
    q->counts.audit = got->audit;
}

/* Handles the finished step of the ith conversation; its tree is number `place` of the engine. */
static wg_status take_step(pass *p, int i, int place)
{
    const wg_seq *s = p->seq[i];
    wg_request *q = request_of(p, i);
    const int step = p->step[i]++;
    wg_status st = WG_OK;
    if (!q->status && !same_step(q, step, s))
        differ(p, i, "step %d, with %d draft tokens and %d emitted", step, s->last_nodes - 1, s->last_emitted);
    const wg_tree *tree = &wg_engine_last_step(p->a->second).tree[place];
    if (p->tracer && !q->status) st = wg_tracer_round(p->tracer, q, step, s, p->a->second, tree, p->err);
    if (st || s->finish == WG_RUNNING) return st;
    if (!q->status) compare(p, i);
    if (p->tracer && !q->status) st = wg_tracer_end(p->tracer, q, s, p->err);
    if (p->turn + 1 == q->source->turns || p->turn + 1 == p->plan->turns) close_seq(p, i);
    p->left--;
    return st;
}

/* Steps the running requests from .. to-1; if the joint step fails, each is stepped alone, as in the timed pass. */
static wg_status step_batch(pass *p, int from, int to)
{
    wg_seq **active = p->room->active;
    int who[WG_BATCH_MOST], k = 0;
    for (int i = from; i < to; i++)
        if (is_running(p, i)) {
            who[k] = i;
            active[k++] = p->seq[i];
        }
    if (k == 0) return WG_OK;
    if (p->room->stop && *p->room->stop) return WG_EINTERRUPTED;
    wg_error err;
    const wg_status s = wg_engine_step(p->a->second, active, k, &err);
    if (s && k > 1) {
        for (int i = from; i < to; i++) WG_TRY(step_batch(p, i, i + 1));
        return WG_OK;
    }
    for (int place = 0; place < k && !s; place++) WG_TRY(take_step(p, who[place], place));
    if (!s) return WG_OK;
    differ(p, who[0], "%.200s", err.text);
    close_seq(p, who[0]);
    p->left--;
    return WG_OK;
}

wg_status wg_second_pass_run(const wg_room *room, const wg_group *g, wg_arm *a, const wg_batch_plan *plan, wg_tracer *tracer,
                             wg_error *err)
{
    pass p = { .room = room, .g = g, .a = a, .seq = room->seq, .plan = plan, .tracer = tracer, .err = err };
    wg_status s = WG_OK;
    memset(p.seq, 0, (size_t)plan->n * sizeof *p.seq);
    wg_length_log_repeat(&a->lengths);
    for (; p.turn < plan->turns && !s; p.turn++) {
        s = begin_turn(&p);
        while (!s && p.left > 0) s = step_batch(&p, 0, plan->n);
    }
    for (int i = 0; i < plan->n; i++) close_seq(&p, i);
    p.turn = 0;
    for (int i = 0; !s && !wg_length_log_agrees(&a->lengths) && i < plan->n; i++)
        differ(&p, i, "%zu of the %zu lengths that were planned", a->lengths.next, a->lengths.n);
    return s;
}
