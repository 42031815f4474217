/* SPDX-License-Identifier: MIT
 * See batch_lengths.h. */
#include "core/sched/batch_lengths.h"

#include <math.h>
#include <string.h>

#include "core/base/mem.h"

/* What is known of the drafts of one sequence, or of all that are planned together. */
typedef struct known {
    bool begun, pays;
    wg_cost_survival survival;
    wg_cost_trial trial;
    double gain;     /* moving average of what the best drafts promise beyond plain decoding, of its tokens */
    unsigned drafts; /* rounds that drafted because that paid */
} known;

struct wg_batch_lengths {
    int slots, depth;
    bool timed;
    wg_cost_prices given, now; /* now: corrected by what steps took */
    known all, *slot;          /* slot: (slots) owned */
    double *survival;          /* (slots, depth) owned: the probability that the first j + 1 draft tokens are kept */
    double *fee;               /* (slots) owned: price of what a draft must read first, spread over the tokens to come */
    wg_batch_place **group;    /* (slots) owned: places that are planned now */
    int *taken, *best;         /* (slots) owned: draft tokens of each */
};

wg_status wg_batch_lengths_open(wg_batch_lengths **out, int slots, int depth, const wg_cost_prices *prices, wg_error *err)
{
    const size_t n = (size_t)slots, d = (size_t)(depth < WG_COST_DEPTH ? depth : WG_COST_DEPTH);
    wg_batch_lengths *b = wg_calloc(1, sizeof *b);
    if (!b) return wg_nomem(err, sizeof *b, "the draft lengths of a scheduler");
    *b = (wg_batch_lengths){ .slots = slots, .depth = (int)d, .given = *prices, .now = *prices };
    b->all.trial = WG_COST_NO_TRIAL;
    b->slot = wg_calloc(n, sizeof *b->slot);
    b->survival = wg_calloc(n * d, sizeof *b->survival);
    b->fee = wg_calloc(n, sizeof *b->fee);
    b->group = wg_calloc(n, sizeof *b->group);
    b->taken = wg_calloc(n, sizeof *b->taken);
    b->best = wg_calloc(n, sizeof *b->best);
    if (!b->slot || !b->survival || !b->fee || !b->group || !b->taken || !b->best) {
        wg_batch_lengths_close(b);
        return wg_nomem(err, n * (d * sizeof(double) + sizeof(known)), "the draft lengths of a scheduler");
    }
    *out = b;
    return WG_OK;
}

void wg_batch_lengths_close(wg_batch_lengths *b)
{
    if (!b) return;
    wg_free(b->slot);
    wg_free(b->survival);
    wg_free(b->fee);
    wg_free(b->group);
    wg_free(b->taken);
    wg_free(b->best);
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
    known *of[] = { &b->slot[place->slot], &b->all };
    const int tried = accepted + (accepted < offered);
    if (offered > 0 || !place->alone) wg_cost_learn(&of[0]->survival, 0, tried, accepted, WG_COST_KEEP);
    for (int i = 0; i < (place->alone ? 1 : 2) && offered > 0; i++)
        wg_cost_learn_width(&of[i]->survival, nodes, offered, WG_COST_KEEP);
    if (offered > 0 && !place->alone) wg_cost_learn(&of[1]->survival, 0, tried, accepted, WG_COST_KEEP);
}

void wg_batch_lengths_forget(wg_batch_lengths *b, int slot) { b->slot[slot] = (known){ .begun = false }; }

/* ---- a step */

