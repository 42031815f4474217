/* SPDX-License-Identifier: MIT
 * The primitives of kernels/rule/rule_passes.h on a device: a block of threads verifies a tree over complete rows. All threads
 * run the rule with the same numbers and share the passes over the vocabulary. A row has no support here, unlike on the host:
 * zeros add nothing. Private to kernels/cuda. */
#ifndef WG_KERNELS_CUDA_RULE_BLOCK_H
#define WG_KERNELS_CUDA_RULE_BLOCK_H

#include "kernels/cuda/block_ops.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/rule_chance.h"
#include "kernels/rule/curtain.h"
#include "kernels/rule/draft_walk.h"
#include "kernels/rule/rule_state.h"

/* What the threads of a block tell each other in passes. */
typedef struct wg_rule_notes {
    wg_mass segment[2][WG_BLOCK_WARPS], mass[2]; /* segment: of the threads of a warp */
    double number;
    int32_t n;
} wg_rule_notes;

/* A row of probabilities; of: undefined where one_hot >= 0. */
struct wg_dist {
    const double *of;
    int one_hot;
    WG_DEVICE_MEMBER double operator[](int i) const { return one_hot >= 0 ? (double)(one_hot == i) : of[i]; }
};
typedef wg_dist wg_probs;
struct wg_tokens {
    int n;
};

struct wg_rule_block {
    wg_block *block;
    const wg_rule_tree *tree;
    wg_rule_state *state;
    wg_rule_notes *notes;
    int vocab;
    const double *p, *q;
    const int32_t *p_one_hot, *q_one_hot;
    double *rest, *drawn;
    wg_ratio_test *order;  /* in the place of drawn: (vocab, rounded up to a power of two) */
    wg_score_block *taken; /* (vocab) */
    wg_rule_path *out;
};

/* ---- threads */

#define WG_RULE WG_DEVICE
#define WG_ONE_THREAD false
#define WG_LEADER(b) (threadIdx.x == 0)
#define WG_SYNC(b) __syncthreads()
#define WG_FOR_TOKENS(t, token) for (int token = (int)threadIdx.x; token < (t).n; token += WG_BLOCK_THREADS)
#define WG_FOR_PART(n, i) for (int i = (int)threadIdx.x; i < (n); i += WG_BLOCK_THREADS)
#define WG_ADD_MASS(mass, n, i, weight) WG_FOR_PART(n, i) mass += wg_steps_of(weight)

WG_RULE void wg_part(const wg_rule_block *, int n, int *from, int *to)
{
    const int t = (int)threadIdx.x, each = (n + WG_BLOCK_THREADS - 1) / WG_BLOCK_THREADS;
    *from = t * each < n ? t * each : n;
    *to = (t + 1) * each < n ? (t + 1) * each : n;
}
WG_RULE void wg_before(const wg_rule_block *b, const wg_mass *mine, wg_mass *before, wg_mass *all)
{
    const int lane = (int)threadIdx.x % WG_WARP, warp = (int)threadIdx.x / WG_WARP;
    *all = 0;
    WG_UNROLL_FOR(int j = 0; j < 2; j++) {
        wg_mass upto = mine[j];
        for (int by = 1; by < WG_WARP; by *= 2) {
            const wg_mass below = wg_mass_below(upto, by);
            if (lane >= by) upto += below;
        }
        if (lane == WG_WARP - 1) b->notes->segment[j][warp] = upto;
        before[j] = upto - mine[j];
    }
    __syncthreads();
    WG_UNROLL_FOR(int w = 0; w < WG_BLOCK_WARPS; w++) {
        *all += b->notes->segment[0][w];
        if (w < warp) before[0] += b->notes->segment[0][w], before[1] += b->notes->segment[1][w];
    }
    __syncthreads();
}

/* ---- rows */

#define WG_BOUNDS_EXACT true

