/* SPDX-License-Identifier: MIT
 * Selecting one of k independent draws, on the device: verify/selection.h says what and why, selection.c has these words.
 * The block sorts bets. The masses of q and of r p up to a rank are whole numbers: a thread adds up a segment of ranks, goes on
 * from the segments before it, and what the host looks for from one end is the best or the first of all threads'. The scores,
 * block upon block, are one thread's. Private to kernels/cuda. */
#ifndef WG_KERNELS_CUDA_SELECTION_RULES_H
#define WG_KERNELS_CUDA_SELECTION_RULES_H

#include "kernels/cuda/rule_block.h"

/* Tokens that q can draw, by ratio ascending, ties by token. */
WG_DEVICE bool wg_is_behind(const wg_bet a, const wg_bet b)
{
    return a.ratio > b.ratio || (a.ratio == b.ratio && a.token > b.token);
}

struct selection {
    const court *c;
    dist p, q;
    const wg_bet *bet; /* (n) */
    int n, k, worst;
    double want, floor, cap;
};

WG_DEVICE double power(double x, int k)
{
    double v = 1;
    for (int i = 0; i < k; i++) v *= x;
    return v;
}

WG_DEVICE double mass_of(const selection *s, int i) { return s->q[s->bet[i].token]; }
WG_DEVICE double wanted_of(const selection *s, int i) { return mass_of(s, i) * s->want * s->bet[i].ratio; }
WG_DEVICE double share_of(wg_mass m) { return m < WG_MASS_ONE ? wg_mass_value(m) : 1; }

WG_DEVICE double phi(const selection *s, int i)
{
    const double rho = s->want * s->bet[i].ratio;
    if (i < s->worst) return rho > s->floor ? rho : s->floor;
    return rho < s->cap ? rho : s->cap;
}

/* ---- bets */

WG_DEVICE double ratio_of(double p, double q) { return p > 0 ? p / q : 0; }

WG_DEVICE int order_bets(const court *c, dist p, dist q)
{
    int32_t *n = &c->s->pick.n;
    __syncthreads();
    if (threadIdx.x == 0) *n = 0;
    __syncthreads();
    for (int x = (int)threadIdx.x; x < c->vocab; x += WG_BLOCK)
        if (q[x] > 0) c->bet[atomicAdd(n, 1)] = wg_bet{ ratio_of(p[x], q[x]), x };
    __syncthreads();
    const int bets = *n;
    wg_block_sort(c->bet, bets, wg_bet{ INFINITY, INT32_MAX });
    return bets;
}

/* ---- running masses: a segment of ranks a thread */

struct ranks {
    int from, to;      /* this thread's */
    wg_mass q, p;      /* of the ranks before them */
    wg_mass q_all, p_all;
};

WG_DEVICE ranks masses_before(const selection *s)
{
    selection_room *room = &s->c->s->pick;
    const int t = (int)threadIdx.x, each = (s->n + WG_BLOCK - 1) / WG_BLOCK;
    ranks r = { t * each < s->n ? t * each : s->n, (t + 1) * each < s->n ? (t + 1) * each : s->n, 0, 0, 0, 0 };
    wg_mass q = 0, p = 0;
    for (int i = r.from; i < r.to; i++) {
        q += wg_steps_of(mass_of(s, i));
        p += wg_steps_of(wanted_of(s, i));
    }
    __syncthreads();
    room->q[t] = q;
    room->p[t] = p;
    __syncthreads();
    for (int i = 0; i < WG_BLOCK; i++) {
        if (i == t) r.q = r.q_all, r.p = r.p_all;
        r.q_all += room->q[i];
        r.p_all += room->p[i];
    }
    return r;
}

/* ---- 1. what to select */

/* The level that the worst ones are raised to when those up to rank i are, whose masses these are. */
WG_DEVICE double raised(double low, wg_mass p_worst, wg_mass q, wg_mass p)
{
    return (low - wg_mass_value(p_worst - p)) / wg_mass_value(q);
}

