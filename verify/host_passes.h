/* SPDX-License-Identifier: MIT
 * The passes of kernels/rule/rule_passes.h on the host: one thread, over rows that may be lazy (core/dist/rows.h) and may
 * have a known support. A rule's file in verify/ includes this before kernels/rule/<rule>.h. */
#ifndef WG_VERIFY_HOST_PASSES_H
#define WG_VERIFY_HOST_PASSES_H

#include <math.h>
#include <string.h>

#include "core/dist/optimal_acceptance.h"
#include "core/engine/verifier.h"
#include "kernels/rule/curtain.h"
#include "kernels/rule/draft_walk.h"
#include "kernels/rule/rule_state.h"

typedef struct wg_dist {
    wg_rows *of;
    int row;
} wg_dist;
typedef const double *wg_probs;
typedef wg_support wg_tokens;

typedef struct wg_rule_block {
    const wg_tree *tree;
    wg_rule_state *state;
    wg_rows *p, *q;
    const wg_chance *chance;
    wg_workspace *work;
    double *rest, *drawn;
    const wg_ratio_test *order;
    wg_score_block *taken;
    wg_path *out;
} wg_rule_block;

/* The block of an `accept` with these arguments. state: an uninitialised object that lives as long as the call. */
static inline wg_rule_block wg_host_block(const wg_tree *tree, wg_rows *p, wg_rows *q, const wg_chance *chance,
                                          wg_workspace *work, wg_rule_state *state, wg_path *out)
{
    return (wg_rule_block){ .tree = tree,
                            .state = state,
                            .p = p,
                            .q = q,
                            .chance = chance,
                            .work = work,
                            .rest = wg_work_row(work, WG_WORK_REST),
                            .drawn = wg_work_row(work, WG_WORK_DRAWN),
                            .order = (const wg_ratio_test *)(void *)wg_work_row(work, WG_WORK_ORDER),
                            .taken = (wg_score_block *)(void *)wg_work_row(work, WG_WORK_SORT),
                            .out = out };
}

/* Defines the function `accept` of a rule: it settles the block b, with the rule's options opt, by a call. The assertion takes
 * the semicolon behind it. */
#define WG_HOST_ACCEPT(accept, ...)                                                                                            \
    void accept(const void *opt, const wg_tree *tree, wg_rows *p, wg_rows *q, const wg_chance *chance, wg_workspace *work,     \
                wg_path *out)                                                                                                  \
    {                                                                                                                          \
        wg_rule_state state;                                                                                                   \
        (void)opt;                                                                                                             \
        const wg_rule_block b = wg_host_block(tree, p, q, chance, work, &state, out);                                          \
        __VA_ARGS__;                                                                                                           \
    }                                                                                                                          \
    _Static_assert(WG_ONE_THREAD, "one thread settles a tree on the host")

/* ---- threads: the calling one */

#define WG_RULE static inline
#define WG_ONE_THREAD true
#define WG_LEADER(b) ((void)(b), true)
#define WG_SYNC(b) ((void)(b))
#define WG_FOR_TOKENS(t, token_) for (int32_t k_ = 0, token_; k_ < (t).n && ((token_ = wg_support_at(&(t), k_)), true); k_++)
#define WG_FOR_PART(n, i) for (int i = 0; i < (n); i++)
#define WG_ADD_MASS(mass, n, i, weight)                                                                                        \
    for (int i = 0; i < (n);) {                                                                                                \
        const int end_ = (n)-i < WG_MASS_PIECE ? (n) : i + WG_MASS_PIECE;                                                      \
        uint64_t piece_ = 0;                                                                                                   \
        for (; i < end_; i++) piece_ += wg_steps_of(weight);                                                                   \
        mass += piece_;                                                                                                        \
    }

WG_RULE void wg_part(const wg_rule_block *b, int n, int *from, int *to)
{
    (void)b;
    *from = 0;
    *to = n;
}
WG_RULE void wg_before(const wg_rule_block *b, const wg_mass mine[2], wg_mass before[2], wg_mass *all)
{
    (void)b, (void)mine;
    before[0] = before[1] = *all = 0;
}

/* ---- rows */

#define WG_BOUNDS_EXACT false

WG_RULE wg_dist wg_p(const wg_rule_block *b, int node) { return (wg_dist){ b->p, b->tree->row + node }; }
WG_RULE wg_dist wg_q_row(const wg_rule_block *b, int row) { return (wg_dist){ b->q, row }; }
WG_RULE wg_dist wg_q(const wg_rule_block *b, int node) { return wg_q_row(b, b->tree->qrow[node]); }
WG_RULE int32_t wg_one_hot(wg_dist r) { return wg_rows_one_hot(r.of, r.row); }
WG_RULE double wg_prob(wg_dist r, int32_t x) { return wg_rows_prob(r.of, r.row, x); }
WG_RULE double wg_bound(wg_dist r, int32_t x) { return wg_rows_bound(r.of, r.row, x); }
WG_RULE wg_tokens wg_tokens_of(const wg_rule_block *b, wg_dist r) { return (void)b, wg_rows_support(r.of, r.row); }
WG_RULE const double *wg_row_of_p(const wg_rule_block *b, wg_dist r) { return (void)b, wg_rows_at(r.of, r.row); }
WG_RULE wg_probs wg_probs_of(const double *weight) { return weight; }
WG_RULE wg_probs wg_whole_p(const wg_rule_block *b, wg_dist r)
{
    return wg_rows_dense(r.of, r.row, wg_work_row(b->work, WG_WORK_ONE_HOT_P));
}
WG_RULE wg_probs wg_whole_q(const wg_rule_block *b, wg_dist r)
{
    return wg_rows_dense(r.of, r.row, wg_work_row(b->work, WG_WORK_ONE_HOT_Q));
}
WG_RULE int32_t wg_argmax(const wg_rule_block *b, wg_dist r) { return (void)b, wg_rows_argmax(r.of, r.row); }

