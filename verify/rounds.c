/* SPDX-License-Identifier: MIT
 * Rejection in rounds, one sibling after the other. The residual distribution norm((r - q_i)+) is kept as r, unnormalised with
 * its mass beside it, and so is q_i, so nothing is ever divided by a mass that may be tiny when a sibling is judged (METHODS
 * B15-3): accept when u * l q_i(x) * mass(r) < r(x) * mass(q_i). */
#include "verify/rounds.h"

#include <string.h>

/* A row up to a factor. */
typedef struct part {
    const double *of; /* (vocab); NULL: the row of p itself, or a point where a point is known */
    double mass;
} part;

/* The law of a child drawn without the siblings before it, in p's second scratch row when there are any. */
static part drawn_from(const wg_crossing *c, int child)
{
    const wg_tree *t = c->tree;
    double *row = c->p->scratch + c->p->vocab;
    part drawn = { wg_rows_dense(c->q, t->qrow[child], row), 1 };
    if (t->law != WG_LAW_WITHOUT_REPLACEMENT || wg_tree_child(t, c->node, c->node) == child) return drawn;
    if (drawn.of != row) memcpy(row, drawn.of, (size_t)c->p->vocab * sizeof *row);
    for (int j = c->node; (j = wg_tree_child(t, c->node, j)) != child;) row[t->token[j]] = 0;
    return (part){ row, wg_rows_sum(c->q, t->qrow[child], row) };
}

/* (r - l q_i)+ into p's first scratch row, where p may have mass. It is added up if another child may ask for its mass; else
 * that is whether there is any. */
static part subtract(const wg_crossing *c, part r, part drawn, double lenience, int child)
{
    const double *old = r.of ? r.of : wg_rows_at(c->p, c->prow);
    const wg_support s = wg_rows_support(c->p, c->prow);
    const double scale = drawn.mass > 0 ? r.mass * lenience / drawn.mass : 0;
    const bool fixed = c->tree->law == WG_LAW_FIXED;
    double *rest = c->p->scratch;
    int any = 0;
    for (int k = 0; k < s.n && fixed; k++) {
        const int32_t i = wg_support_at(&s, k);
        const double d = i == c->tree->token[child] ? old[i] - r.mass * lenience : old[i];
        any |= d > 0;
        rest[i] = d > 0 ? d : 0;
    }
    for (int k = 0; k < s.n && !fixed; k++) {
        const int32_t i = wg_support_at(&s, k);
        const double d = old[i] - scale * drawn.of[i];
        any |= d > 0;
        rest[i] = d > 0 ? d : 0;
    }
    return (part){ rest, wg_tree_child(c->tree, c->node, child) < 0 ? any : wg_rows_sum(c->p, c->prow, rest) };
}

int wg_settle_rounds(const wg_crossing *c, double lenience, int32_t *next)
{
    const wg_tree *t = c->tree;
    const bool point = wg_rows_point(c->p, c->prow) >= 0;
    part r = { NULL, 1 };
    for (int child = c->node; (child = wg_tree_child(t, c->node, child)) >= 0;) {
        const int32_t x = t->token[child];
        const double px = wg_rows_prob(c->p, c->prow, x), rx = r.of && px > 0 ? r.of[x] : px;
        const bool later = wg_tree_child(t, c->node, c->node) != child, fixed = t->law == WG_LAW_FIXED;
        part drawn = { NULL, 1 };
        if (t->law == WG_LAW_WITHOUT_REPLACEMENT && later) drawn = drawn_from(c, child);
        const double qx = fixed ? 1 : drawn.of ? drawn.of[x] : wg_rows_prob(c->q, t->qrow[child], x);
        if (wg_chance_ratio(c->chance, WG_DRAW_ACCEPT, child, rx * drawn.mass, r.mass * lenience * qx)) return child;
        if (point) continue; /* a point that was missed stays a point */
        if (!fixed && !drawn.of) drawn = drawn_from(c, child);
        r = subtract(c, r, drawn, lenience, child);
    }
    *next = r.of ? wg_next_of(c, r.of, r.mass) : wg_next(c);
    return -1;
}
