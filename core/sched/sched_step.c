/* SPDX-License-Identifier: MIT
 * One step of the engine: all running requests, and chunks of the prompts that are being read, in the order of admission. Where
 * the engine's steps carry chunks, these are rows of the same pass, so a long prompt costs running requests a few rows per step
 * and no pass. Elsewhere each chunk is a pass of its own before the step, with as many tokens. */
#include "core/sched/sched_impl.h"

enum { USUAL = 2 }; /* tokens that a draft model has usually not read after a round: the last accepted and the next */

static bool reads_logits(const wg_served *r) { return r->echo && r->echoed + 1 < r->request.n; }

static void start_running(wg_sched *s, wg_served *r)
{
    r->state = WG_SERVED_RUNNING;
    if (!r->read) wg_served_send_started(s, r);
}

/* Selects the requests of the step: those whose text is in the cache run; the others read chunks, in the order of admission. */
static void plan(wg_sched *s)
{
    int left = s->opt.prefill_rows;
    s->n_running = s->chunks = 0;
    for (int i = 0; i < s->n; i++) {
        wg_served *r = s->live[i];
        if (r->ended) continue;
        if (r->state == WG_SERVED_READING && wg_kv_len(r->seq->kv) >= r->seq->n - 1) start_running(s, r);
        if (r->state == WG_SERVED_RUNNING) {
            s->runner[s->n_running] = r;
            s->running[s->n_running++] = r->seq;
        } else if (r->state == WG_SERVED_READING) {
            int at = s->chunks++;
            for (; at > 0 && wg_sched_before(s, r, s->reader[at - 1]); at--) s->reader[at] = s->reader[at - 1];
            s->reader[at] = r;
        }
    }
    int some = 0;
    for (int i = 0; i < s->chunks && left > 0; i++, some++) {
        wg_served *r = s->reader[i];
        const int unread = r->seq->n - 1 - wg_kv_len(r->seq->kv), n = unread < left ? unread : left;
        s->chunk[i] = (wg_chunk){ .seq = r->seq, .n = n, .logits = reads_logits(r) };
        left -= n;
    }
    s->chunks = some;
}

/* The number of tokens that the draft model has not read, beyond the USUAL ones of each draft. */
static int missed(const wg_sched *s, const wg_seq *q)
{
    const wg_lm *lm = wg_drafter_lm(wg_engine_drafter(s->engine));
    const int behind = lm ? wg_kv_len(q->kv) - wg_kv_valid(q->kv, lm->space) : 0;
    return behind > USUAL ? behind - USUAL : 0;
}

/* Whether the text of a request depends on what is drafted for it. */
static bool depends(const wg_sched *s, const wg_served *r)
{
    const wg_sampling *own = r->request.how.sampling, *how = own ? own : wg_engine_env(s->engine)->sampling;
    return how->temperature > 0 && !wg_verifier_compares(wg_engine_verifier(s->engine));
}

/* Sets the depth to which each request may draft in this step. It depends on the request, its room and the acceptance of
 * earlier drafts, all known before anything is drawn (methods.md, L3). */
static void limit_drafts(wg_sched *s)
{
    int other = 0;
    for (int i = 0; i < s->n_running; i++) {
        wg_served *r = s->runner[i];
        wg_seq *q = r->seq;
        r->undrafted = s->opt.no_draft || r->request.no_draft || r->plain;
        q->levels_end = r->undrafted ? 1 : r->request.draft_most > 0 ? r->request.draft_most + 1 : 0;
        s->place[i] = (wg_batch_place){ .slot = q->slot,
                                        .most = wg_seq_room(q) < s->opt.depth ? wg_seq_room(q) : s->opt.depth,
                                        .missed = s->policy ? missed(s, q) : 0,
                                        .alone = depends(s, r) };
    }
    for (int i = 0; i < s->chunks; i++) other += wg_engine_carries(s->engine) ? s->chunk[i].n : 0;
    if (!s->policy) return;
    wg_batch_lengths_plan(s->policy, s->place, s->n_running, other);
    for (int i = 0; i < s->n_running; i++)
        if (s->place[i].length < s->place[i].most) s->running[i]->levels_end = s->place[i].length + 1;
}

