/* SPDX-License-Identifier: MIT
 * Selecting one of k independent draws so that it serves a target best: what `optimal` does at a node, and `multipath` on
 * request at every level of a chain that it keeps.
 *
 * The target wants r p(x), 0 < r <= 1. Let rho = p/q, tokens in ascending order of rho, S* the prefix of that order that
 * maximises q(S)^k - r p(S).
 *
 * 1. What to select. A law s of the selected draw is possible if and only if s(A) >= q(A)^k for every set A (draws that are
 *    all in A leave no other choice; sufficient by Hall's theorem). Take s = q phi with phi = max(r rho, b) on S* and
 *    min(r rho, c) outside, b and c such that s(S*) = q(S*)^k and s is a law. It is possible, because phi ascends and on
 *    prefixes s >= q^k holds; and sum min(r p, s) = 1 - [q(S*)^k - r p(S*)], which is the most there is.
 * 2. How. Give each draw a score z in [0,1], drawn from H_x, and select the highest. If the H_x make scores of draws uniform,
 *    token x is selected with probability q(x) E_{H_x}[k z^{k-1}]; so the means must be phi(x). Such H_x exist (Strassen: this
 *    is a martingale coupling of phi and k Z^{k-1}); the left-curtain one (curtain.h) shows who wins without a score being
 *    drawn: the probabilities of selection are summed up.
 *
 * The masses of q and of r p up to a rank are whole numbers, so that only they, not the way to them, are in what follows: each
 * thread walks over a segment of ranks from the masses before it. */
#ifndef WG_KERNELS_RULE_SELECTION_H
#define WG_KERNELS_RULE_SELECTION_H

#include "kernels/rule/curtain.h"
#include "kernels/rule/rule_passes.h"

typedef struct wg_selection {
    const wg_ratio_test *order; /* (n) tokens that q can draw, by rho: b->order */
    wg_probs q;
    int n, k;
    double want;       /* r */
    int worst;         /* |S*| */
    double floor, cap; /* b and c */
} wg_selection;

/* Ranks from .. to-1, and the masses of q and of r p of the ranks before them. */
typedef struct wg_segment {
    int from, to;
    wg_mass mass[2], q_all; /* q_all: of q, of all ranks; one thread finds it on its way */
} wg_segment;

WG_RULE double wg_selection_mass(const wg_selection *s, int i) { return s->q[s->order[i].token]; }
WG_RULE double wg_selection_rho(const wg_selection *s, int i) { return s->want * s->order[i].ratio; }

/* The masses of a rank, added to (sign 1) or taken from (-1) running ones. */
WG_RULE void wg_selection_pass(const wg_selection *s, int i, wg_mass mass[2], int sign)
{
    const double q = wg_selection_mass(s, i);
    const wg_mass of_q = wg_steps_of(q), of_p = wg_steps_of(q * s->want * s->order[i].ratio);
    mass[0] += sign > 0 ? of_q : -of_q;
    mass[1] += sign > 0 ? of_p : -of_p;
}

/* The segment of this thread, with the masses before it. */
WG_RULE wg_segment wg_selection_segment(const wg_rule_block *b, const wg_selection *s)
{
    wg_segment g;
    wg_mass mine[2] = { 0, 0 };
    wg_part(b, s->n, &g.from, &g.to);
    for (int i = g.from; i < g.to && !WG_ONE_THREAD; i++) wg_selection_pass(s, i, mine, 1);
    wg_before(b, mine, g.mass, &g.q_all);
    return g;
}

/* ---- 1. what to select */

/* The level that the first ranks are raised to when those up to some rank are, whose masses these are: the first rank after
 * which the level is below the next. */
