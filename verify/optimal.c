/* SPDX-License-Identifier: MIT
 * Optimal selection among k independent siblings: accepts with probability alpha* (core/engine/optimal.h), which no lossless
 * rule exceeds at a node. Like the importance-weighted rule of Khisti et al. 2025 it selects one draw and then settles it by
 * single-draft rejection; the selection here is exact for every k and costs one sort (METHODS B10).
 *
 * Let rho = p/q, tokens in ascending order of rho, S* the prefix that maximises q(S)^k - p(S).
 *
 * 1. What to select. A law s of the selected draw is possible if and only if s(A) >= q(A)^k for every set A (draws that are
 *    all in A leave no other choice; sufficient by Hall's theorem). Take s = q phi with phi = max(rho, b) on S* and min(rho, c)
 *    outside, b and c such that s(S*) = q(S*)^k and s is a law. It is possible, because phi ascends and on prefixes
 *    s >= q^k holds; and sum min(p, s) = 1 - [q(S*)^k - p(S*)] = alpha*.
 * 2. How. Give each draw a score z in [0,1], drawn from H_x, and select the highest. If the H_x make scores of draws uniform,
 *    token x is selected with probability q(x) E_{H_x}[k z^{k-1}]; so the means must be phi(x). Such H_x exist (Strassen: this
 * is a martingale coupling of phi and k Z^{k-1}); the left-curtain one takes tokens in ascending order and gives each the
 *    interval of what is left of [0,1] that has its mass and its mean (Beiglboeck and Juillet 2016). Taken scores form blocks,
 *    and a token's own lie above or below whole blocks, so that who wins depends on blocks alone: no score is drawn, the
 *    probabilities of selection are summed up.
 * 3. Accept the selected x with probability min(1, p(x)/s(x)); else `next` is drawn from norm((p - s)+).
 *
 * Theorem. Lossless by 3 (single-draft rejection of a draw from s), with acceptance sum min(p, s) = alpha* by 1. One child:
 * `rejection`. A FIXED set is settled by topk's rule, which is optimal for it. Over several levels this is the best of the
 * rules that settle node by node; rules that look ahead (block, traversal, multipath) may still keep more. */
#include <math.h>

#include "core/engine/optimal.h"
#include "verify/verify.h"
#include "verify/walk.h"

/* The tokens q can draw, by rho. */
typedef struct bets {
    const wg_bet *at;
    const wg_rows *q;
    int qrow, n, k;
    int worst;        /* |S*| */
    double floor, cap; /* b and c */
} bets;

static double power(double x, int k)
{
    double v = 1;
    for (int i = 0; i < k; i++) v *= x;
    return v;
}

static double mass_of(const bets *b, int i) { return wg_rows_prob(b->q, b->qrow, b->at[i].token); }

static double phi(const bets *b, int i)
{
    const double rho = b->at[i].ratio;
    if (i < b->worst) return rho > b->floor ? rho : b->floor;
    return rho < b->cap ? rho : b->cap;
}

/* ---- 1. what to select */

