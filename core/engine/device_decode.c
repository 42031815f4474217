/* SPDX-License-Identifier: MIT
 * The engine's side of a decode loop. An event of the ring is a round of a sequence: its chain, as the drafter would have
 * proposed it, and the path through it. An event is then processed like the end of a step (engine.c): the sequence appends
 * and counts, the drafter observes. Only the cache is updated later, for all rounds at once. */
#include "core/engine/device_decode.h"
#include "core/engine/engine_impl.h"

#include "core/base/clock.h"
#include "core/base/mem.h"
#include "core/engine/device_verify.h"
#include "core/engine/seq_rows.h"
#include "core/model/decode_loop.h"

enum { ROUNDS = 32 }; /* rounds of a window */

struct wg_device_decode {
    wg_decode_loop *loop;
    wg_decode_loop_seq *seq; /* (max_batch) */
    /* state of the current run: */
    wg_engine *engine;
    wg_seq *const *running;
    wg_round_fn *on_round;
    void *user;
    bool wanted;
    int law;
    int round;    /* round of the last event; -1: none yet */
    double since; /* time of the last event */
};

void wg_device_decode_close(wg_engine *e)
{
    struct wg_device_decode *l = e->device_decode;
    if (!l) return;
    wg_decode_loop_close(l->loop);
    wg_free(l->seq);
    wg_free(l);
    e->device_decode = NULL;
}

/* The tokens that end a text, as a bit set. */
static uint64_t *ends_of(const wg_engine *e)
{
    const int vocab = e->target->vocab;
    uint64_t *ends = wg_calloc(((size_t)vocab + 63) / 64, sizeof *ends);
    for (int32_t t = 0; ends && e->is_eog && t < vocab; t++)
        if (e->is_eog(e->is_eog_user, t)) ends[t / 64] |= 1ull << t % 64;
    return ends;
}

wg_status wg_device_decode_open(wg_engine *e, wg_error *err)
{
    const wg_drafter_class *d = e->drafter->class;
    wg_decode_loop_options o = { .sequences = e->opt.max_batch, .rounds = ROUNDS, .events = ROUNDS * e->opt.max_batch };
    if (!e->device_verify || e->feeds.list || !d->device_chain || !d->device_chain(e->drafter, &o.draft)) return WG_OK;
    o.how = wg_device_verify_how(e, &o.rows);
    struct wg_device_decode *l = e->device_decode = wg_calloc(1, sizeof *l);
    uint64_t *ends = l ? ends_of(e) : NULL;
    if (ends) l->seq = wg_calloc((size_t)e->opt.max_batch, sizeof *l->seq);
    o.ends = ends;
    const wg_status status = l && l->seq ? wg_decode_loop_open(&l->loop, e->target, e->kv, &o, err)
                                         : wg_nomem(err, (size_t)e->opt.max_batch * sizeof *l->seq, "rounds in a loop");
    wg_free(ends);
    if (l) l->law = o.draft.law;
    if (l && !l->loop) wg_device_decode_close(e);
    return status;
}

void wg_device_decode_limit(wg_engine *e, int rounds, int events)
{
    wg_decode_loop_limit(e->device_decode->loop, rounds, events);
}

bool wg_device_decode_fits(wg_engine *e, wg_seq *const *seq, int n)
{
    struct wg_device_decode *l = e->device_decode;
    if (!l || e->feeds.list) return false; /* readers need rows that device rounds discard */
    for (int i = 0; i < n; i++) {
        const wg_seq *s = seq[i];
        if (wg_seq_has_rows(s) || s->stops || s->ignore_end || s->levels_end)
            return false; /* the device does not support these */
        l->seq[i] = (wg_decode_loop_seq){
            .kv = s->kv, .seed = s->chance.seed, .request = s->chance.request, .token = s->token, .n = s->n, .limit = s->limit
        };
    }
    return wg_decode_loop_fits(l->loop, l->seq, n);
}

/* Adds the seconds since the last call to the phases: `draft` by the device's clock, the rest to the pass and the end of a
 * round. */
static void add_phases(struct wg_device_decode *l, double draft)
{
    wg_phases *p = &l->engine->phases;
    const double now = wg_clock_now(), all = now - l->since;
    if (draft > all) draft = all;
    p->draft += draft;
    p->verify += all - draft;
    l->since = now;
}

/* Processes the end of a round. */
static bool take_event(void *user, const wg_gpu_event *event)
{
    struct wg_device_decode *l = user;
    wg_engine *e = l->engine;
    if (event->round > l->round) add_phases(l, event->draft_ns * 1e-9);
    l->round = event->round;
    wg_seq *s = l->running[event->seq];
    wg_tree *t = &e->tree[event->seq];
    wg_path path = { .n = event->kept + 1, .next = event->next };
    wg_tree_reset(t, s->token[s->n - 1], (wg_sibling_law)l->law);
    for (int i = 0; i < event->drafted; i++) wg_tree_push(t, i, event->token[i], -1);
    for (int i = 0; i < path.n; i++) path.node[i] = (int16_t)i;
    wg_seq_append(s, t, &path, e->is_eog, e->is_eog_user);
    s->on_device.verified++;
    s->on_device.decoded++;
    wg_assert(s->n == event->n);
    if (e->drafter->class->observe) e->drafter->class->observe(e->drafter, s, t, &s->path, &e->p);
    if (l->on_round && !l->on_round(l->user, s, t)) l->wanted = false;
    return l->wanted;
}

wg_status wg_device_decode_run(wg_engine *e, wg_seq *const *seq, int n, wg_device_rounds *r, wg_error *err)
{
    struct wg_device_decode *l = e->device_decode;
    l->engine = e;
    l->running = seq;
    l->on_round = r->on_round;
    l->user = r->user;
    l->wanted = true;
    l->round = -1;
    l->since = wg_clock_now();
    const wg_status status = wg_decode_loop_run(l->loop, l->seq, n, r->rounds, take_event, l, &r->ran, err);
    add_phases(l, 0);
    r->wanted = l->wanted;
    return status;
}
