/* SPDX-License-Identifier: MIT
 * The best of several paths, on the device: verify/multipath.c, whose words these are. Included by settle.cu, whose
 * settle_block has the chains; fixed trees are traversal.h's. */
#ifndef WG_KERNELS_CUDA_MULTIPATH_RULE_H
#define WG_KERNELS_CUDA_MULTIPATH_RULE_H

#include "kernels/cuda/selection_rules.h"
#include "kernels/cuda/traversal_rule.h"

struct level {
    int node, qrow, k;
};

WG_DEVICE dist row_at(const court *c, int qrow) { return dist{ c->q + (size_t)qrow * c->vocab, c->q_point[qrow] }; }

/* ---- select=ratio: q_k(x) = F(x)^k - F(x-)^k */

struct ranked_below {
    dist p, q;
    wg_bet bound;
    WG_DEVICE_MEMBER double operator()(int i)
    {
        const double qx = q[i];
        return qx > 0 && wg_is_behind(bound, wg_bet{ ratio_of(p[i], qx), i }) ? qx : 0;
    }
};

WG_DEVICE int best_of(const court *c, level *l, double *qk)
{
    const wg_rule_tree *t = c->t;
    const signed char *alive = c->s->pick.alive;
    const dist p = row_p(c, l->node);
    int best = -1;
    double ratio = 0;
    for (int i = 1; i < t->n; i++) {
        if (!alive[t->parent[i]]) continue;
        const int x = t->token[i];
        const double here = ratio_of(p[x], row_q(c, i)[x]);
        l->qrow = t->qrow[i];
        l->k++;
        if (best < 0 || here > ratio || (here == ratio && x > best)) best = x, ratio = here;
    }
    if (best < 0) return -1;
    const dist q = row_at(c, l->qrow);
    *qk = q[best];
    if (l->k == 1 || !(*qk > 0)) return best;
    ranked_below worse = { p, q, wg_bet{ ratio_of(p[best], *qk), best } };
    const wg_mass below = wg_block_mass(c->b, c->vocab, worse), upto = below + wg_steps_of(*qk);
    *qk = power(wg_mass_value(upto), l->k) - power(wg_mass_value(below), l->k);
    return best;
}

/* (r p - q_k)+ into c->rest; its mass. */
WG_DEVICE double excess_over_best(const court *c, dist p, dist q, int k, double r)
{
    const selection s = { c, p, q, c->bet, order_bets(c, p, q), k, 0, r, 0, 0 };
    const ranks mine = masses_before(&s);
    wg_mass sum = mine.q;
    for (int x = (int)threadIdx.x; x < c->vocab; x += WG_BLOCK) c->rest[x] = r * p[x];
    __syncthreads();
    for (int i = mine.from; i < mine.to; i++) {
        const int x = s.bet[i].token;
        const double below = power(wg_mass_value(sum), k);
        sum += wg_steps_of(mass_of(&s, i));
        if (!(s.bet[i].ratio > 0)) continue;
        const double d = c->rest[x] - (power(wg_mass_value(sum), k) - below);
        c->rest[x] = d > 0 ? d : 0;
    }
    __syncthreads();
    return sum_rest(c);
}

/* ---- select=optimal */

WG_DEVICE int selected_of(const court *c, double r, level *l, double *qk)
{
    const wg_rule_tree *t = c->t;
    selection_room *room = &c->s->pick;
    __syncthreads();
    for (int i = 1; i < t->n; i++)
        if (room->alive[t->parent[i]]) {
            if (threadIdx.x == 0) room->list[l->k] = i;
            if (l->k++ == 0) l->qrow = t->qrow[i];
        }
    __syncthreads();
    if (l->k == 0) return -1;
    const dist q = row_at(c, l->qrow);
    if (l->k == 1) {
        const int x = t->token[room->list[0]];
        *qk = q[x];
        return *qk > 0 ? x : -1;
    }
    const selection s = open_selection(c, row_p(c, l->node), q, l->k, r);
    select_among(&s);
    if (room->n == 0) return -1;
    const int i = wg_block_pick(c->b, room->chance, room->n, uniform(t, WG_DRAW_ACCEPT, WG_TREE_NODES + l->node, 0));
    *qk = law_of(&s, room->rank[i]);
    return t->token[room->node[i]];
}

/* ---- */

WG_DEVICE double level_excess(const court *c, bool ratio, level l, double r)
{
    const dist p = row_p(c, l.node), q = row_at(c, l.qrow);
    __syncthreads(); /* all have read what was left */
    if (l.k == 1) return excess_over(c, p, r, q);
    if (ratio) return excess_over_best(c, p, q, l.k, r);
    const selection s = open_selection(c, p, q, l.k, r);
    return excess_over_law(&s);
}

/* The nodes that spell the prefix, one token longer. Returns the first, -1: none. */
WG_DEVICE int spell(const court *c, int x)
{
    signed char *alive = c->s->pick.alive;
    const wg_rule_tree *t = c->t;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int i = t->n - 1; i > 0; i--) alive[i] = alive[t->parent[i]] && t->token[i] == x;
        alive[0] = 0;
    }
    __syncthreads();
    for (int i = 1; i < t->n; i++)
        if (alive[i]) return i;
    return -1;
}

WG_DEVICE void settle_multipath(const court *c, const wg_rule *rule)
{
    const wg_rule_tree *t = c->t;
    selection_room *room = &c->s->pick;
    double *r = c->s->claim; /* of a level */
    if (t->law == WG_RULE_FIXED || is_chain(t)) {
        settle_traversal(c);
        return;
    }
    if (threadIdx.x == 0) {
        for (int i = 0; i < t->n; i++) room->alive[i] = i == 0;
        r[0] = 1;
    }
    __syncthreads();
    int n = 0;
    double claim = 1;
    level l = { 0, -1, 0 };
    for (;; n++) {
        double qk = 0;
        const int x = rule->ratio ? best_of(c, &l, &qk) : selected_of(c, claim, &l, &qk);
        if (threadIdx.x == 0) room->kept_node[n] = l.node, room->kept_qrow[n] = l.qrow, room->kept_k[n] = l.k;
        if (x < 0) break;
        const double rp = claim * row_p(c, l.node)[x];
        claim = rp >= qk ? (double)(rp > 0) : rp / qk;
        if (threadIdx.x == 0) r[n + 1] = claim;
        l = level{ spell(c, x), -1, 0 };
    }
    __syncthreads();
    int k = n;
    double mass = 0;
    for (;; k--) {
        const level here = { room->kept_node[k], room->kept_qrow[k], room->kept_k[k] };
        if (k < n) mass = level_excess(c, rule->ratio, here, r[k]);
        if (k == 0 || (k < n && mass <= 0 && r[k] >= 1)) break;
        if (accepts(t, here.node, k < n ? mass : r[n], k < n ? mass + (1 - r[k]) : 1)) break;
    }
    const int node = room->kept_node[k];
    give_path(c, node, k == n ? pick_next(c, node, k) : pick_rest(c, mass, node, k));
}

#endif
