/* SPDX-License-Identifier: MIT
 * Bets on acceptance. Hypothesis: at a node of the path, the path goes on with the rule's probability 1 - stop. Alternatives:
 * it goes on with another probability, to the children in the rule's proportions. */
#include "lab/audit/bets.h"

#include <math.h>

/* A node of the path with children, and the quantities compared there. */
typedef struct place {
    const wg_audit_round *r;
    const wg_decisions *d;
    const wg_step *s;
    int children, only; /* only: the single child; -1: there are several */
    double error;
} place;

static double next_of(const place *at) { return at->s->to < 0 ? at->d->next[at->r->path.next] : 0; }

/* The probability of the outcome if the path goes on with probability a. */
static double outcome(const place *at, double a)
{
    const double was = 1 - at->s->stop, child = was > 0 ? at->s->child * a / was : a / at->children;
    return wg_step_probability(at->s, child, 1 - a, next_of(at));
}

static void bet_on_rate(wg_bets *b, wg_bet bet, const place *at, double a)
{
    const double n = wg_step_probability(at->s, at->s->child, at->s->stop, next_of(at));
    wg_bet_on(b, bet, outcome(at, a < 0 ? 0 : a > 1 ? 1 : a), n, at->error);
}

/* The mass of p on the drafted tokens, each once. */
static double drafted_mass(const place *at, const double *p, bool *best)
{
    const wg_tree *t = &at->r->tree;
    const int node = at->s->node;
    const int32_t top = wg_rows_argmax(at->r->p, node);
    double sum = 0;
    *best = false;
    for (int i = wg_tree_child(t, node, node); i >= 0; i = wg_tree_child(t, node, i)) {
        if (wg_tree_find(t, node, t->token[i]) != i) continue;
        sum += p[t->token[i]];
        *best |= t->token[i] == top;
    }
    return sum < 1 ? sum : 1;
}

/* Bets on the learned acceptance in ten bins of the rule's probability. */
static void bet_on_bins(wg_bets *b, const place *at, double a)
{
    enum { PRIOR = 4 };
    if (!(a > 0 && a < 1)) return;
    const int i = (int)(a * WG_BET_BINS) < WG_BET_BINS ? (int)(a * WG_BET_BINS) : WG_BET_BINS - 1;
    wg_bet_bins *k = &b->kept;
    const double moved = a + (k->hits[i] - k->expected[i]) / (k->n[i] + PRIOR), low = a * 0.05, high = 1 - (1 - a) * 0.05;
    bet_on_rate(b, WG_BET_KEEP_BINS, at, moved < low ? low : moved > high ? high : moved);
    k->n[i]++;
    k->hits[i] += at->s->to >= 0;
    k->expected[i] += a;
}

/* The test of a single drawn child by the uniform that drew it, u in [below, below + q(x)): accepts where u q < p. */
static double test_by_draw(const double *q, int32_t x, double px)
{
    double below = 0;
    for (int32_t y = 0; y < x; y++) below += q[y];
    const double part = (px / q[x] - below) / q[x];
    return part < 0 ? 0 : part > 1 ? 1 : part;
}

static void bet_at(wg_bets *b, const place *at)
{
    const wg_tree *t = &at->r->tree;
    const double a = 1 - at->s->stop, *p = wg_rows_at(at->r->p, at->s->node);
    bool best;
    const double mass = drafted_mass(at, p, &best);
    bet_on_rate(b, WG_BET_KEEP_ALL, at, 1);
    bet_on_rate(b, WG_BET_KEEP_MORE, at, 1.25 * a);
    bet_on_rate(b, WG_BET_KEEP_DOUBLE, at, 2 * a);
    bet_on_rate(b, WG_BET_KEEP_FEWER, at, 0.8 * a);
    bet_on_rate(b, WG_BET_KEEP_HALF, at, 0.5 * a);
    bet_on_rate(b, WG_BET_KEEP_BEST, at, best);
    bet_on_rate(b, WG_BET_KEEP_TARGET, at, mass);
    if (at->only >= 0 && t->law != WG_LAW_FIXED && t->qrow[at->only] >= 0) {
        const int32_t x = t->token[at->only];
        const double *q = wg_rows_at(at->r->q, t->qrow[at->only]);
        if (q[x] > 0) {
            bet_on_rate(b, WG_BET_KEEP_INVERSE, at, p[x] > 0 ? q[x] / p[x] : 1);
            bet_on_rate(b, WG_BET_NOISE_ACCEPT, at, test_by_draw(q, x, p[x]));
        }
    }
    bet_on_bins(b, at, a);
}

void wg_bets_acceptance(wg_bets *b, const wg_audit_round *r, const wg_decisions *d, bool looks_ahead)
{
    for (int k = 0; k < d->n; k++) {
        place at = { .r = r, .d = d, .s = &d->step[k], .only = -1 };
        const int node = at.s->node;
        for (int i = wg_tree_child(&r->tree, node, node); i >= 0; i = wg_tree_child(&r->tree, node, i)) {
            at.only = at.children ? -1 : i;
            at.children++;
        }
        at.error = wg_step_error(r, node, looks_ahead);
        if (at.children) bet_at(b, &at);
    }
}