WG_RULE double wg_selection_floor(const wg_rule_block *b, const wg_selection *s, const wg_segment *g, wg_mass p_worst,
                                  double low)
{
    wg_mass m[2] = { g->mass[0], g->mass[1] };
    double level = 0;
    int raised = -1;
    for (int i = g->from; i < g->to && i < s->worst && raised < 0; i++) {
        wg_selection_pass(s, i, m, 1);
        if (m[0]) level = (low - wg_mass_value(p_worst - m[1])) / wg_mass_value(m[0]);
        if (i + 1 == s->worst || (m[0] && level <= wg_selection_rho(s, i + 1))) raised = i;
    }
    const int first = wg_best(b, -(double)raised, raised);
    return wg_number_from(b, raised >= 0 && raised == first, level, 0);
}

/* The level that the last ranks are cut to: from the last rank down to the first before which it is above the one before.
 * to: the masses up to the segment's end; q_all: of all. */
WG_RULE double wg_selection_cap(const wg_rule_block *b, const wg_selection *s, const wg_segment *g, const wg_mass to[2],
                                wg_mass q_all, wg_mass p_worst, double high)
{
    wg_mass m[2] = { to[0], to[1] };
    double level = 0;
    int cut = -1;
    for (int i = g->to - 1; i >= g->from && i >= s->worst && cut < 0; i--) {
        wg_selection_pass(s, i, m, -1);
        if (q_all > m[0]) level = (high - wg_mass_value(m[1] - p_worst)) / wg_mass_value(q_all - m[0]);
        if (i == s->worst || (q_all > m[0] && level >= wg_selection_rho(s, i - 1))) cut = i;
    }
    const int last = wg_best(b, (double)cut, cut);
    return wg_number_from(b, cut >= 0 && cut == last, level, INFINITY);
}

WG_RULE void wg_selection_choose(const wg_rule_block *b, wg_selection *s)
{
    const wg_segment g = wg_selection_segment(b, s);
    wg_mass to[2] = { g.mass[0], g.mass[1] }, of_worst[2] = { 0, 0 };
    double most = 0;
    int mine = -1;
    for (int i = g.from; i < g.to; i++) {
        wg_selection_pass(s, i, to, 1);
        const double excess = wg_power(wg_share_of(to[0]), s->k) - wg_mass_value(to[1]);
        if (!(excess > most)) continue;
        most = excess;
        mine = i;
        of_worst[0] = to[0];
        of_worst[1] = to[1];
    }
    const int last = wg_best(b, most, mine);
    s->worst = last + 1;
    wg_from(b, mine >= 0 && mine == last, of_worst);
    const double low = wg_power(wg_share_of(of_worst[0]), s->k);
    s->floor = wg_selection_floor(b, s, &g, of_worst[1], low);
    s->cap = wg_selection_cap(b, s, &g, to, WG_ONE_THREAD ? to[0] : g.q_all, of_worst[1], 1 - low);
}

/* The tokens in order for k draws from q when the target wants r p; nothing is selected yet. b->order stays in use. */
WG_RULE wg_selection wg_selection_begin(const wg_rule_block *b, wg_dist p, wg_dist q, int k, double r)
{
    wg_selection s;
    s.n = wg_order(b, p, q);
    s.order = b->order;
    s.q = wg_whole_q(b, q);
    s.k = k;
    s.want = r;
    s.worst = 0;
    s.floor = s.cap = 0;
    return s;
}

/* The law of the selected one of k draws from q when the target wants r p. b->order stays in use. */
WG_RULE wg_selection wg_selection_open(const wg_rule_block *b, wg_dist p, wg_dist q, int k, double r)
{
    wg_selection s = wg_selection_begin(b, p, q, k, r);
    wg_selection_choose(b, &s);
    return s;
}

WG_RULE double wg_selection_phi(const wg_selection *s, int i)
{
    const double rho = wg_selection_rho(s, i);
    if (i < s->worst) return rho > s->floor ? rho : s->floor;
    return rho < s->cap ? rho : s->cap;
}

