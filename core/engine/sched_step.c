/* SPDX-License-Identifier: MIT
 * One step of the engine: all that run, and chunks of the prompts that are being read, in the order in which requests come
 * first. Where the engine's steps carry chunks they are rows of the same pass, so a long prompt costs those that run a few more
 * rows a step and no pass; elsewhere each chunk is a pass of its own before the step, as many tokens a step. */
#include "core/engine/sched_impl.h"

static bool reads_logits(const wg_served *r) { return r->echo && r->echoed + 1 < r->ask.n; }

static void told_started(wg_sched *s, wg_served *r)
{
    r->state = WG_SERVED_RUNNING;
    if (!r->read) wg_served_tell_started(s, r);
}

/* Who takes part: requests whose text is in the cache run; the others read, the first ones first. */
static void plan(wg_sched *s)
{
    int left = s->opt.prefill_rows;
    s->n_running = s->chunks = 0;
    for (int i = 0; i < s->n; i++) {
        wg_served *r = s->live[i];
        if (r->over) continue;
        if (r->state == WG_SERVED_READING && wg_kv_len(r->seq->kv) >= r->seq->n - 1) told_started(s, r);
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

/* How deep a request may draft in this step. It is decided from what the step begins with, before anything is drawn. */
static void limit_drafts(wg_sched *s)
{
    for (int i = 0; i < s->n_running; i++) {
        const wg_served *r = s->runner[i];
        const bool off = s->opt.no_draft || r->ask.no_draft || r->plain;
        r->seq->levels_end = off ? 1 : r->ask.draft_most > 0 ? r->ask.draft_most + 1 : 0;
    }
}

static void has_read(wg_sched *s, wg_served *r, const wg_chunk *c)
{
    if (c->logits) wg_served_take_echo(s, r, c);
    s->stats.read_tokens += c->n;
    if (wg_kv_len(r->seq->kv) >= r->seq->n - 1) told_started(s, r);
}

static void has_run(wg_sched *s, wg_served *r, const wg_tree *tree)
{
    s->stats.undrafted_off += tree->n == 1 && r->seq->levels_end == 1;
    r->plain = false;
    wg_served_tell_round(s, r);
}

/* A pass of the engine, and its events. */
static wg_status pass(wg_sched *s, int first, int n, int chunk, int chunks, wg_error *err)
{
    if (n + chunks == 0) return WG_OK;
    if (n == 0 && chunks == 1) WG_TRY(wg_engine_chunk(s->engine, &s->chunk[chunk], err));
    else WG_TRY(wg_engine_step_with(s->engine, s->running + first, n, s->chunk + chunk, chunks, err));
    for (int i = 0; i < chunks; i++) has_read(s, s->reader[chunk + i], &s->chunk[chunk + i]);
    for (int i = 0; i < n; i++) has_run(s, s->runner[first + i], &wg_engine_last_step(s->engine).tree[i]);
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

/* After a failure whose cause may be one request: each by itself. Those that fail again end. */
static void one_by_one(wg_sched *s)
{
    wg_error err;
    for (int i = 0; i < s->chunks; i++)
        if (pass(s, 0, 0, i, 1, &err)) wg_served_fail(s, s->reader[i], &err);
    for (int i = 0; i < s->n_running; i++)
        if (pass(s, i, 1, 0, 0, &err)) wg_served_fail(s, s->runner[i], &err);
}

void wg_sched_run(wg_sched *s)
{
    wg_error err;
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