/* Feeds the acceptance of place i's draft to the policy; nodes behind the end of a text were not judged. */
static void learn(wg_sched *s, int i)
{
    const wg_seq *q = s->running[i];
    const int accepted = q->path.n - 1, offered = q->finish == WG_RUNNING ? q->last_height : accepted;
    if (s->policy) wg_batch_lengths_learn(s->policy, &s->place[i], q->last_nodes - 1, offered, accepted);
}

static void has_read(wg_sched *s, wg_served *r, const wg_chunk *c)
{
    if (c->logits) wg_served_store_echo(s, r, c);
    s->stats.read_tokens += c->n;
    s->step.prompt += c->n;
    if (wg_engine_carries(s->engine)) s->step.rows += c->n;
    if (wg_kv_len(r->seq->kv) >= r->seq->n - 1) start_running(s, r);
}

static void has_run(wg_sched *s, int i, const wg_tree *tree)
{
    wg_served *r = s->runner[i];
    s->stats.undrafted_off += tree->n == 1 && r->undrafted;
    s->stats.undrafted_policy += tree->n == 1 && !r->undrafted && r->seq->levels_end == 1;
    r->plain = false;
    learn(s, i);
    wg_served_send_round(s, r);
}

/* Adds a request's part of the step to the record that prices it. */
static void count(wg_sched *s, int i, const wg_tree *tree)
{
    wg_batch_step *step = &s->step;
    const int depth = s->running[i]->last_height;
    step->rows += tree->n;
    step->drafted += tree->n - 1;
    step->depth = depth > step->depth ? depth : step->depth;
    step->read += tree->n > 1 ? s->place[i].missed : 0;
}

/* Runs a pass of the engine and sends its events. */
static wg_status pass(wg_sched *s, int first, int n, int chunk, int chunks, wg_error *err)
{
    if (n + chunks == 0) return WG_OK;
    if (n == 0 && chunks == 1) WG_TRY(wg_engine_chunk(s->engine, &s->chunk[chunk], err));
    else WG_TRY(wg_engine_step_with(s->engine, s->running + first, n, s->chunk + chunk, chunks, err));
    for (int i = 0; i < chunks; i++) has_read(s, s->reader[chunk + i], &s->chunk[chunk + i]);
    for (int i = 0; i < n; i++) {
        const wg_tree *tree = &wg_engine_last_step(s->engine).tree[i];
        count(s, first + i, tree);
        has_run(s, first + i, tree);
    }
    return WG_OK;
}

static wg_status all(wg_sched *s, wg_error *err)
{
    if (wg_engine_carries(s->engine)) return pass(s, 0, s->n_running, 0, s->chunks, err);
    while (s->chunks > 0) {
        WG_TRY(pass(s, 0, 0, s->chunks - 1, 1, err));
        s->chunks--;
    }
    return pass(s, 0, s->n_running, 0, 0, err);
}

/* Runs each request by itself after a failure that one of them may have caused. Those that fail again end. */
static void one_by_one(wg_sched *s)
{
    wg_error err;
    for (int i = 0; i < s->chunks; i++)
        if (pass(s, 0, 0, i, 1, &err)) wg_served_fail(s, s->reader[i], &err);
    for (int i = 0; i < s->n_running; i++)
        if (pass(s, i, 1, 0, 0, &err)) wg_served_fail(s, s->runner[i], &err);
}

void wg_sched_time(wg_sched *s, const wg_phases *before, double since)
{
    const wg_phases *now = wg_engine_phases(s->engine);
    wg_batch_step *step = &s->step;
    const double read =
        now->prefill - before->prefill; /* seconds of chunks without a step; rows that no step carries are not counted */
    step->draft = now->draft - before->draft;
    step->pass = now->verify - before->verify + (wg_engine_carries(s->engine) ? read : 0);
    step->rest = wg_sched_now(s) - since - step->draft - step->pass - (wg_engine_carries(s->engine) ? 0 : read);
    if (s->policy && s->opt.live_costs) wg_batch_lengths_time(s->policy, step);
}

void wg_sched_run(wg_sched *s)
{
    wg_error err;
    s->step = (wg_batch_step){ 0 };
    for (;;) {
        plan(s);
        if (s->n_running + s->chunks == 0) return;
        limit_drafts(s);
        const wg_status status = all(s, &err);
        if (!status) return;
        if (status == WG_EFULL && wg_sched_relieve(s)) continue;
        one_by_one(s);
        return;
    }
}
