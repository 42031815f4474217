/* SPDX-License-Identifier: MIT
 * Bets on the token after the path. Hypothesis: it has the rule's law given that the path stopped there (`next` of the
 * decisions): a residual if drafts were rejected, p if the draft had ended.
 *
 * Shared random numbers. A draft drawn by a race is the token of the smallest E_x / q(x), E_x ~ Exp(1). Where the same times
 * serve the recovery from the residual r, the time of y is E_y / r(y), and given the draft E_y = q(y) m + E'_y with m ~ Exp(1),
 * E' fresh, by the memoryless property. With c_y = q(y) / r(y) and G(s) = sum_z r(z) (s - c_z)+ the recovery is y with
 * probability r(y) times the integral of ds / (1 + G(s))^2 over s > c_y. G is linear between the c, which are sorted. */
#include "lab/audit/bets.h"

#include <math.h>
#include <stdlib.h>

/* The quantities that the bets at one place share. */
typedef struct place {
    const wg_audit_round *r;
    const wg_decisions *d;
    const wg_step *s;
    int32_t x;
    int vocab;
    double error;
} place;

/* Bets that the next token has probability a; the path's part is the rule's. */
static void bet_next(wg_bets *b, wg_bet bet, const place *at, double a)
{
    const wg_step *s = at->s;
    if (!(a >= 0)) return;
    wg_bet_on(b, bet, wg_step_probability(s, s->child, s->stop, a),
              wg_step_probability(s, s->child, s->stop, at->d->next[at->x]), at->error);
}

typedef struct late {
    double at, rate; /* c_y, r(y) */
} late;

static int by_time(const void *a, const void *b)
{
    const double x = ((const late *)a)->at, y = ((const late *)b)->at;
    return (x > y) - (x < y);
}

/* The law of the race of the header at x; `other`: room for 2 vocab doubles. */
static double race_law(const double *rest, const double *q, int vocab, int32_t x, double *other)
{
    late *l = (late *)(void *)other;
    int n = 0;
    double g = 0, rate = 0, sum = 0;
    for (int y = 0; y < vocab; y++)
        if (rest[y] > 0) l[n++] = (late){ q[y] / rest[y], rest[y] };
    if (!(rest[x] > 0)) return 0;
    qsort(l, (size_t)n, sizeof *l, by_time);
    for (int i = 0; i < n; i++) { /* from l[i].at to the next */
        rate += l[i].rate;
        const double begin = 1 + g, end = i + 1 < n ? begin + rate * (l[i + 1].at - l[i].at) : INFINITY;
        if (l[i].at >= q[x] / rest[x] && end > begin) sum += (1 / begin - 1 / end) / rate;
        g = end - 1;
    }
    return rest[x] * sum;
}

/* The share of [low, high) in which the inverse of the cumulative law is x. */
static double inverse_law(const double *law, int32_t x, double low, double high)
{
    double below = 0;
    for (int32_t y = 0; y < x; y++) below += law[y];
    const double from = below > low ? below : low, to = below + law[x] < high ? below + law[x] : high;
    return to > from ? (to - from) / (high - low) : 0;
}

static double without_drafted(const place *at, const double *p)
{
    const wg_tree *t = &at->r->tree;
    const int node = at->s->node;
    double left = 1;
    for (int i = wg_tree_child(t, node, node); i >= 0; i = wg_tree_child(t, node, i)) {
        if (t->token[i] == at->x) return 0;
        left -= wg_tree_find(t, node, t->token[i]) == i ? p[t->token[i]] : 0;
    }
    return left > 1e-6 ? p[at->x] / left : NAN;
}

/* Bets that recovery after the rejection of a single drawn child reuses the numbers that drew or tested it. */
static void bet_noise(wg_bets *b, const place *at, int child, const double *p, const double *q)
{
    const int32_t x = at->r->tree.token[child];
    const double *rest = at->d->next;
    double below = 0;
    if (!(q[x] > 0)) return;
    for (int32_t y = 0; y < x; y++) below += q[y];
    bet_next(b, WG_BET_NOISE_RACE, at, race_law(rest, q, at->vocab, at->x, b->other));
    bet_next(b, WG_BET_NOISE_DRAFT, at, inverse_law(rest, at->x, below, below + q[x]));
    if (p[x] < q[x]) bet_next(b, WG_BET_NOISE_TEST, at, inverse_law(rest, at->x, p[x] / q[x], 1));
}

