/* SPDX-License-Identifier: MIT
 * Traversal of a tree, leaves first, on the device: verify/traversal.c, whose words these are. Claims lie in shared memory: all
 * threads read them, one writes them between barriers. Included by settle.cu, whose settle_block has the chains. */
#ifndef WG_KERNELS_CUDA_TRAVERSAL_RULE_H
#define WG_KERNELS_CUDA_TRAVERSAL_RULE_H

#include "kernels/cuda/rule_block.h"

WG_DEVICE double positive(double x) { return x > 0 ? x : 0; }
WG_DEVICE bool is_iid(const court *c) { return c->t->law == WG_RULE_IID; }
WG_DEVICE dist row_drawn(const court *c, int v) { return row_q(c, child_after(c->t, v, v)); }

WG_DEVICE double wanted(const court *c, int v, int x)
{
    const settle_room *s = c->s;
    const int child = is_iid(c) ? -1 : find_child(c->t, v, x);
    if (child >= 0 && child <= s->last[v]) return s->tried[child];
    const double p = s->a[v] * row_p(c, v)[x];
    return s->b[v] == 0 ? p : positive(p - s->b[v] * row_drawn(c, v)[x]);
}

/* The same for all tokens, into c->rest, when the children up to `last` were rejected. */
WG_DEVICE void wanted_row(const court *c, int v, int last)
{
    const settle_room *s = c->s;
    const wg_rule_tree *t = c->t;
    const double a = s->a[v], b = s->b[v];
    const dist p = row_p(c, v), q = b == 0 ? p : row_drawn(c, v);
    __syncthreads();
    for (int x = (int)threadIdx.x; x < c->vocab; x += WG_BLOCK) c->rest[x] = b == 0 ? a * p[x] : positive(a * p[x] - b * q[x]);
    __syncthreads();
    if (threadIdx.x == 0 && !is_iid(c))
        for (int i = v; (i = child_after(t, v, i)) >= 0 && i <= last;) {
            const int x = t->token[i];
            c->rest[x] = s->tried[find_child(t, v, x)];
        }
    __syncthreads();
}

/* What is left of a row when a draw from another is taken off. */
struct taken_off {
    const double *from, *drawn; /* drawn NULL: q */
    dist q;
    double r, share;
    WG_DEVICE_MEMBER double operator()(int i) { return positive(r * from[i] - share * (drawn ? drawn[i] : q[i])); }
};

struct other_weight {
    const double *of;
    int token;
    WG_DEVICE_MEMBER double operator()(int i) { return i == token ? 0 : of[i]; }
};

/* Down to a child: its claim. */
WG_DEVICE void descend(const court *c, int v, int child)
{
    settle_room *s = c->s;
    const int x = c->t->token[child];
    const double q = c->t->law == WG_RULE_FIXED ? s->drawable[v] : row_q(c, child)[x];
    const double rp = s->claim[v] * wanted(c, v, x) * s->drawable[v];
    __syncthreads();
    if (threadIdx.x == 0) {
        s->claim[child] = rp >= q ? (double)(rp > 0) : rp / q;
        s->a[child] = 1;
        s->b[child] = 0;
        s->drawable[child] = 1;
        s->last[child] = child;
        s->last[v] = child;
    }
    __syncthreads();
}

/* The claims after a rejected child, of which z is left. */
WG_DEVICE void settle_claim(const court *c, int v, int child, double r, double share, double z, double left, double drawable)
{
    settle_room *s = c->s;
    const wg_rule_tree *t = c->t;
    const double scale = z > 0 ? r / z : 0;
    s->drawable[v] = drawable;
    if (find_child(t, v, t->token[child]) == child) s->tried[child] = left;
    s->claim[v] = z > 0 ? z / (z + (1 - r)) : (double)(r >= 1);
    s->a[v] *= scale;
    s->b[v] = t->law == WG_RULE_FIXED ? 0 : s->b[v] * scale + (z > 0 ? share / z : 0);
    for (int i = v; !is_iid(c) && (i = child_after(t, v, i)) >= 0 && i <= child;) s->tried[i] *= scale;
    if (z > 0 || r < 1) return;
    s->a[v] = 1; /* p = q to rounding: again from p */
    s->b[v] = 0;
    for (int i = v; (i = child_after(t, v, i)) >= 0 && i <= child;) s->tried[i] = row_p(c, v)[t->token[i]];
}

/* Up from a rejected child. */
WG_DEVICE void give_back(const court *c, int v, int child)
{
    settle_room *s = c->s;
    const wg_rule_tree *t = c->t;
    const double r = s->claim[v], share = s->drawable[v] > 0 ? 1 / s->drawable[v] : 0;
    const int token = t->token[child];
    const dist p = row_p(c, v);
    if (r == 0) return;
    if (p.point >= 0 && r == 1) {
        __syncthreads();
        if (threadIdx.x == 0) s->tried[child] = p.point == token;
        __syncthreads();
        return;
    }
    const bool cut = t->law == WG_RULE_WITHOUT_REPLACEMENT;
    double drawable = 1;
    if (cut) {
        without_earlier(c, v, child);
        other_weight others = { c->drawn, token };
        drawable = wg_block_sum(c->b, c->vocab, others);
    }
    wanted_row(c, v, child - 1);
    const dist q = t->law == WG_RULE_FIXED ? dist{ NULL, token } : row_q(c, child);
    taken_off rest = { c->rest, cut ? c->drawn : NULL, q, r, share };
    const double z = wg_mass_value(wg_block_mass(c->b, c->vocab, rest)), left = p[token] > 0 ? rest(token) / r : 0;
    __syncthreads();
    if (threadIdx.x == 0) settle_claim(c, v, child, r, share, z, left, drawable);
    __syncthreads();
}

WG_DEVICE int draw_next(const court *c, int v)
{
    const int depth = depth_of(c->t, v), last = c->s->last[v];
    if (last == v || row_p(c, v).point >= 0) return pick_next(c, v, depth);
    wanted_row(c, v, last);
    return pick_rest(c, sum_rest(c), v, depth);
}

WG_DEVICE bool is_chain(const wg_rule_tree *t)
{
    for (int i = 1; i < t->n; i++)
        if (t->parent[i] != i - 1) return false;
    return true;
}

WG_DEVICE void settle_traversal(const court *c)
{
    settle_room *s = c->s;
    const wg_rule_tree *t = c->t;
    if (is_chain(t)) {
        settle_block(c);
        return;
    }
    if (threadIdx.x == 0) {
        s->claim[0] = s->a[0] = s->drawable[0] = 1;
        s->b[0] = 0;
        s->last[0] = 0;
    }
    __syncthreads();
    int v = 0;
    for (;;) {
        const int child = child_after(t, v, s->last[v]);
        if (child >= 0) {
            descend(c, v, child);
            v = child;
        } else if (v == 0 || accepts(t, v, s->claim[v], 1)) {
            break;
        } else {
            give_back(c, t->parent[v], v);
            v = t->parent[v];
        }
    }
    give_path(c, v, draw_next(c, v));
}

#endif
