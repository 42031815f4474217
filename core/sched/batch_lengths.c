/* SPDX-License-Identifier: MIT
 * See batch_lengths.h. */
#include "core/sched/batch_lengths.h"

#include <math.h>

#include "core/base/mem.h"

/* What is known of the drafts of one sequence, or of all that are planned together. */
typedef struct known {
    bool begun, pays;
    wg_cost_survival survival;
    wg_cost_trial trial;
    double gain;     /* moving average of what the best drafts promise beyond plain decoding, of its tokens */
    unsigned drafts; /* rounds that drafted because that paid */
} known;

/* A place that is planned now. */
typedef struct work {
    wg_batch_place *place;
    double survival[WG_COST_DEPTH]; /* the probability that the first j + 1 draft tokens are kept */
    double fee;                     /* price of what its draft must read first, spread over the tokens to come */
    int taken, best;                /* draft tokens */
} work;

struct wg_batch_lengths {
    int depth;
    bool timed;
    wg_cost_prices given, now; /* now: corrected by what steps took */
    known all, *slot;          /* slot: (slots) owned */
    work *of;                  /* (slots) owned */
};

wg_status wg_batch_lengths_open(wg_batch_lengths **out, int slots, int depth, const wg_cost_prices *prices, wg_error *err)
{
    wg_batch_lengths *b = wg_calloc(1, sizeof *b);
    if (!b) return wg_nomem(err, sizeof *b, "the draft lengths of a scheduler");
    b->depth = depth < WG_COST_DEPTH ? depth : WG_COST_DEPTH;
    b->given = b->now = *prices;
    b->all.trial = WG_COST_NO_TRIAL;
    b->slot = wg_calloc((size_t)slots, sizeof *b->slot);
    b->of = wg_calloc((size_t)slots, sizeof *b->of);
    if (!b->slot || !b->of) {
        wg_batch_lengths_close(b);
        return wg_nomem(err, (size_t)slots * (sizeof(known) + sizeof(work)), "the draft lengths of a scheduler");
    }
    *out = b;
    return WG_OK;
}

void wg_batch_lengths_close(wg_batch_lengths *b)
{
    if (!b) return;
    wg_free(b->slot);
    wg_free(b->of);
    wg_free(b);
}

/* ---- what steps tell */

void wg_batch_lengths_time(wg_batch_lengths *b, const wg_batch_step *s)
{
    if (s->rows < 1 || !(s->pass > 0)) return;
    b->timed = true;
    if (s->prompt == 0) wg_cost_saw_pass(&b->now, s->rows, s->pass);
    wg_cost_saw_draft(&b->now, 0, s->depth, s->drafted, s->read, s->draft);
    wg_cost_saw_rest(&b->now, s->rest);
}

/* Where nothing is drafted, what is known of one of several fades in favour of what is known of all. */
void wg_batch_lengths_learn(wg_batch_lengths *b, const wg_batch_place *place, int nodes, int offered, int accepted)
{
    wg_cost_survival *own = &b->slot[place->slot].survival, *all = &b->all.survival;
    const int tried = accepted + (accepted < offered);
    if (offered > 0) wg_cost_learn_width(own, nodes, offered, WG_COST_KEEP);
    if (offered > 0 || !place->alone) wg_cost_learn(own, 0, tried, accepted, WG_COST_KEEP);
    if (offered == 0) return;
    wg_cost_learn_width(all, nodes, offered, WG_COST_KEEP);
    wg_cost_learn(all, 0, tried, accepted, WG_COST_KEEP);
}

void wg_batch_lengths_forget(wg_batch_lengths *b, int slot) { b->slot[slot] = (known){ .begun = false }; }

/* ---- a step */

/* What is known of all is what is expected of one before its own drafts tell. */
static void estimate(const wg_batch_lengths *b, work *w, const wg_cost_prices *p)
{
    const wg_cost_survival *s = &b->slot[w->place->slot].survival;
    double above = WG_COST_FIRST, reach = 1;
    for (int d = 1; d <= b->depth; d++) {
        if (!w->place->alone) above = wg_cost_survive(&b->all.survival, 0, d, above);
        const double own = wg_cost_survive(s, 0, d, above);
        if (w->place->alone) above = own;
        w->survival[d - 1] = reach *= own;
    }
    w->fee = w->place->missed * p->read[0] * (1 - WG_COST_KEEP);
}