static void choose_law(bets *b)
{
    double qs = 0, ps = 0, most = 0, q_worst = 0, p_worst = 0, p_all = 0;
    b->worst = 0;
    for (int i = 0; i < b->n; i++) {
        const double q = mass_of(b, i);
        qs += q;
        ps += q * b->at[i].ratio;
        const double excess = power(qs < 1 ? qs : 1, b->k) - ps;
        if (excess > most) {
            most = excess;
            b->worst = i + 1;
            q_worst = qs < 1 ? qs : 1;
            p_worst = ps;
        }
    }
    p_all = ps;
    const double low = power(q_worst, b->k), high = 1 - low;
    double q_raised = 0, p_raised = 0;
    b->floor = 0;
    for (int i = 0; i < b->worst; i++) { /* raise the first ones, until the level is below the next */
        q_raised += mass_of(b, i);
        p_raised += mass_of(b, i) * b->at[i].ratio;
        b->floor = (low - (p_worst - p_raised)) / q_raised;
        if (i + 1 < b->worst && b->floor <= b->at[i + 1].ratio) break;
    }
    double q_cut = 0, p_cut = 0;
    b->cap = INFINITY;
    for (int i = b->n - 1; i >= b->worst; i--) { /* cut the last ones, until the level is above the next */
        q_cut += mass_of(b, i);
        p_cut += mass_of(b, i) * b->at[i].ratio;
        b->cap = (high - (p_all - p_worst - p_cut)) / q_cut;
        if (i > b->worst && b->cap >= b->at[i - 1].ratio) break;
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

/* A token among the siblings. */
typedef struct drawn {
    int child, rank, times;
    double beats; /* probability that one draw of it scores higher than all draws of lower ranks */
} drawn;

static int rank_of(const bets *b, double ratio, int32_t token)
{
    int lo = 0, hi = b->n - 1;
    while (lo < hi) {
        const int mid = (lo + hi) / 2;
        if (b->at[mid].ratio < ratio || (b->at[mid].ratio == ratio && b->at[mid].token < token)) lo = mid + 1;
        else hi = mid;
    }
    return lo <= hi && b->at[lo].token == token ? lo : -1;
}

/* The distinct tokens among the children, ranks ascending. */
static int gather(const wg_crossing *c, const bets *b, drawn *x)
{
    int n = 0;
    for (int child = c->node; (child = wg_tree_child(c->tree, c->node, child)) >= 0;) {
        const int32_t token = c->tree->token[child];
        const double p = wg_rows_prob(c->p, c->prow, token);
        const int rank = rank_of(b, p > 0 ? p / wg_rows_prob(b->q, b->qrow, token) : 0, token);
        int i = 0;
        while (i < n && x[i].rank < rank) i++;
        if (rank < 0) continue; /* no draw of q: never selected */
        if (i < n && x[i].rank == rank) {
            x[i].times++;
            continue;
        }
        for (int j = n++; j > i; j--) x[j] = x[j - 1];
        x[i] = (drawn){ child, rank, 1, 1 };
    }
    return n;
}

static void compare_scores(const wg_crossing *c, const bets *b, drawn *x, int n)
{
    curtain scores = { .k = b->k, .taken = (block *)(void *)(c->p->scratch + 4 * (size_t)c->p->vocab) };
    double highest = -1; /* place of the highest block that holds a token of x[0..j) */
    int j = 0;
    for (int i = 0; j < n; i++) {
        const double m = mass_of(b, i);
        double own;
        const double share = take(&scores, m, m * phi(b, i), highest, &own);
        if (x[j].rank != i) continue;
        x[j++].beats = share;
        if (own > highest) highest = own;
    }
}

/* ---- 3. one node */

static int settle(const void *opt, const wg_crossing *c, int32_t *next)
{
    const wg_tree *t = c->tree;
    if (t->law == WG_LAW_FIXED) return wg_settle_set(opt, c, next);
    if (c->p->point[c->prow] >= 0) {
        *next = c->p->point[c->prow];
        return wg_tree_find(t, c->node, *next);
    }
    int16_t child[WG_TREE_MAX];
    double weight[WG_TREE_MAX] = { 0 }, left = 1, rejected = 1, mass = 0;
    drawn x[WG_TREE_MAX];
    bets b = { .q = c->q, .k = wg_crossing_children(c, child) };
    b.qrow = t->qrow[child[0]];
    b.n = wg_bets_order(c->p, c->prow, c->q, b.qrow, &b.at);
    choose_law(&b);
    const int n = gather(c, &b, x);
    if (n > 1) compare_scores(c, &b, x, n);
    for (int i = n - 1; i >= 0; i--) { /* from the highest rank: who scores above all lower ones is selected */
        const double beaten = i > 0 ? power(1 - x[i].beats, x[i].times) : 0, rho = b.at[x[i].rank].ratio,
                     f = phi(&b, x[i].rank);
        weight[i] = left * (1 - beaten) * (rho < f ? rho / f : 1);
        rejected -= weight[i];
        left *= beaten;
    }
    weight[n] = rejected > 0 ? rejected : 0;
    const int kept = wg_chance_pick(c->chance, WG_DRAW_ACCEPT, c->node, weight, n + 1);
    if (kept < n && weight[kept] > 0) return x[kept].child;
    const double *p = wg_rows_at(c->p, c->prow);
    double *rest = c->p->scratch;
    for (int i = 0; i < c->p->vocab; i++) rest[i] = p[i];
    for (int i = 0; i < b.n; i++) {
        const double d = mass_of(&b, i) * (b.at[i].ratio - phi(&b, i));
        rest[b.at[i].token] = d > 0 ? d : 0;
    }
    for (int i = 0; i < c->p->vocab; i++) mass += rest[i];
    *next = wg_next_of(c, rest, mass);
    return -1;
}

static void accept(const void *opt, const wg_tree *tree, const wg_rows *p, const wg_rows *q, const wg_chance *chance,
                   wg_path *out)
{
    wg_walk(settle, opt, tree, p, q, chance, out);
}

const wg_verifier_class wg_verifier_optimal = {
    .name = "optimal",
    .doc = "the most that k independent siblings allow at a node: an optimal coupling in one sort",
    .laws = WG_LAW_FIXED | WG_LAW_IID,
    .lossless = true,
    .accept = accept,
};
