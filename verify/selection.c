/* SPDX-License-Identifier: MIT
 * Optimal selection among independent draws (selection.h). */
#include "verify/selection.h"

#include <math.h>
#include <stddef.h>

#include "kernels/mass.h"

static double power(double x, int k)
{
    double v = 1;
    for (int i = 0; i < k; i++) v *= x;
    return v;
}

static double mass_of(const wg_selection *s, int i) { return wg_rows_prob(s->q, s->qrow, s->bet[i].token); }

static double wanted(const wg_selection *s, int i) { return mass_of(s, i) * s->want * s->bet[i].ratio; }

/* What a mass of q is of all. */
static double share_of(wg_mass m) { return m < WG_MASS_ONE ? wg_mass_value(m) : 1; }

static double phi(const wg_selection *s, int i)
{
    const double rho = s->want * s->bet[i].ratio;
    if (i < s->worst) return rho > s->floor ? rho : s->floor;
    return rho < s->cap ? rho : s->cap;
}

/* ---- 1. what to select */

/* The masses of q and of r p up to each rank are whole numbers, so that only they, not the way to them, are in what follows. */
static void choose_law(wg_selection *s)
{
    wg_mass qs = 0, ps = 0, q_worst = 0, p_worst = 0;
    double most = 0;
    s->worst = 0;
    for (int i = 0; i < s->n; i++) {
        qs += wg_steps_of(mass_of(s, i));
        ps += wg_steps_of(wanted(s, i));
        const double excess = power(share_of(qs), s->k) - wg_mass_value(ps);
        if (excess > most) {
            most = excess;
            s->worst = i + 1;
            q_worst = qs;
            p_worst = ps;
        }
    }
    const wg_mass q_all = qs, p_all = ps;
    const double low = power(share_of(q_worst), s->k), high = 1 - low;
    s->floor = 0;
    qs = ps = 0;
    for (int i = 0; i < s->worst; i++) { /* raise the first ones, until the level is below the next */
        qs += wg_steps_of(mass_of(s, i));
        ps += wg_steps_of(wanted(s, i));
        if (qs) s->floor = (low - wg_mass_value(p_worst - ps)) / wg_mass_value(qs);
        if (i + 1 < s->worst && qs && s->floor <= s->want * s->bet[i + 1].ratio) break;
    }
    s->cap = s->worst < s->n ? 0 : INFINITY;
    qs = q_all;
    ps = p_all;
    for (int i = s->n - 1; i >= s->worst; i--) { /* cut the last ones, until the level is above the next */
        qs -= wg_steps_of(mass_of(s, i));
        ps -= wg_steps_of(wanted(s, i));
        if (q_all > qs) s->cap = (high - wg_mass_value(ps - p_worst)) / wg_mass_value(q_all - qs);
        if (i > s->worst && q_all > qs && s->cap >= s->want * s->bet[i - 1].ratio) break;
    }
}

/* ---- 2. how to select it: scores in blocks */

typedef struct block { double low, high; } block;

typedef struct curtain {
    int k, n;
    block *taken; /* (n) disjoint, ascending; in scratch */
} curtain;

/* Where a piece of mass m must begin so that the integral of k z^(k-1) over it is w; at least `from`. */
static double begin_of(int k, double m, double w, double from)
{
    double lo = from, hi = 1 - m > from ? 1 - m : from, x = k == 2 ? (w / m - m) / 2 : (lo + hi) / 2;
    for (int i = 0; i < 60 && k > 2; i++) {
        const double f = power(x + m, k) - power(x, k) - w, slope = k * (power(x + m, k - 1) - power(x, k - 1));
        *(f > 0 ? &hi : &lo) = x;
        const double step = slope > 0 ? x - f / slope : lo;
        const double new = step > lo && step < hi ? step : (lo + hi) / 2;
        if (new == x) break;
        x = new;
    }
    return x < lo ? lo : x > hi ? hi : x;
}

/* How much of the gap below `at` (its length) to take, so that it and the mass m - d above `top` have the integral w. */
static double reach_of(int k, double at, double gap, double top, double m, double w)
{
    double lo = 0, hi = gap < m ? gap : m, d = k == 2 ? (power(top + m, 2) - power(top, 2) - w) / (2 * (top + m - at)) : hi / 2;
    for (int i = 0; i < 60 && k > 2; i++) {
        const double f = power(at, k) - power(at - d, k) + power(top + m - d, k) - power(top, k) - w;
        const double slope = k * (power(at - d, k - 1) - power(top + m - d, k - 1));
        *(f > 0 ? &lo : &hi) = d;
        const double step = slope < 0 ? d - f / slope : lo;
        const double new = step > lo && step < hi ? step : (lo + hi) / 2;
        if (new == d) break;
        d = new;
    }
    return d < lo ? lo : d > hi ? hi : d;
}

/* Takes the scores of the next token, of mass m and mean w / m: pieces of gaps and a piece above everything taken. Returns the
 * share of them above `place` (a point in some block), and in *own a point in the block they are now in. */