/* What is maximised: tokens per time, or where time has a price, tokens less the price of their time. */
typedef struct aim {
    int n, other; /* sequences; rows of the pass besides */
    double price; /* tokens per time; 0: tokens per time are maximised */
    bool drafts;  /* there is a draft token at least, where any is allowed */
} aim;

static double worth(const aim *a, double tokens, double time)
{
    return a->price > 0 ? tokens - a->price * time : tokens / time;
}

/* The next draft token: what it yields, less what must be read for it at this rate; -1 where there is none. */
static double next_of(const work *w, int depth, double rate)
{
    if (w->taken >= depth || w->taken >= w->place->most) return -1;
    return fmax(0, w->survival[w->taken] - (w->taken == 0 ? rate * w->fee : 0));
}

/* Adds the draft tokens of all places, the likeliest first, and keeps the best beginning of that order; returns its worth. */
static double search(wg_batch_lengths *b, const wg_cost_prices *p, const wg_cost_survival *width, const aim *a, double rate)
{
    double best = a->drafts ? -INFINITY : worth(a, a->n, wg_cost_of_pass(p, a->other + a->n) + p->rest), tokens = a->n;
    for (int i = 0; i < a->n; i++) b->of[i].taken = b->of[i].best = 0;
    for (int all = 1, deepest = 0;; all++) {
        int top = 0;
        double most = -1;
        for (int i = 0; i < a->n; i++) {
            const double v = next_of(&b->of[i], b->depth, rate);
            if (v > most) most = v, top = i;
        }
        if (most < 0) return best;
        if (++b->of[top].taken > deepest) deepest = b->of[top].taken;
        tokens += most;
        const double time = wg_cost_of_pass(p, a->other + a->n + wg_cost_width(width, all)) + deepest * wg_cost_level(p, 0) +
                            all * p->token + p->rest;
        if (!(worth(a, tokens, time) > best)) continue;
        best = worth(a, tokens, time);
        for (int i = 0; i < a->n; i++) b->of[i].best = b->of[i].taken;
    }
}

/* The lengths of n places, which decide together. clock: prices follow it. */
static void decide(wg_batch_lengths *b, known *k, const wg_cost_prices *p, int n, int other, bool clock)
{
    const double plain = n / (wg_cost_of_pass(p, n) + p->rest);
    for (int i = 0; i < n; i++) estimate(b, &b->of[i], p);
    const double promised = search(b, p, &k->survival, &(aim){ n, 0, 0, true }, plain);
    const bool any = promised > -INFINITY;
    if (any) k->gain += (k->begun && clock ? WG_COST_RATE : 1) * (promised / plain - 1 - k->gain);
    k->begun = true;
    k->pays = wg_cost_pays(k->pays, k->gain);
    const bool drafts = wg_cost_trial_step(&k->trial, k->pays, any && (clock || !k->pays) ? fabs(k->gain) : INFINITY) && any;
    const bool explores = drafts && clock && !k->trial.on;
    k->drafts += explores;
    if (drafts) search(b, p, &k->survival, &(aim){ n, other, fmax(plain, promised), k->trial.on }, plain);
    for (int i = 0; i < n; i++) {
        wg_batch_place *at = b->of[i].place;
        at->length = drafts ? b->of[i].best : 0;
        if (explores) at->length = wg_cost_explore(k->drafts, at->length, at->most < b->depth ? at->most : b->depth);
    }
}

void wg_batch_lengths_plan(wg_batch_lengths *b, wg_batch_place *place, int n, int other)
{
    int together = 0;
    for (int i = 0; i < n; i++) {
        known *k = &b->slot[place[i].slot];
        if (!place[i].alone) continue;
        if (!k->begun) k->trial = WG_COST_NO_TRIAL;
        b->of[0].place = &place[i];
        decide(b, k, &b->given, 1, 0, false);
        other += 1 + wg_cost_width(&k->survival, place[i].length);
    }
    for (int i = 0; i < n; i++)
        if (!place[i].alone) b->of[together++].place = &place[i];
    if (together > 0) decide(b, &b->all, &b->now, together, other, b->timed);
}
