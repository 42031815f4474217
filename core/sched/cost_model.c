/* SPDX-License-Identifier: MIT
 * See cost_model.h. */
#include "core/sched/cost_model.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/base/number.h"

enum { ROWS_MADE = 4 }; /* of p in a round of a sequence, at most: the engine leaves the others lazy (core/engine/engine.c) */

/* ---- prices */

/* Sizes of one row count each below 8, then each a quarter larger than the one before; the last has no end. */
static int size_of(int rows)
{
    int size = rows < 8 ? rows - 1 : 7, from = 8;
    for (; rows >= 8 && from + from / 4 <= rows && size + 1 < WG_COST_SIZES; size++) from += from / 4;
    return size;
}

/* A size that was never timed is off its table as the nearest smaller one that was. */
static double factor_of(const wg_cost_prices *p, int rows)
{
    for (int size = size_of(rows); size >= 0; size--)
        if (p->seen[size] > 0) return p->factor[size];
    return 1;
}

double wg_cost_of_pass(const wg_cost_prices *p, int rows)
{
    return (rows <= p->rows ? p->pass[rows] : p->pass[p->rows] * rows / p->rows) * factor_of(p, rows);
}

double wg_cost_each(const wg_cost_prices *p, int rows, int sequences)
{
    return wg_cost_of_pass(p, rows * sequences) / sequences + p->row * (rows < ROWS_MADE ? rows : ROWS_MADE);
}

double wg_cost_level(const wg_cost_prices *p, int member) { return p->level[member] > 0 ? p->level[member] + p->row : 0; }

static double news(double seen, double expected) { return fmax(-WG_COST_CLIP, fmin(WG_COST_CLIP, log(seen / expected))); }

void wg_cost_saw_pass(wg_cost_prices *p, int rows, double seconds)
{
    if (rows < 1 || !(seconds > 0)) return;
    const double price = wg_cost_of_pass(p, rows);
    const int size = size_of(rows);
    if (!(p->unit > 0)) p->unit = seconds / price;
    const double off = news(seconds, p->unit * price), rate = fmax(WG_COST_RATE, 1.0 / (p->seen[size] + 2));
    p->factor[size] = factor_of(p, rows) * exp(rate * off);
    p->seen[size] += p->seen[size] < 1000;
    p->unit *= exp(WG_COST_RATE * off);
}

void wg_cost_saw_draft(wg_cost_prices *p, int member, int levels, int tokens, int read, double seconds)
{
    double *level = &p->level[member];
    if (levels < 1 || !(p->unit > 0) || !(seconds > 0)) return;
    const double took = seconds / p->unit, price = levels * wg_cost_level(p, member) + tokens * p->token;
    if (!(price > 0)) {
        *level = took / levels;
    } else if (read >= WG_COST_EVERY && p->read[member] > 0) {
        if (took > price) p->read[member] *= exp(WG_COST_RATE * news(took - price, read * p->read[member]));
    } else {
        const double by = exp(WG_COST_RATE * news(took, price));
        *level *= by;
        p->token *= by;
    }
}

void wg_cost_saw_rest(wg_cost_prices *p, double seconds)
{
    if (p->unit > 0) p->rest += WG_COST_RATE * (fmax(0, fmin(seconds / p->unit, wg_cost_of_pass(p, 1))) - p->rest);
}

/* ---- survival */

int wg_cost_class(double score) { return score <= 0 ? 0 : score < 1.5 ? 1 : score < 3.5 ? 2 : 3; }

void wg_cost_learn(wg_cost_survival *s, int class, int tried, int kept, double keep)
{
    for (int d = 0; d < WG_COST_DEPTH; d++) {
        s->hit[class][d] = keep * s->hit[class][d] + (d < kept);
        s->trial[class][d] = keep * s->trial[class][d] + (d < tried);
    }
}

void wg_cost_learn_width(wg_cost_survival *s, int nodes, int levels, double keep)
{
    s->nodes = keep * s->nodes + nodes;
    s->levels = keep * s->levels + levels;
}

void wg_cost_carry(wg_cost_survival *s, const wg_cost_survival *from)
{
    *s = *from;
    for (int c = 0; c < WG_COST_SCORES; c++)
        for (int d = 0; d < WG_COST_DEPTH; d++) {
            const double part = fmin(1, WG_COST_RUN / fmax(1, s->trial[c][d]));
            s->hit[c][d] *= part;
            s->trial[c][d] *= part;
        }
}

double wg_cost_survive(const wg_cost_survival *s, int class, int depth, double above)
{
    return (s->hit[class][depth - 1] + WG_COST_PRIOR * above) / (s->trial[class][depth - 1] + WG_COST_PRIOR);
}

int wg_cost_width(const wg_cost_survival *s, int levels)
{
    return s->nodes > s->levels ? (int)ceil(levels * s->nodes / s->levels - 1e-9) : levels;
}

/* ---- decisions */