WG_RULE wg_dist wg_p(const wg_rule_block *b, int node)
{
    const int row = b->tree->row + node;
    return wg_dist{ b->p + (size_t)row * b->vocab, b->p_one_hot[row] };
}
WG_RULE wg_dist wg_q_row(const wg_rule_block *b, int row)
{
    return wg_dist{ b->q + (size_t)row * b->vocab, b->q_one_hot[row] };
}
WG_RULE wg_dist wg_q(const wg_rule_block *b, int node) { return wg_q_row(b, b->tree->qrow[node]); }
WG_RULE int wg_one_hot(wg_dist r) { return r.one_hot; }
WG_RULE double wg_prob(wg_dist r, int x) { return r[x]; }
WG_RULE double wg_bound(wg_dist r, int x) { return r[x]; }
WG_RULE wg_tokens wg_tokens_of(const wg_rule_block *b, wg_dist) { return wg_tokens{ b->vocab }; }
WG_RULE const double *wg_row_of_p(const wg_rule_block *, wg_dist r) { return r.of; }
WG_RULE wg_probs wg_probs_of(const double *weight) { return wg_dist{ weight, -1 }; }
WG_RULE wg_probs wg_whole_p(const wg_rule_block *, wg_dist r) { return r; }
WG_RULE wg_probs wg_whole_q(const wg_rule_block *, wg_dist r) { return r; }
WG_RULE int wg_argmax(const wg_rule_block *b, wg_dist r)
{
    return r.one_hot >= 0 ? r.one_hot : wg_block_argmax(b->block, r.of, b->vocab);
}

struct wg_row_pair {
    int n;
    wg_probs p, q;
};
WG_RULE wg_row_pair wg_row_pair_of(const wg_rule_block *b, wg_dist p, wg_dist q) { return wg_row_pair{ b->vocab, p, q }; }
WG_RULE int wg_row_pair_token(const wg_row_pair *, int i) { return i; }

/* ---- sums */

WG_RULE wg_mass wg_total_mass(const wg_rule_block *b, wg_mass m) { return wg_block_total(b->block, m); }
WG_RULE double wg_total(const wg_rule_block *b, wg_mass m) { return wg_mass_value(wg_block_total(b->block, m)); }
WG_RULE int wg_count(const wg_rule_block *b, int n) { return wg_block_count(b->block, n); }
WG_RULE bool wg_any(const wg_rule_block *b, bool is) { return wg_block_count(b->block, is) > 0; }
WG_RULE double wg_sum(const wg_rule_block *b, wg_dist, const double *weight)
{
    wg_weight of = { weight };
    return wg_block_sum(b->block, b->vocab, of);
}

struct wg_other_weight {
    const double *of;
    int token;
    WG_DEVICE_MEMBER double operator()(int i) { return i == token ? 0 : of[i]; }
};
WG_RULE double wg_sum_but(const wg_rule_block *b, wg_dist, const double *weight, int x)
{
    wg_other_weight others = { weight, x };
    return wg_block_sum(b->block, b->vocab, others);
}
WG_RULE double wg_excess(const wg_rule_block *b, wg_dist p, double r, wg_dist q, bool keep)
{
    wg_mass mine = 0;
    WG_FOR_PART(b->vocab, x)
    {
        const double part = wg_positive(r * p[x] - q[x]);
        if (keep) b->rest[x] = part;
        mine += wg_steps_of(part);
    }
    return wg_total(b, mine);
}
WG_RULE void wg_q_without(const wg_rule_block *b, wg_dist q, int node, int child)
{
    const wg_rule_tree *t = b->tree;
    __syncthreads(); /* all have read the one before */
    WG_FOR_PART(b->vocab, x) b->drawn[x] = q[x];
    __syncthreads();
    if (WG_LEADER(b))
        for (int i = node; (i = wg_walk_child(t->parent, t->n, node, i)) < child;) b->drawn[t->token[i]] = 0;
    __syncthreads();
}
WG_RULE int wg_best(const wg_rule_block *b, double value, int index) { return wg_block_best(b->block, value, index); }
WG_RULE void wg_from(const wg_rule_block *b, bool mine, wg_mass *m)
{
    wg_mass *note = b->notes->mass;
    __syncthreads();
    if (WG_LEADER(b)) note[0] = note[1] = 0;
    __syncthreads();
    if (mine) note[0] = m[0], note[1] = m[1];
    __syncthreads();
    m[0] = note[0];
    m[1] = note[1];
}
WG_RULE double wg_number_from(const wg_rule_block *b, bool mine, double value, double none)
{
    double *note = &b->notes->number;
    __syncthreads();
    if (WG_LEADER(b)) *note = none;
    __syncthreads();
    if (mine) *note = value;
    __syncthreads();
    return *note;
}