static double take(curtain *c, double m, double w, double place, double *own)
{
    const double all = m, top = c->n ? c->taken[c->n - 1].high : 0;
    if (power(top + m, c->k) - power(top, c->k) <= w || c->n == 0) {
        const double low = begin_of(c->k, m, w, top);
        c->taken[c->n++] = (block){ low, low + m };
        *own = low + m / 2;
        return 1;
    }
    double above = 0;
    for (;; c->n--) { /* the gap below the last block: wholly, and then it is one block with the one before; or in part */
        const double at = c->taken[c->n - 1].low, gap = at - (c->n > 1 ? c->taken[c->n - 2].high : 0);
        const double whole = power(at, c->k) - power(at - gap, c->k);
        const bool in_part = gap >= m || whole + power(top + m - gap, c->k) - power(top, c->k) <= w;
        if (in_part || c->n == 1) {
            const double d = reach_of(c->k, at, gap, top, m, w);
            c->taken[c->n - 1] = (block){ at - d, top + m - d };
            *own = (at - d + top + m - d) / 2;
            return (above + (at > place ? d : 0) + (m - d)) / all;
        }
        if (at > place) above += gap;
        m -= gap;
        w -= whole;
    }
}

static int rank_of(const wg_selection *s, double ratio, int32_t token)
{
    int lo = 0, hi = s->n - 1;
    while (lo < hi) {
        const int mid = (lo + hi) / 2;
        if (s->bet[mid].ratio < ratio || (s->bet[mid].ratio == ratio && s->bet[mid].token < token)) lo = mid + 1;
        else hi = mid;
    }
    return lo <= hi && s->bet[lo].token == token ? lo : -1;
}

/* Adds the token of a node to drawn[0..n); returns the new n. */
static int add(wg_drawn *drawn, int n, int node, int rank)
{
    int i = 0;
    while (i < n && drawn[i].rank < rank) i++;
    if (i < n && drawn[i].rank == rank) {
        drawn[i].times++;
        return n;
    }
    for (int j = n; j > i; j--) drawn[j] = drawn[j - 1];
    drawn[i] = (wg_drawn){ .node = node, .rank = rank, .times = 1, .beats = 1 };
    return n + 1;
}

static void compare_scores(const wg_selection *s, const wg_rows *p, wg_drawn *drawn, int n)
{
    curtain scores = { .k = s->k, .taken = (block *)(void *)(p->scratch + 4 * (size_t)p->vocab) };
    double highest = -1; /* place of the highest block that holds a token of drawn[0..j) */
    int j = 0;
    for (int i = 0; j < n; i++) {
        const double m = mass_of(s, i);
        double own;
        const double share = take(&scores, m, m * phi(s, i), highest, &own);
        if (drawn[j].rank != i) continue;
        drawn[j++].beats = share;
        if (own > highest) highest = own;
    }
}

/* ---- the door */

void wg_selection_open(wg_selection *s, const wg_rows *p, int prow, const wg_rows *q, int qrow, int k, double r)
{
    *s = (wg_selection){ .q = q, .qrow = qrow, .k = k, .want = r };
    s->n = wg_bets_order(p, prow, q, qrow, &s->bet);
    choose_law(s);
}

int wg_selection_among(const wg_selection *s, const wg_tree *t, const int16_t *node, const wg_rows *p, int prow,
                       wg_drawn drawn[WG_TREE_MAX])
{
    int n = 0;
    double left = 1;
    for (int i = 0; i < s->k; i++) {
        const int32_t x = t->token[node[i]];
        const double px = wg_rows_prob(p, prow, x);
        const int rank = rank_of(s, px > 0 ? px / wg_rows_prob(s->q, s->qrow, x) : 0, x);
        if (rank >= 0) n = add(drawn, n, node[i], rank);
    }
    if (n > 1) compare_scores(s, p, drawn, n);
    for (int i = n - 1; i >= 0; i--) { /* from the highest rank: who scores above all lower ones is selected */
        const double beaten = i > 0 ? power(1 - drawn[i].beats, drawn[i].times) : 0;
        drawn[i].chance = left * (1 - beaten);
        left *= beaten;
    }
    return n;
}

double wg_selection_law(const wg_selection *s, int rank) { return mass_of(s, rank) * phi(s, rank); }

double wg_selection_excess(const wg_selection *s, const wg_rows *p, int prow)
{
    const wg_support support = wg_rows_support(p, prow);
    double *out = p->scratch;
    const double *pv = wg_rows_dense(p, prow, out);
    for (int i = 0; i < support.n; i++) out[wg_support_at(&support, i)] = s->want * pv[wg_support_at(&support, i)];
    for (int i = 0; i < s->n; i++) {
        const double d = mass_of(s, i) * (s->want * s->bet[i].ratio - phi(s, i));
        out[s->bet[i].token] = d > 0 ? d : 0;
    }
    return wg_rows_sum(p, prow, out);
}
