/* SPDX-License-Identifier: MIT
 * The events of a request, and its end. */
#include "core/sched/sched_impl.h"

#include "core/base/mem.h"

void wg_served_free(wg_served *r)
{
    if (!r) return;
    wg_free((int32_t *)r->request.token);
    wg_free((int32_t *)r->request.stop);
    wg_free((wg_logit_bias *)r->request.how.bias);
    wg_free((int32_t *)r->request.how.allowed);
    wg_free(r->echo);
    wg_free(r);
}

static double after(const wg_served *r, double at) { return at > 0 ? at - r->submitted : 0; }

/* Completes e with the members that every kind of event has, and calls on_event. */
static void send(wg_sched *s, wg_served *r, wg_sched_event e)
{
    e.id = r->id;
    e.prompt = r->request.n;
    e.cached = r->cached;
    e.preemptions = r->preemptions;
    e.counts = r->seq ? &r->seq->counts : NULL;
    e.now = after(r, wg_sched_now(s));
    e.admitted = after(r, r->admitted);
    e.started = after(r, r->started);
    e.first_token = after(r, r->first_token);
    if (r->request.on_event) r->request.on_event(r->request.user, &e);
}

void wg_served_store_echo(wg_sched *s, wg_served *r, const wg_chunk *c)
{
    const int first = wg_kv_len(r->seq->kv) - c->n + 1; /* position of the token that follows the first row */
    const int vocab = wg_engine_target(s->engine)->vocab, top = r->request.how.top;
    const float *logits = wg_engine_last_step(s->engine).logits + (size_t)c->row * (size_t)vocab;
    for (int i = 0; i < c->n && first + i < r->request.n; i++, logits += vocab) {
        r->echoed = first + i;
        wg_logprobs(wg_engine_env(s->engine)->ops, logits, vocab, r->request.token[r->echoed], top, s->weight,
                    r->echo + (size_t)r->echoed * (size_t)(1 + top));
    }
}

void wg_served_send_started(wg_sched *s, wg_served *r)
{
    r->started = wg_sched_now(s);
    r->read = true;
    wg_sched_event e = { .kind = WG_SCHED_STARTED };
    if (r->request.echo)
        e.token = r->request.token, e.n = r->request.n, e.logs = (wg_sched_logs){ r->echo, r->request.how.top };
    send(s, r, e);
}

static wg_sched_end end_of(const wg_seq *q)
{
    static const wg_sched_end ends[] = { [WG_RUNNING] = WG_SCHED_NOT,
                                         [WG_FINISH_EOS] = WG_SCHED_EOS,
                                         [WG_FINISH_LENGTH] = WG_SCHED_LENGTH,
                                         [WG_FINISH_STOP] = WG_SCHED_STOP };
    return ends[q->finish];
}

void wg_served_send_round(wg_sched *s, wg_served *r)
{
    const wg_seq *q = r->seq;
    const int n = q->last_emitted, from = q->n - n;
    if (r->first_token == 0) r->first_token = wg_sched_now(s);
    wg_sched_event e = { .kind = WG_SCHED_ROUND,
                         .end = end_of(q),
                         .token = q->token + from,
                         .drafted = q->drafted + from,
                         .n = n,
                         .nodes = q->last_nodes - 1 };
    e.logs.row = wg_seq_logprobs(q, &e.logs.top);
    send(s, r, e);
    if (q->finish != WG_RUNNING) wg_served_end(s, r, end_of(q));
}

/* Closes the sequence; its cache goes to the prefix cache if others can share a page of it. */
static void leave(wg_sched *s, wg_served *r)
{
    wg_seq *q = r->seq;
    r->seq = NULL;
    if (!q) return;
    wg_counts_add(&s->stats.counts, &q->counts);
    if (s->policy) wg_batch_lengths_forget(s->policy, q->slot);
    const int share = s->opt.prefix_cache ? wg_seq_shareable(s->engine, q) : 0;
    if (share < wg_kv_page_slots(wg_engine_kv(s->engine))) {
        wg_seq_close(s->engine, q);
        return;
    }
    wg_prefix_cache_put(&s->cache, q->token, share, wg_seq_take_cache(s->engine, q));
    wg_seq_close(s->engine, q);
}

static void finish(wg_sched *s, wg_served *r, wg_sched_event e)
{
    pthread_mutex_lock(&s->lock);
    r->ended = true;
    pthread_mutex_unlock(&s->lock);
    send(s, r, e);
    leave(s, r);
}

void wg_served_end(wg_sched *s, wg_served *r, wg_sched_end end)
{
    if (r->ended) return;
    s->stats.ended++;
    s->stats.cancelled += end == WG_SCHED_CANCELLED;
    s->stats.expired += end == WG_SCHED_DEADLINE;
    finish(s, r, (wg_sched_event){ .kind = WG_SCHED_ENDED, .end = end });
}

void wg_served_fail(wg_sched *s, wg_served *r, const wg_error *why)
{
    if (r->ended) return;
    s->stats.failed++;
    finish(s, r, (wg_sched_event){ .kind = WG_SCHED_FAILED, .why = why });
}