WG_DEVICE bool wg_is_behind(const wg_ratio_test a, const wg_ratio_test b)
{
    return wg_ratio_after(a.ratio, a.token, b.ratio, b.token);
}
WG_RULE int wg_order(const wg_rule_block *b, wg_dist p, wg_dist q)
{
    int32_t *n = &b->notes->n;
    __syncthreads();
    if (WG_LEADER(b)) *n = 0;
    __syncthreads();
    WG_FOR_PART(b->vocab, x)
    if (q[x] > 0) b->order[atomicAdd(n, 1)] = wg_ratio_test{ wg_ratio_of(p[x], q[x]), x };
    __syncthreads();
    const int ranks = *n;
    wg_block_sort(b->order, ranks, wg_ratio_test{ INFINITY, INT32_MAX });
    return ranks;
}

/* ---- decisions: core/dist/chance.c, from the numbers of rule_chance.h */

WG_RULE bool wg_accepts(const wg_rule_block *b, int index, double num, double den)
{
    const double u = wg_test_uniform(b->tree, index, num, den);
    return num >= den ? num > 0 : u * den < num;
}
WG_RULE bool wg_fails(const wg_rule_block *b, int index, double most)
{
    const double bound = most + most * 1e-9; /* above what rounding loses */
    return wg_bound_uniform(b->tree, index, bound) >= bound;
}
WG_RULE int wg_pick(const wg_rule_block *b, int index, const double *weight, int n)
{
    return wg_block_pick(b->block, weight, n, wg_pick_uniform(b->tree, WG_DRAW_ACCEPT, index, 0, weight, n));
}
WG_RULE int wg_next_rest(const wg_rule_block *b, wg_dist, int depth)
{
    const double u = wg_pick_uniform(b->tree, WG_DRAW_NEXT, 0, depth, b->rest, b->vocab);
    return wg_block_pick(b->block, b->rest, b->vocab, u);
}
WG_RULE int wg_next_p(const wg_rule_block *b, wg_dist r, int depth)
{
    if (r.one_hot >= 0) return r.one_hot;
    return wg_block_pick(b->block, r.of, b->vocab, wg_pick_uniform(b->tree, WG_DRAW_NEXT, 0, depth, r.of, b->vocab));
}

/* An Exp(1) time is at least its u: most runners are known to be late without a logarithm. */
WG_RULE int wg_race(const wg_rule_block *b, wg_dist r, int depth, int races)
{
    double best = 0;
    int which = -1;
    if (r.one_hot >= 0) return r.one_hot;
    const wg_race_times times = wg_race_uniforms(b->tree, depth, races, r.of, b->vocab);
    for (int list = 0; list < races; list++) WG_FOR_PART(b->vocab, x)
        {
            const double weight = r.of[x];
            if (!(weight > 0)) continue;
            const double u = times.at(x, list);
            if (which >= 0 && u >= best * weight) continue;
            const double at = wg_philox_exponential(u) / weight;
            if (which >= 0 && at >= best) continue;
            best = at;
            which = list * b->vocab + x;
        }
    which = wg_block_best(b->block, -best, which);
    return which < 0 ? 0 : which % b->vocab;
}

/* ---- result */

WG_RULE void wg_path_node(const wg_rule_block *b, int depth, int node)
{
    if (WG_LEADER(b)) b->out->node[depth] = (int16_t)node;
}
WG_RULE void wg_path_end(const wg_rule_block *b, int n, int next)
{
    if (!WG_LEADER(b)) return;
    b->out->n = n;
    b->out->next = next;
}

#endif