/* Token x under (p - 2q)+, normalised, and under the residual (p - q)+, normalised, less q once more; NaN: there is no mass. */
static void doubled_laws(const double *p, const double *q, int vocab, int32_t x, double *twice, double *again)
{
    double two = 0, one = 0, rest = 0;
    for (int y = 0; y < vocab; y++) {
        two += p[y] > 2 * q[y] ? p[y] - 2 * q[y] : 0;
        one += p[y] > q[y] ? p[y] - q[y] : 0;
    }
    for (int y = 0; y < vocab && one > 0; y++) rest += fmax((p[y] - q[y]) / one - q[y], 0);
    *twice = two > 1e-9 ? fmax(p[x] - 2 * q[x], 0) / two : NAN;
    *again = one > 0 && rest > 1e-9 ? fmax((p[x] - q[x]) / one - q[x], 0) / rest : NAN;
}

static void bet_rejected(wg_bets *b, const place *at, int first)
{
    const wg_tree *t = &at->r->tree;
    const double *p = wg_rows_at(at->r->p, at->s->node);
    bet_next(b, WG_BET_REST_TARGET, at, p[at->x]);
    bet_next(b, WG_BET_REST_WITHOUT, at, without_drafted(at, p));
    bet_next(b, WG_BET_REST_BEST, at, at->x == wg_rows_argmax(at->r->p, at->s->node));
    if (at->r->q && t->qrow[first] >= 0) {
        const double *q = wg_rows_at(at->r->q, t->qrow[first]);
        bet_next(b, WG_BET_REST_DRAFT, at, q[at->x]);
        bet_next(b, WG_BET_REST_REVERSED, at, wg_excess_law(q, p, at->vocab, at->x));
        double twice, again;
        doubled_laws(p, q, at->vocab, at->x, &twice, &again);
        bet_next(b, WG_BET_REST_DOUBLE, at, twice);
        bet_next(b, WG_BET_REST_AGAIN, at, again);
        if (wg_tree_child(t, at->s->node, first) < 0 && t->law == WG_LAW_IID) bet_noise(b, at, first, p, q);
    }
    if (at->s->merged < 0) wg_bet_rank(b, WG_BET_REST_RANK, at->d->next, at->vocab, at->x, at->error);
}

/* p with a third of its mass moved evenly to the tokens that it excludes; NaN where there are none. */
static double outside_law(const place *at, const double *p)
{
    const double part = 1.0 / 3;
    int n = 0;
    for (int y = 0; y < at->vocab; y++) n += !(p[y] > 0);
    if (n == 0) return NAN;
    return p[at->x] > 0 ? (1 - part) * p[at->x] : part / n;
}

static void bet_bonus(wg_bets *b, const place *at)
{
    const wg_tree *t = &at->r->tree;
    const int node = at->s->node;
    const double *p = wg_rows_at(at->r->p, node);
    bet_next(b, WG_BET_SUPPORT_BONUS, at, outside_law(at, p));
    bet_next(b, WG_BET_BONUS_BEST, at, at->x == wg_rows_argmax(at->r->p, node));
    if (at->r->bonus_row >= 0) bet_next(b, WG_BET_BONUS_DRAFT, at, wg_rows_at(at->r->q, at->r->bonus_row)[at->x]);
    if (node > 0) bet_next(b, WG_BET_BONUS_BEFORE, at, wg_rows_at(at->r->p, t->parent[node])[at->x]);
    if (node > 0 && at->r->q && t->qrow[node] >= 0) {
        const double *q = wg_rows_at(at->r->q, t->qrow[node]);
        bet_next(b, WG_BET_BONUS_LAST, at, q[at->x]);
        bet_next(b, WG_BET_BONUS_REST, at, wg_excess_law(p, q, at->vocab, at->x));
    }
    wg_bet_rank(b, WG_BET_BONUS_RANK, at->d->next, at->vocab, at->x, at->error);
}

void wg_bets_next(wg_bets *b, const wg_audit_round *r, const wg_decisions *d, bool looks_ahead)
{
    const wg_step *s = &d->step[d->n - 1];
    const place at = {
        .r = r, .d = d, .s = s, .x = r->path.next, .vocab = r->p->vocab, .error = wg_step_error(r, s->node, looks_ahead)
    };
    const int first = wg_tree_child(&r->tree, s->node, s->node);
    if (s->to >= 0 || !(s->stop > 0)) return; /* a stop is impossible here, which concerns acceptance */
    if (first >= 0) bet_rejected(b, &at, first);
    else bet_bonus(b, &at);
}