/* s(x) of the token with this rank. */
WG_RULE double wg_selection_law(const wg_selection *s, int rank)
{
    return wg_selection_mass(s, rank) * wg_selection_phi(s, rank);
}

/* ---- 2. how to select it */

WG_RULE int wg_selection_rank(const wg_selection *s, double ratio, int32_t token)
{
    int lo = 0, hi = s->n - 1;
    while (lo < hi) {
        const int mid = (lo + hi) / 2;
        if (wg_ratio_after(ratio, token, s->order[mid].ratio, s->order[mid].token)) lo = mid + 1;
        else hi = mid;
    }
    return lo <= hi && s->order[lo].token == token ? lo : -1;
}

/* Adds the token of a node to drawn[0..n); returns the new n. */
WG_RULE int wg_selection_add(wg_drawn *drawn, int n, int node, int rank)
{
    int i = 0;
    while (i < n && drawn[i].rank < rank) i++;
    if (i < n && drawn[i].rank == rank) {
        drawn[i].times++;
        return n;
    }
    for (int j = n; j > i; j--) drawn[j] = drawn[j - 1];
    drawn[i].node = node;
    drawn[i].rank = rank;
    drawn[i].times = 1;
    drawn[i].beats = 1;
    return n + 1;
}

WG_RULE void wg_selection_compare(const wg_rule_block *b, const wg_selection *s, wg_drawn *drawn, int n)
{
    wg_curtain scores = { s->k, 0, b->taken };
    double highest = -1; /* place of the highest block that holds a token of drawn[0..j) */
    int j = 0;
    for (int i = 0; j < n; i++) {
        const double m = wg_selection_mass(s, i);
        double own;
        const double share = wg_curtain_take(&scores, m, m * wg_selection_phi(s, i), highest, &own);
        if (drawn[j].rank != i) continue;
        drawn[j++].beats = share;
        if (own > highest) highest = own;
    }
}

/* The distinct tokens among the draws that nodes state->draws[0..k) hold, ranks ascending, with their chances of being selected
 * (sum 1), to state->drawn. How many; 0 when q could have drawn none of them. */
WG_RULE int wg_selection_among(const wg_rule_block *b, const wg_selection *s, wg_dist p)
{
    wg_rule_state *state = b->state;
    if (WG_LEADER(b)) {
        int n = 0;
        double left = 1;
        for (int i = 0; i < s->k; i++) {
            const int32_t x = b->tree->token[state->draws[i]];
            const int rank = wg_selection_rank(s, wg_ratio_of(wg_prob(p, x), s->q[x]), x);
            if (rank >= 0) n = wg_selection_add(state->drawn, n, state->draws[i], rank);
        }
        if (n > 1) wg_selection_compare(b, s, state->drawn, n);
        for (int i = n - 1; i >= 0; i--) { /* from the highest rank: who scores above all lower ones is selected */
            wg_drawn *d = &state->drawn[i];
            const double beaten = i > 0 ? wg_power(1 - d->beats, d->times) : 0;
            d->chance = left * (1 - beaten);
            left *= beaten;
        }
        state->n_drawn = n;
    }
    WG_SYNC(b);
    return state->n_drawn;
}

/* (r p - s)+ into b->rest, where p may have mass; its mass. */
WG_RULE double wg_selection_left(const wg_rule_block *b, const wg_selection *s, wg_dist p)
{
    const wg_tokens t = wg_tokens_of(b, p);
    const wg_probs of = wg_whole_p(b, p);
    WG_SYNC(b);
    WG_FOR_TOKENS(t, x) b->rest[x] = s->want * of[x];
    WG_SYNC(b);
    WG_FOR_PART(s->n, i)
    {
        const double d = wg_selection_mass(s, i) * (wg_selection_rho(s, i) - wg_selection_phi(s, i));
        b->rest[s->order[i].token] = wg_positive(d);
    }
    WG_SYNC(b);
    return wg_sum(b, p, b->rest);
}

#endif
