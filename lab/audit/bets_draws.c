/* SPDX-License-Identifier: MIT
 * Bets on drafted tokens. Hypothesis: a token of law iid is drawn from its row of q, one of law without_replacement from that
 * row without the earlier siblings. */
#include "lab/audit/bets.h"

#include <math.h>
#include <string.h>

static const double little = 1e-6; /* smallest rest of a row to divide by */

/* The law of a power of q over the tokens that may be drawn. */
static double power_of(const double *left, int vocab, double power, int32_t x) { return wg_power_law(left, vocab, power, x); }

/* The row of q that the node itself was drawn from; NULL: it was not drawn. */
static const double *row_before(const wg_audit_round *r, int node)
{
    return node > 0 && r->tree.qrow[node] >= 0 ? wg_rows_at(r->q, r->tree.qrow[node]) : NULL;
}

/* Bets on a drawn token; left: q without the siblings that it cannot be, with sum `mass`. */
static void bet_draw(wg_bets *b, const wg_audit_round *r, int node, int child, const double *left, double mass)
{
    const wg_tree *t = &r->tree;
    const int V = r->q->vocab, first = wg_tree_child(t, node, node);
    const int32_t x = t->token[child];
    const double *q = wg_rows_at(r->q, t->qrow[child]), *before = row_before(r, node);
    const double n = left[x] / mass, error = r->rounding + r->q_error[t->qrow[child]] / mass;
    int32_t best = 0;
    double drawn = 0;
    bool again = false;
    for (int32_t y = 1; y < V; y++) best = left[y] > left[best] ? y : best;
    for (int i = first; i >= 0 && i < child; i = wg_tree_child(t, node, i)) {
        bool seen = false;
        for (int j = first; j < i; j = wg_tree_child(t, node, j)) seen |= t->token[j] == t->token[i];
        drawn += seen ? 0 : q[t->token[i]];
        again |= t->token[i] == x;
    }
    wg_bet_on(b, WG_BET_DRAW_SQUARE, power_of(left, V, 2, x), n, error);
    wg_bet_on(b, WG_BET_DRAW_ROOT, power_of(left, V, 0.5, x), n, error);
    wg_bet_on(b, WG_BET_DRAW_BEST, x == best, n, error);
    wg_bet_on(b, WG_BET_DRAW_OUTSIDE, 0.8 * n + 0.2 / V, n, error);
    if (before && child == first) wg_bet_on(b, WG_BET_DRAW_STALE, before[x], n, error);
    if (r->p && child == first) wg_bet_on(b, WG_BET_DRAW_TARGET, wg_rows_at(r->p, node)[x], n, error);
    if (t->law == WG_LAW_IID && child != first && drawn < 1 - little)
        wg_bet_on(b, WG_BET_DRAW_DISTINCT, again ? 0 : q[x] / (1 - drawn), n, error);
    if (t->law == WG_LAW_WITHOUT_REPLACEMENT && child != first) wg_bet_on(b, WG_BET_DRAW_AGAIN, q[x], n, error);
    memcpy(b->other, left, (size_t)V * sizeof *left);
    for (int y = 0; y < V; y++) b->other[y] /= mass;
    wg_bet_rank(b, WG_BET_DRAW_RANK, b->other, V, x, error);
}

void wg_bets_draws(wg_bets *b, const wg_audit_round *r)
{
    const wg_tree *t = &r->tree;
    if (!(t->law & (WG_LAW_IID | WG_LAW_WITHOUT_REPLACEMENT)) || !r->q) return;
    const int V = r->q->vocab;
    double *left = b->other + V; /* the second half of the scratch */
    for (int node = 0; node < t->n; node++) {
        const int first = wg_tree_child(t, node, node);
        if (first < 0 || t->qrow[first] < 0) continue;
        double mass = 1;
        memcpy(left, wg_rows_at(r->q, t->qrow[first]), (size_t)V * sizeof *left);
        for (int child = first; child >= 0 && mass > little; child = wg_tree_child(t, node, child)) {
            bet_draw(b, r, node, child, left, mass);
            if (t->law != WG_LAW_WITHOUT_REPLACEMENT) continue;
            mass -= left[t->token[child]];
            left[t->token[child]] = 0;
        }
    }
}
