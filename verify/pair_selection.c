/* SPDX-License-Identifier: MIT
 * Selection among two siblings (pair_selection.h). Sums run over whole segments of ranks and never subtract a larger sum, so
 * that a token with nearly all of q, whose odds are large, does not spoil the numbers of the others. */
#include "verify/pair_selection.h"

#include <math.h>

enum { LEVELS = 8 };
static const double LEAST_REST = 1e-12;

typedef struct sums {
    double q, odds;
} sums;

static inline double part(double x) { return x > 0 ? (x < 1 ? x : 1) : 0; } /* NaN: 0 */
static inline double q_at(const wg_pair_selection *s, int rank) { return s->q[s->order[rank].token]; }
static inline double wanted(const wg_pair_selection *s, int rank) { return s->want[s->order[rank].token] - s->law[rank]; }

/* The mass of the token's pairs with the tokens of these sums. */
static inline double pairs_with(const wg_pair_selection *s, int rank, sums of)
{
    return s->odds[rank] * of.q + q_at(s, rank) * of.odds;
}
static inline void add(const wg_pair_selection *s, int rank, sums *to)
{
    to->q += q_at(s, rank);
    to->odds += s->odds[rank];
}
static sums sums_of(const wg_pair_selection *s, int from, int to)
{
    sums all = { 0, 0 };
    for (int i = from; i < to; i++) add(s, i, &all);
    return all;
}

bool wg_pair_selection_single(wg_pair_selection *s, wg_rows *q, int qrow)
{
    const wg_support drawable = wg_rows_support(q, qrow);
    double mass = 0;
    s->n = 0;
    s->worse = s->better = -1;
    s->share = 0;
    for (int k = 0; k < drawable.n; k++) {
        const double qx = s->q[wg_support_at(&drawable, k)];
        mass += qx > 0 ? qx : 0;
    }
    if (!(mass > 0)) return false;
    for (int k = 0; k < drawable.n; k++) {
        const int32_t x = wg_support_at(&drawable, k);
        if (!(s->q[x] > 0)) continue;
        s->q[x] /= mass;
        s->law[s->n] = s->q[x];
        s->order[s->n++].token = x;
    }
    return true;
}

/* Assigns pairs best token first; each token takes an equal part of all its pairs with worse ones. */
static void take_in_turn(wg_pair_selection *s, int from, int to)
{
    sums before = { 0, 0 }, left = { 0, 0 }; /* left: the parts of their pairs that better tokens did not take */
    for (int i = from; i < to; i++) {
        s->before_q[i] = before.q;
        s->before_odds[i] = before.odds;
        add(s, i, &before);
    }
    for (int i = to - 1; i >= from; i--) {
        const double below = pairs_with(s, i, (sums){ s->before_q[i], s->before_odds[i] });
        s->law[i] += pairs_with(s, i, left);
        const double taken = part(wanted(s, i) / below);
        s->law[i] += taken * below;
        left.q += (1 - taken) * q_at(s, i);
        left.odds += (1 - taken) * s->odds[i];
        if (i == s->better && s->worse >= from) s->share = 1 - taken;
    }
}

/* Finds the prefix with the least room among ranks from .. to-1; returns the rank after it. */
static int tightest(const wg_pair_selection *s, int from, int to, double *room)
{
    const sums all = sums_of(s, from, to);
    sums in = { 0, 0 };
    double inside = 0, want = 0;
    int begin = from + 1;
    *room = INFINITY;
    for (int i = from; i + 1 < to; i++) {
        inside += pairs_with(s, i, in);
        want += wanted(s, i);
        add(s, i, &in);
        const double between = in.q * (all.odds - in.odds) + in.odds * (all.q - in.q), here = (want - inside) / between;
        if (!(here < *room)) continue;
        *room = here;
        begin = i + 1;
    }
    return begin;
}

static void divide(wg_pair_selection *s, int from, int to, int levels)
{
    if (to - from < 2) return;
    if (levels == 0) {
        take_in_turn(s, from, to);
        return;
    }
    double room;
    const int middle = tightest(s, from, to, &room);
    const double taken = part(room);
    const sums low = sums_of(s, from, middle), high = sums_of(s, middle, to);
    for (int i = from; i < middle; i++) s->law[i] += taken * pairs_with(s, i, high);
    for (int i = middle; i < to; i++) s->law[i] += (1 - taken) * pairs_with(s, i, low);
    if (s->worse >= from && s->worse < middle && s->better >= middle && s->better < to) s->share = taken;
    divide(s, from, middle, levels - 1);
    divide(s, middle, to, levels - 1);
}

bool wg_pair_selection_open(wg_pair_selection *s, int32_t a, int32_t b, wg_workspace *w)
{
    double heaviest = 0, rest = 0;
    int32_t heavy = -1;
    for (int i = 0; i < s->n; i++)
        if (q_at(s, i) > heaviest) {
            heaviest = q_at(s, i);
            heavy = s->order[i].token;
        }
    for (int i = 0; i < s->n; i++) rest += s->order[i].token == heavy ? 0 : q_at(s, i);
    if (!(rest > LEAST_REST)) return false;
    for (int i = 0; i < s->n; i++) s->order[i].ratio = wg_ratio_of(s->want[s->order[i].token], q_at(s, i));
    wg_ratios_sort(w, s->n);
    for (int i = 0; i < s->n; i++) {
        const int32_t x = s->order[i].token;
        s->odds[i] = q_at(s, i) / (x == heavy ? rest : 1 - q_at(s, i));
        s->law[i] = 0;
        if (x != a && x != b) continue;
        if (s->worse < 0) s->worse = i;
        else s->better = i;
    }
    divide(s, 0, s->n, LEVELS);
    return true;
}