WG_DEVICE void choose_law(selection *s)
{
    wg_block *b = s->c->b;
    selection_room *room = &s->c->s->pick;
    const ranks r = masses_before(s);
    double most = 0;
    int mine = -1;
    wg_mass q = r.q, p = r.p, q_most = 0, p_most = 0;
    for (int i = r.from; i < r.to; i++) {
        q += wg_steps_of(mass_of(s, i));
        p += wg_steps_of(wanted_of(s, i));
        const double excess = power(share_of(q), s->k) - wg_mass_value(p);
        if (excess > most) most = excess, mine = i, q_most = q, p_most = p;
    }
    const int last = wg_block_best(b, most, mine);
    if (threadIdx.x == 0) room->q_worst = room->p_worst = 0;
    __syncthreads();
    if (last >= 0 && mine == last) room->q_worst = q_most, room->p_worst = p_most;
    __syncthreads();
    s->worst = last + 1;
    const wg_mass p_worst = room->p_worst;
    const double low = power(share_of(room->q_worst), s->k), high = 1 - low;
    int raise = -1, cut = -1;
    double floor = 0, cap = 0;
    q = r.q, p = r.p;
    for (int i = r.from; i < r.to; i++) {
        const wg_mass q_before = q, p_before = p;
        q += wg_steps_of(mass_of(s, i));
        p += wg_steps_of(wanted_of(s, i));
        if (i < s->worst && raise < 0) { /* the first: the level is below the next */
            const double level = q ? raised(low, p_worst, q, p) : 0;
            if (i + 1 == s->worst || (q && level <= s->want * s->bet[i + 1].ratio)) raise = i, floor = level;
        }
        if (i >= s->worst) { /* the last: the level is above the next */
            const wg_mass cuts = r.q_all - q_before;
            const double level = cuts ? (high - wg_mass_value(p_before - p_worst)) / wg_mass_value(cuts) : 0;
            if (i == s->worst || (cuts && level >= s->want * s->bet[i - 1].ratio)) cut = i, cap = level;
        }
    }
    const int first = wg_block_best(b, -(double)raise, raise), end = wg_block_best(b, (double)cut, cut);
    if (threadIdx.x == 0) {
        room->floor = 0;
        room->cap = INFINITY;
    }
    __syncthreads();
    if (first >= 0 && raise == first) room->floor = floor;
    if (end >= 0 && cut == end) room->cap = cap;
    __syncthreads();
    s->floor = room->floor;
    s->cap = room->cap;
}

/* ---- 2. how to select it: scores in blocks; one thread's */

struct score_block { double low, high; };

struct curtain {
    int k, n;
    score_block *taken;
};

WG_DEVICE double begin_of(int k, double m, double w, double from)
{
    double lo = from, hi = 1 - m > from ? 1 - m : from, x = k == 2 ? (w / m - m) / 2 : (lo + hi) / 2;
    for (int i = 0; i < 60 && k > 2; i++) {
        const double f = power(x + m, k) - power(x, k) - w, slope = k * (power(x + m, k - 1) - power(x, k - 1));
        if (f > 0) hi = x;
        else lo = x;
        const double step = slope > 0 ? x - f / slope : lo;
        const double next = step > lo && step < hi ? step : (lo + hi) / 2;
        if (next == x) break;
        x = next;
    }
    return x < lo ? lo : x > hi ? hi : x;
}

WG_DEVICE double reach_of(int k, double at, double gap, double top, double m, double w)
{
    double lo = 0, hi = gap < m ? gap : m, d = k == 2 ? (power(top + m, 2) - power(top, 2) - w) / (2 * (top + m - at)) : hi / 2;
    for (int i = 0; i < 60 && k > 2; i++) {
        const double f = power(at, k) - power(at - d, k) + power(top + m - d, k) - power(top, k) - w;
        const double slope = k * (power(at - d, k - 1) - power(top + m - d, k - 1));
        if (f > 0) lo = d;
        else hi = d;
        const double step = slope < 0 ? d - f / slope : lo;
        const double next = step > lo && step < hi ? step : (lo + hi) / 2;
        if (next == d) break;
        d = next;
    }
    return d < lo ? lo : d > hi ? hi : d;
}

WG_DEVICE double take_scores(curtain *c, double m, double w, double place, double *own)
{
    const double all = m, top = c->n ? c->taken[c->n - 1].high : 0;
    if (power(top + m, c->k) - power(top, c->k) <= w || c->n == 0) {
        const double low = begin_of(c->k, m, w, top);
        c->taken[c->n++] = score_block{ low, low + m };
        *own = low + m / 2;
        return 1;
    }
    double above = 0;
    for (;; c->n--) {
        const double at = c->taken[c->n - 1].low, gap = at - (c->n > 1 ? c->taken[c->n - 2].high : 0);
        const double whole = power(at, c->k) - power(at - gap, c->k);
        const bool in_part = gap >= m || whole + power(top + m - gap, c->k) - power(top, c->k) <= w;
        if (in_part || c->n == 1) {
            const double d = reach_of(c->k, at, gap, top, m, w);
            c->taken[c->n - 1] = score_block{ at - d, top + m - d };
            *own = (at - d + top + m - d) / 2;
            return (above + (at > place ? d : 0) + (m - d)) / all;
        }
        if (at > place) above += gap;
        m -= gap;
        w -= whole;
    }
}

WG_DEVICE int rank_of(const selection *s, double ratio, int token)
{
    int lo = 0, hi = s->n - 1;
    while (lo < hi) {
        const int mid = (lo + hi) / 2;
        if (wg_is_behind(wg_bet{ ratio, token }, s->bet[mid])) lo = mid + 1;
        else hi = mid;
    }
    return lo <= hi && s->bet[lo].token == token ? lo : -1;
}

WG_DEVICE void add_drawn(selection_room *r, int node, int rank)
{
    int i = 0;
    while (i < r->n && r->rank[i] < rank) i++;
    if (i < r->n && r->rank[i] == rank) {
        r->times[i]++;
        return;
    }
    for (int j = r->n++; j > i; j--) {
        r->node[j] = r->node[j - 1];
        r->rank[j] = r->rank[j - 1];
        r->times[j] = r->times[j - 1];
    }
    r->node[i] = node;
    r->rank[i] = rank;
    r->times[i] = 1;
}

