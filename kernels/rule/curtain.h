/* SPDX-License-Identifier: MIT
 * The left-curtain coupling of a discrete law and k Z^(k-1), Z uniform (Beiglboeck and Juillet 2016): it realises the
 * selection of the best of k draws (selection.h). Tokens come in ascending order of their required mean; each takes, of the
 * rest of [0,1], the pieces with its mass and its mean. The taken pieces form blocks, and a token's own scores lie above or
 * below whole blocks, so the winner of several draws depends on blocks alone. One thread runs it. */
#ifndef WG_KERNELS_RULE_CURTAIN_H
#define WG_KERNELS_RULE_CURTAIN_H

#include "kernels/rule/arithmetic.h"

typedef struct wg_score_block {
    double low, high;
} wg_score_block;

typedef struct wg_curtain {
    int k, n;
    wg_score_block *taken; /* (n) disjoint, ascending */
} wg_curtain;

/* Where a piece of mass m must begin so that the integral of k z^(k-1) over it is w; at least `from`. */
WG_HD static inline double wg_curtain_begin(int k, double m, double w, double from)
{
    double lo = from, hi = 1 - m > from ? 1 - m : from, x = k == 2 ? (w / m - m) / 2 : (lo + hi) / 2;
    for (int i = 0; i < 60 && k > 2; i++) {
        const double high = wg_power(x + m, k - 1), low = wg_power(x, k - 1);
        const double f = high * (x + m) - low * x - w, slope = k * (high - low);
        hi = f > 0 ? x : hi;
        lo = f > 0 ? lo : x;
        const double step = slope > 0 ? x - f / slope : lo;
        const double next = step > lo && step < hi ? step : (lo + hi) / 2;
        if (next == x) break;
        x = next;
    }
    return x < lo ? lo : x > hi ? hi : x;
}

/* How much of the gap below `at` (its length) to take, so that it and the mass m - d above `top` have the integral w. */
WG_HD static inline double wg_curtain_reach(int k, double at, double gap, double top, double m, double w)
{
    const double at_k = wg_power(at, k), top_k = wg_power(top, k);
    double lo = 0, hi = gap < m ? gap : m;
    double d = k == 2 ? (wg_power(top + m, 2) - top_k - w) / (2 * (top + m - at)) : hi / 2;
    for (int i = 0; i < 60 && k > 2; i++) {
        const double low = wg_power(at - d, k - 1), high = wg_power(top + m - d, k - 1);
        const double f = at_k - low * (at - d) + high * (top + m - d) - top_k - w, slope = k * (low - high);
        lo = f > 0 ? d : lo;
        hi = f > 0 ? hi : d;
        const double step = slope < 0 ? d - f / slope : lo;
        const double next = step > lo && step < hi ? step : (lo + hi) / 2;
        if (next == d) break;
        d = next;
    }
    return d < lo ? lo : d > hi ? hi : d;
}

/* Takes the scores of the next token, of mass m and mean w / m: pieces of gaps and a piece above everything taken. Returns the
 * share of them above `place` (a point in some block), and in *own a point in the block they are now in. */
WG_HD static inline double wg_curtain_take(wg_curtain *c, double m, double w, double place, double *own)
{
    const double all = m, top = c->n ? c->taken[c->n - 1].high : 0;
    if (wg_power(top + m, c->k) - wg_power(top, c->k) <= w || c->n == 0) {
        const double low = wg_curtain_begin(c->k, m, w, top);
        const wg_score_block block = { low, low + m };
        c->taken[c->n++] = block;
        *own = low + m / 2;
        return 1;
    }
    double above = 0;
    for (;; c->n--) { /* the gap below the last block: wholly, and then it is one block with the one before; or in part */
        const double at = c->taken[c->n - 1].low, gap = at - (c->n > 1 ? c->taken[c->n - 2].high : 0);
        const double whole = wg_power(at, c->k) - wg_power(at - gap, c->k);
        const bool in_part = gap >= m || whole + wg_power(top + m - gap, c->k) - wg_power(top, c->k) <= w;
        if (in_part || c->n == 1) {
            const double d = wg_curtain_reach(c->k, at, gap, top, m, w);
            const wg_score_block block = { at - d, top + m - d };
            c->taken[c->n - 1] = block;
            *own = (at - d + top + m - d) / 2;
            return (above + (at > place ? d : 0) + (m - d)) / all;
        }
        if (at > place) above += gap;
        m -= gap;
        w -= whole;
    }
}

#endif