/* p and q at the tokens where p may have mass, packed, so that many passes over them cost as much as the support. */
typedef struct wg_row_pair {
    int n;
    const double *p, *q;
    wg_tokens tokens;
} wg_row_pair;

WG_RULE wg_row_pair wg_row_pair_of(const wg_rule_block *b, wg_dist p, wg_dist q)
{
    wg_row_pair pair = { .tokens = wg_tokens_of(b, p), .p = wg_whole_p(b, p), .q = wg_whole_q(b, q) };
    double *pack_p = wg_work_row(b->work, WG_WORK_ORDER), *pack_q = wg_work_row(b->work, WG_WORK_SORT);
    pair.n = pair.tokens.n;
    if (!pair.tokens.token) return pair;
    for (int i = 0; i < pair.n; i++) {
        pack_p[i] = pair.p[pair.tokens.token[i]];
        pack_q[i] = pair.q[pair.tokens.token[i]];
    }
    pair.p = pack_p;
    pair.q = pack_q;
    return pair;
}
WG_RULE int32_t wg_row_pair_token(const wg_row_pair *pair, int i) { return wg_support_at(&pair->tokens, i); }

/* ---- sums */

WG_RULE wg_mass wg_total_mass(const wg_rule_block *b, wg_mass m) { return (void)b, m; }
WG_RULE double wg_total(const wg_rule_block *b, wg_mass m) { return (void)b, wg_mass_value(m); }
WG_RULE bool wg_any(const wg_rule_block *b, bool is) { return (void)b, is; }
WG_RULE int wg_count(const wg_rule_block *b, int n) { return (void)b, n; }
WG_RULE double wg_sum(const wg_rule_block *b, wg_dist r, const double *weight)
{
    return wg_rows_sum(r.of, r.row, weight, b->work);
}
WG_RULE double wg_sum_but(const wg_rule_block *b, wg_dist r, double *weight, int32_t x)
{
    const double of_x = weight[x];
    weight[x] = 0;
    const double sum = wg_sum(b, r, weight);
    weight[x] = of_x;
    return sum;
}
WG_RULE double wg_excess(const wg_rule_block *b, wg_dist p, double r, wg_dist q, bool keep)
{
    return wg_rows_excess(p.of, p.row, r, q.of, q.row, keep ? b->rest : NULL, b->work);
}
WG_RULE void wg_q_without(const wg_rule_block *b, wg_dist q, int node, int child)
{
    const wg_tree *t = b->tree;
    const double *of = wg_rows_dense(q.of, q.row, b->drawn);
    if (of != b->drawn) memcpy(b->drawn, of, (size_t)q.of->vocab * sizeof *of);
    for (int i = node; (i = wg_walk_child(t->parent, t->n, node, i)) < child;) b->drawn[t->token[i]] = 0;
}
WG_RULE int wg_best(const wg_rule_block *b, double value, int index) { return (void)b, (void)value, index; }
WG_RULE void wg_from(const wg_rule_block *b, bool mine, wg_mass m[2])
{
    (void)b;
    if (!mine) m[0] = m[1] = 0;
}
WG_RULE double wg_number_from(const wg_rule_block *b, bool mine, double value, double none)
{
    return (void)b, mine ? value : none;
}
WG_RULE int wg_order(const wg_rule_block *b, wg_dist p, wg_dist q)
{
    const wg_ratio_test *order;
    return wg_ratios_order(p.of, p.row, q.of, q.row, b->work, &order);
}

/* ---- decisions */

WG_RULE bool wg_accepts(const wg_rule_block *b, int index, double num, double den)
{
    return wg_chance_ratio(b->chance, WG_DRAW_ACCEPT, index, num, den);
}
WG_RULE bool wg_fails(const wg_rule_block *b, int index, double most)
{
    return wg_chance_fails(b->chance, WG_DRAW_ACCEPT, index, most);
}
WG_RULE int wg_pick(const wg_rule_block *b, int index, const double *weight, int n)
{
    return wg_chance_pick(b->chance, WG_DRAW_ACCEPT, index, weight, n);
}
WG_RULE int32_t wg_next_rest(const wg_rule_block *b, wg_dist r, int depth)
{
    const wg_chance at = wg_chance_at(b->chance, depth);
    return wg_rows_pick_of(r.of, r.row, b->rest, &at, WG_DRAW_NEXT, 0, b->work);
}
WG_RULE int32_t wg_next_p(const wg_rule_block *b, wg_dist r, int depth)
{
    const wg_chance at = wg_chance_at(b->chance, depth);
    if (wg_one_hot(r) >= 0) return wg_one_hot(r);
    return wg_rows_pick_of(r.of, r.row, wg_rows_at(r.of, r.row), &at, WG_DRAW_NEXT, 0, b->work);
}
WG_RULE int32_t wg_race(const wg_rule_block *b, wg_dist r, int depth, int races)
{
    const wg_chance at = wg_chance_at(b->chance, depth);
    return wg_rows_race(r.of, r.row, &at, WG_DRAW_COUPLED, (wg_lists){ 0, 1, races }, b->work);
}

/* ---- result */

WG_RULE void wg_path_node(const wg_rule_block *b, int depth, int node) { b->out->node[depth] = (int16_t)node; }
WG_RULE void wg_path_end(const wg_rule_block *b, int n, int32_t next)
{
    b->out->n = n;
    b->out->next = next;
}

#endif