WG_DEVICE void compare_scores(const selection *s, selection_room *r)
{
    curtain scores = { s->k, 0, (score_block *)s->c->taken };
    double highest = -1;
    int j = 0;
    for (int i = 0; j < r->n; i++) {
        const double m = mass_of(s, i);
        double own;
        const double share = take_scores(&scores, m, m * phi(s, i), highest, &own);
        if (r->rank[j] != i) continue;
        r->beats[j++] = share;
        if (own > highest) highest = own;
    }
}

/* ---- the door */

WG_DEVICE selection open_selection(const court *c, dist p, dist q, int k, double want)
{
    selection s = { c, p, q, c->bet, order_bets(c, p, q), k, 0, want, 0, 0 };
    choose_law(&s);
    return s;
}

WG_DEVICE double law_of(const selection *s, int rank) { return mass_of(s, rank) * phi(s, rank); }

/* The distinct tokens among the draws of nodes list[0..k) in the room, ranks ascending, with their chances. */
WG_DEVICE void select_among(const selection *s)
{
    selection_room *r = &s->c->s->pick;
    const wg_rule_tree *t = s->c->t;
    if (threadIdx.x == 0) {
        double left = 1;
        r->n = 0;
        for (int i = 0; i < s->k; i++) {
            const int x = t->token[r->list[i]];
            const int rank = rank_of(s, ratio_of(s->p[x], s->q[x]), x);
            if (rank >= 0) add_drawn(r, r->list[i], rank);
        }
        for (int i = 0; i < r->n; i++) r->beats[i] = 1;
        if (r->n > 1) compare_scores(s, r);
        for (int i = r->n - 1; i >= 0; i--) {
            const double beaten = i > 0 ? power(1 - r->beats[i], r->times[i]) : 0;
            r->chance[i] = left * (1 - beaten);
            left *= beaten;
        }
    }
    __syncthreads();
}

/* (r p - s)+ into c->rest; its mass. */
WG_DEVICE double excess_over_law(const selection *s)
{
    const court *c = s->c;
    __syncthreads();
    for (int x = (int)threadIdx.x; x < c->vocab; x += WG_BLOCK) c->rest[x] = s->want * s->p[x];
    __syncthreads();
    for (int i = (int)threadIdx.x; i < s->n; i += WG_BLOCK) {
        const double d = mass_of(s, i) * (s->want * s->bet[i].ratio - phi(s, i));
        c->rest[s->bet[i].token] = d > 0 ? d : 0;
    }
    __syncthreads();
    return sum_rest(c);
}

/* ---- one level: verify/optimal.c */

WG_DEVICE int settle_one(const court *c, int node, int child, int depth, int *next)
{
    const dist p = row_p(c, node), q = row_q(c, child);
    const int x = c->t->token[child];
    double *weight = c->s->weight;
    const double px = p[x], qx = q[x], kept = !(qx > 0) ? 0 : px < qx ? px / qx : 1;
    __syncthreads();
    if (threadIdx.x == 0) {
        weight[0] = kept;
        weight[1] = 1 - kept;
    }
    __syncthreads();
    if (wg_block_pick(c->b, weight, 2, uniform(c->t, WG_DRAW_ACCEPT, node, 0)) == 0 && kept > 0) return child;
    subtract(c, p.of, q, NULL, -1, 1);
    *next = pick_rest(c, sum_rest(c), node, depth);
    return -1;
}

WG_DEVICE int settle_optimal(const court *c, int node, int depth, int *next)
{
    const wg_rule_tree *t = c->t;
    selection_room *r = &c->s->pick;
    double *weight = c->s->weight;
    if (t->law == WG_RULE_FIXED) return settle_set(c, node, depth, next);
    const dist p = row_p(c, node);
    if (p.point >= 0) {
        *next = p.point;
        return find_child(t, node, *next);
    }
    const int first = child_after(t, node, node);
    int k = 0;
    __syncthreads();
    for (int i = node; (i = child_after(t, node, i)) >= 0; k++)
        if (threadIdx.x == 0) r->list[k] = i;
    if (k == 1) return settle_one(c, node, first, depth, next);
    const selection s = open_selection(c, p, row_q(c, first), k, 1);
    select_among(&s);
    if (threadIdx.x == 0) {
        double rejected = 1;
        for (int i = 0; i < r->n; i++) {
            const double px = p[t->token[r->node[i]]], law = law_of(&s, r->rank[i]);
            weight[i] = px < law ? r->chance[i] * (px / law) : r->chance[i];
            rejected -= weight[i];
        }
        weight[r->n] = rejected > 0 ? rejected : 0;
    }
    __syncthreads();
    const int kept = wg_block_pick(c->b, weight, r->n + 1, uniform(t, WG_DRAW_ACCEPT, node, 0));
    if (kept < r->n && weight[kept] > 0) return r->node[kept];
    *next = pick_rest(c, excess_over_law(&s), node, depth);
    return -1;
}

#endif