/* What is known of all is what is expected of one before its own drafts tell. */
static void estimate(wg_batch_lengths *b, int n, const wg_cost_prices *p)
{
    for (int i = 0; i < n; i++) {
        const wg_cost_survival *s = &b->slot[b->group[i]->slot].survival;
        double survives = WG_COST_FIRST, reach = 1;
        for (int d = 1; d <= b->depth; d++) {
            if (!b->group[i]->alone) survives = wg_cost_survive(&b->all.survival, 0, d, survives);
            const double own = wg_cost_survive(s, 0, d, survives);
            if (b->group[i]->alone) survives = own;
            b->survival[i * b->depth + d - 1] = reach *= own;
        }
        b->fee[i] = b->group[i]->missed * p->read[0] * (1 - WG_COST_KEEP);
    }
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

/* The next draft token of place i: what it yields, less what must be read for it at this price; -1 where there is none. */
static double next_of(const wg_batch_lengths *b, int i, double price)
{
    const int k = b->taken[i];
    if (k >= b->depth || k >= b->group[i]->most) return -1;
    return fmax(0, b->survival[i * b->depth + k] - (k == 0 ? price * b->fee[i] : 0));
}

/* Adds the draft tokens of all places, the likeliest first, and keeps the best beginning of that order in b->best; returns its
 * worth. fees: the rate at which reading counts. */
static double search(wg_batch_lengths *b, const wg_cost_prices *p, const wg_cost_survival *width, const aim *a, double fees)
{
    const double plain = wg_cost_of_pass(p, a->other + a->n) + p->rest;
    double best = a->drafts ? -INFINITY : worth(a, a->n, plain), tokens = a->n;
    int deepest = 0, levels = 0;
    memset(b->taken, 0, (size_t)a->n * sizeof *b->taken);
    memset(b->best, 0, (size_t)a->n * sizeof *b->best);
    for (;;) {
        int top = -1;
        double most = -1;
        for (int i = 0; i < a->n; i++) {
            const double v = next_of(b, i, fees);
            if (v > most) most = v, top = i;
        }
        if (top < 0) return best;
        if (++b->taken[top] > deepest) deepest = b->taken[top];
        tokens += most;
        levels++;
        const double time = wg_cost_of_pass(p, a->other + a->n + wg_cost_width(width, levels)) + deepest * wg_cost_level(p, 0) +
                            levels * p->token + p->rest;
        const double v = worth(a, tokens, time);
        if (!(v > best)) continue;
        best = v;
        memcpy(b->best, b->taken, (size_t)a->n * sizeof *b->best);
    }
}

/* The lengths of the n places of b->group, which decide together. clock: prices follow it. */
static void decide(wg_batch_lengths *b, known *k, const wg_cost_prices *p, int n, int other, bool clock)
{
    const wg_cost_survival *width = &k->survival;
    const double plain = n / (wg_cost_of_pass(p, n) + p->rest);
    estimate(b, n, p);
    const double promised = search(b, p, width, &(aim){ n, 0, 0, true }, plain);
    const bool any = promised > -INFINITY;
    if (any) k->gain += (k->begun && clock ? WG_COST_RATE : 1) * (promised / plain - 1 - k->gain);
    k->begun = true;
    k->pays = wg_cost_pays(k->pays, k->gain);
    const bool drafts = wg_cost_trial_step(&k->trial, k->pays, any && (clock || !k->pays) ? fabs(k->gain) : INFINITY);
    if (drafts && any) search(b, p, width, &(aim){ n, other, fmax(plain, promised), k->trial.on }, plain);
    const bool tries = drafts && clock && !k->trial.on;
    k->drafts += tries;
    for (int i = 0; i < n; i++) {
        const int most = b->group[i]->most < b->depth ? b->group[i]->most : b->depth, best = drafts && any ? b->best[i] : 0;
        b->group[i]->length = tries ? wg_cost_explore(k->drafts, best, most) : best;
    }
}

void wg_batch_lengths_plan(wg_batch_lengths *b, wg_batch_place *place, int n, int other)
{
    int together = 0;
    for (int i = 0; i < n; i++) {
        known *k = &b->slot[place[i].slot];
        if (!k->begun) *k = (known){ .trial = WG_COST_NO_TRIAL };
        if (!place[i].alone) k->begun = true;
        if (!place[i].alone) continue;
        b->group[0] = &place[i];
        decide(b, &b->slot[place[i].slot], &b->given, 1, 0, false);
        other += 1 + wg_cost_width(&b->slot[place[i].slot].survival, place[i].length);
    }
    for (int i = 0; i < n; i++)
        if (!place[i].alone) b->group[together++] = &place[i];
    if (together > 0) decide(b, &b->all, &b->now, together, other, b->timed);
}
