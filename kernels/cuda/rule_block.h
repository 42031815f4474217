/* SPDX-License-Identifier: MIT
 * What the rules of settle.cu have in common: a tree with its rows and chance as all threads of a block see them, decisions,
 * and draws over the vocabulary. Private to kernels/cuda. */
#ifndef WG_KERNELS_CUDA_RULE_BLOCK_H
#define WG_KERNELS_CUDA_RULE_BLOCK_H

#include "kernels/cuda/block_ops.h"
#include "kernels/cuda/launch.h"
#include "kernels/philox.h"
#include "kernels/purpose.h"

typedef struct wg_bet {
    double ratio;
    int32_t token;
} wg_bet;

/* Of selection.h: what the threads of a block tell each other. */
typedef struct selection_room {
    wg_mass q[WG_BLOCK], p[WG_BLOCK], q_worst, p_worst;
    double floor, cap;
    int32_t list[WG_TREE_NODES];                                               /* the draws */
    int32_t n, node[WG_TREE_NODES], rank[WG_TREE_NODES], times[WG_TREE_NODES]; /* their tokens */
    double beats[WG_TREE_NODES], chance[WG_TREE_NODES];
    int32_t kept_node[WG_TREE_NODES], kept_qrow[WG_TREE_NODES], kept_k[WG_TREE_NODES]; /* of a level: multipath */
    signed char alive[WG_TREE_NODES];
} selection_room;

typedef struct settle_room {
    wg_rule_tree tree;
    double claim[WG_TREE_NODES];      /* of a node: block, traversal, typical; of a level: multipath */
    double weight[WG_TREE_NODES + 1]; /* of what is drawn among children */
    double a[WG_TREE_NODES], b[WG_TREE_NODES], drawable[WG_TREE_NODES], tried[WG_TREE_NODES]; /* traversal; typical: a */
    int32_t last[WG_TREE_NODES];
    selection_room pick;
} settle_room;

/* A row of probabilities; of: undefined where point >= 0. */
struct dist {
    const double *of;
    int point;
    WG_DEVICE_MEMBER double operator[](int i) const { return point >= 0 ? (double)(point == i) : of[i]; }
};

/* What the threads of a block share of one tree. */
struct court {
    wg_block *b;
    settle_room *s;
    const wg_rule_tree *t;
    int vocab;
    const double *p, *q;
    const int32_t *p_point, *q_point;
    double *rest, *drawn; /* (vocab) scratch */
    wg_bet *bet;          /* in the place of drawn: (vocab, rounded up to a power of two) */
    double *taken;        /* (2 vocab) blocks of scores */
    wg_rule_path *out;
};

WG_DEVICE dist row_p(const court *c, int node)
{
    const int row = c->t->row + node;
    return dist{ c->p + (size_t)row * c->vocab, c->p_point[row] };
}
WG_DEVICE dist row_q(const court *c, int node)
{
    const int row = c->t->qrow[node];
    return dist{ c->q + (size_t)row * c->vocab, c->q_point[row] };
}

/* ---- trees */

WG_DEVICE int child_after(const wg_rule_tree *t, int node, int after)
{
    for (int i = after + 1; i < t->n; i++)
        if (t->parent[i] == node) return i;
    return -1;
}

WG_DEVICE int find_child(const wg_rule_tree *t, int node, int token)
{
    for (int i = node + 1; i < t->n; i++)
        if (t->parent[i] == node && t->token[i] == token) return i;
    return -1;
}

WG_DEVICE int depth_of(const wg_rule_tree *t, int v)
{
    int depth = 0;
    for (; v > 0; v = t->parent[v]) depth++;
    return depth;
}

/* The path to a node, and what follows it. */
WG_DEVICE void give_path(const court *c, int v, int next)
{
    const int depth = depth_of(c->t, v);
    if (threadIdx.x != 0) return;
    for (int i = v, k = depth; k >= 0; k--, i = c->t->parent[i]) c->out->node[k] = (int16_t)i;
    c->out->n = depth + 1;
    c->out->next = next;
}

/* ---- chance: core/dist/chance.c */

WG_DEVICE double uniform(const wg_rule_tree *t, wg_purpose purpose, int index, int depth)
{
    const wg_philox r = wg_philox_at(t->seed, (uint32_t)index, (uint32_t)purpose, t->position + (uint32_t)depth, t->request);
    return wg_philox_double(r.v[0], r.v[1]);
}

WG_DEVICE bool accepts(const wg_rule_tree *t, int index, double num, double den)
{
    if (num >= den) return num > 0;
    return uniform(t, WG_DRAW_ACCEPT, index, 0) * den < num;
}

/* `next` after a node at this depth: from p; from weights that have a mass. */
WG_DEVICE int pick_next(const court *c, int node, int depth)
{
    const dist p = row_p(c, node);
    return p.point >= 0 ? p.point : wg_block_pick(c->b, p.of, c->vocab, uniform(c->t, WG_DRAW_NEXT, 0, depth));
}
WG_DEVICE int pick_rest(const court *c, double mass, int node, int depth)
{
    return mass > 0 ? wg_block_pick(c->b, c->rest, c->vocab, uniform(c->t, WG_DRAW_NEXT, 0, depth)) : pick_next(c, node, depth);
}
WG_DEVICE double sum_rest(const court *c)
{
    wg_weight of = { c->rest };
    return wg_block_sum(c->b, c->vocab, of);
}

/* q without the siblings before a child into c->drawn. */
WG_DEVICE void without_earlier(const court *c, int node, int child)
{
    const wg_rule_tree *t = c->t;
    const dist q = row_q(c, child);
    __syncthreads(); /* all have read the one before */
    for (int i = (int)threadIdx.x; i < c->vocab; i += WG_BLOCK) c->drawn[i] = q[i];
    __syncthreads();
    if (threadIdx.x == 0)
        for (int j = node; (j = child_after(t, node, j)) != child;) c->drawn[t->token[j]] = 0;
    __syncthreads();
}

#endif