wg_cost_choice wg_cost_best(const wg_cost_prices *p, const wg_cost_survival *s, const wg_cost_offer *offer, int n,
                            int sequences, int left)
{
    const double memory = 1 / (1 - WG_COST_KEEP), span = fmax(1, fmin(left, memory));
    const double one = wg_cost_each(p, 1, sequences);
    wg_cost_choice best = { .member = -1, .tokens = 1, .cost = one, .gain = -INFINITY };
    for (int k = 0; k < n; k++) {
        double reach = 1, tokens = 1, survives = offer[k].prior;
        for (int d = 1; d <= offer[k].height; d++) {
            survives = wg_cost_survive(&s[k], offer[k].class, d, survives);
            tokens += reach *= survives;
            const double read = tokens * p->read[k] * offer[k].lag / span;
            const double cost = wg_cost_each(p, offer[k].rows[d], sequences) + d * wg_cost_level(p, k) + read;
            if (best.member >= 0 && tokens * best.cost <= best.tokens * cost * (1 + 1e-9)) continue;
            best = (wg_cost_choice){ .member = k, .depth = d, .tokens = tokens, .cost = cost, .gain = tokens / cost * one - 1 };
        }
    }
    return best;
}

/* Prices are no surer than WG_COST_SWITCH, so a trial counts at least as much. A quarter of the rounds is of trials at most. */
bool wg_cost_trial_step(wg_cost_trial *t, bool pays, double loss)
{
    const double cost = WG_COST_RUN * fmax(loss, WG_COST_SWITCH - 1);
    t->saved += WG_COST_SHARE;
    t->steps++;
    if (t->on && (t->steps > WG_COST_RUN || t->drafts == pays)) *t = (wg_cost_trial){ .on = false };
    else if (!t->on && t->steps > 3 * WG_COST_RUN && cost <= t->saved) *t = (wg_cost_trial){ true, !pays, 1, 0 };
    return t->on ? t->drafts : pays;
}

int wg_cost_explore(unsigned round, int best, int most)
{
    const int by = round / WG_COST_EVERY % 2 ? 1 : -1;
    return round % WG_COST_EVERY || best == 0 || best + by < 1 || best + by > most ? best : best + by;
}

wg_status wg_cost_open(wg_cost_prices *p, const char *given, const char *drafter, wg_profile *from, wg_lm *target,
                       wg_error *err)
{
    wg_prices passes;
    p->rows = WG_COST_ROWS;
    const int n = *given ? wg_number_list(given, "/", DBL_MIN, 1e12, p->pass + 1, p->rows) : 0;
    if (n < 0)
        return wg_fail(
            err, WG_ECONFIG,
            "drafter %s: costs=%s: expected positive numbers such as 1/1.02/1.1, for target passes over 1, 2, ... rows, "
            "at most %d",
            drafter, given, p->rows);
    if (!*given) WG_TRY(wg_profile_target(from, target, &passes, err));
    for (int r = n + 1; r <= p->rows; r++) p->pass[r] = *given ? p->pass[n] : wg_prices_of(&passes, r);
    for (int r = p->rows; r >= 1; r--) p->pass[r] /= p->pass[1];
    return WG_OK;
}

wg_status wg_cost_open_draft(wg_cost_prices *p, int member, wg_profile *from, wg_lm *draft, wg_lm *target, wg_error *err)
{
    wg_prices passes, of;
    WG_TRY(wg_profile_target(from, target, &passes, err));
    WG_TRY(wg_profile_draft(from, draft, target, &of, err));
    p->level[member] = wg_prices_of(&of, 1) / passes.seconds[0];
    p->read[member] = (wg_prices_of(&of, 4) - wg_prices_of(&of, 1)) / 3 / passes.seconds[0];
    return WG_OK;
}

/* ---- draft lengths of the sequences of a step */

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
    known all, *slot;          /* slot: (slots), behind this struct in its block */
    work *of;                  /* (slots), behind those */
};

wg_status wg_batch_lengths_open(wg_batch_lengths **out, int slots, int depth, const wg_cost_prices *prices, wg_error *err)
{
    const size_t bytes = sizeof **out + (size_t)slots * (sizeof(known) + sizeof(work));
    wg_batch_lengths *b = wg_calloc(1, bytes);
    if (!b) return wg_nomem(err, bytes, "the draft lengths of a scheduler");
    b->depth = depth < WG_COST_DEPTH ? depth : WG_COST_DEPTH;
    b->given = b->now = *prices;
    b->all.trial = WG_COST_NO_TRIAL;
    b->slot = (known *)(b + 1);
    b->of = (work *)(b->slot + slots);
    *out = b;
    return WG_OK;
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
    if (offered > 0 || !place->alone) wg_cost_learn(own, 0, tried, accepted, WG_COST_KEEP);
    if (offered == 0) return;
    wg_cost_learn(all, 0, tried, accepted, WG_COST_KEEP);
    wg_cost_learn_width(own, nodes, offered, WG_COST_KEEP);
    wg_cost_learn_width(all, nodes, offered, WG_COST_KEEP);
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
