/* SPDX-License-Identifier: MIT
 * The rules of verify/ over rows that stay on the device: a block settles a tree, and a path of some bytes is all that leaves.
 * Which rule does what and why it is exact stands in verify/<rule>.c; here are the same decisions from the same bits, which the
 * tests hold against each other. All threads of a block run the rule with the same numbers and meet in what goes over the
 * vocabulary, so nothing below depends on threadIdx but through kernels/cuda/block_ops.h and stores. Rows are whole here, where the
 * host may know a support: zeros add nothing. */
#include "kernels/cuda/rule_block.h"

WG_DEVICE int race(const court *c, dist p, int races, int depth)
{
    const wg_rule_tree *t = c->t;
    double best = 0;
    int which = -1;
    if (p.point >= 0) return p.point;
    for (int list = 0; list < races; list++)
        for (int x = (int)threadIdx.x; x < c->vocab; x += WG_BLOCK) {
            const double weight = p.of[x];
            if (!(weight > 0)) continue;
            const wg_philox r = wg_philox_at(t->seed, (uint32_t)x >> 1, wg_purpose_of_list(WG_DRAW_COUPLED, list),
                                             t->position + (uint32_t)depth, t->request);
            const double u = x & 1 ? wg_philox_double(r.v[2], r.v[3]) : wg_philox_double(r.v[0], r.v[1]);
            if (which >= 0 && u >= best * weight) continue;
            const double at = wg_philox_exponential(u) / weight;
            if (which >= 0 && at >= best) continue;
            best = at;
            which = list * c->vocab + x;
        }
    which = wg_block_best(c->b, -best, which);
    return which < 0 ? 0 : which % c->vocab;
}

/* ---- rejection in rounds: verify/rounds.c */

/* old - less * q+ into c->rest; of a fixed child, whose token it is, less of that. drawn NULL: q. */
WG_DEVICE void subtract(const court *c, const double *old, dist q, const double *drawn, int token, double less)
{
    __syncthreads(); /* all have read what they wanted of c->rest */
    for (int i = (int)threadIdx.x; i < c->vocab; i += WG_BLOCK) {
        const double d = token >= 0 ? (i == token ? old[i] - less : old[i]) : old[i] - less * (drawn ? drawn[i] : q[i]);
        c->rest[i] = d > 0 ? d : 0;
    }
    __syncthreads();
}

WG_DEVICE int settle_rounds(const court *c, int node, int depth, double lenience, int *next)
{
    const wg_rule_tree *t = c->t;
    const dist p = row_p(c, node);
    const bool fixed = t->law == WG_RULE_FIXED;
    const double *r = NULL;
    double mass = 1;
    for (int child = node, first = 1; (child = child_after(t, node, child)) >= 0; first = 0) {
        const int x = t->token[child];
        const double px = p[x], rx = r && px > 0 ? r[x] : px;
        const bool cut = t->law == WG_RULE_WITHOUT_REPLACEMENT && !first;
        double all = 1;
        if (cut) {
            wg_weight drawn = { c->drawn };
            without_earlier(c, node, child);
            all = wg_block_sum(c->b, c->vocab, drawn);
        }
        const dist q = fixed ? dist{ NULL, x } : row_q(c, child);
        if (accepts(t, child, rx * all, mass * lenience * (cut ? c->drawn[x] : q[x]))) return child;
        if (p.point >= 0) continue;
        const double scale = all > 0 ? mass * lenience / all : 0;
        subtract(c, r ? r : p.of, q, cut ? c->drawn : NULL, fixed ? x : -1, fixed ? mass * lenience : scale);
        mass = sum_rest(c);
        r = c->rest;
    }
    *next = r ? pick_rest(c, mass, node, depth) : pick_next(c, node, depth);
    return -1;
}

/* ---- a set: verify/topk.c */

WG_DEVICE double set_weight(const court *c, dist p, int node, int child)
{
    const int x = c->t->token[child];
    return find_child(c->t, node, x) == child ? p[x] : 0;
}

WG_DEVICE int settle_set(const court *c, int node, int depth, int *next)
{
    const wg_rule_tree *t = c->t;
    const dist p = row_p(c, node);
    double *weight = c->s->weight, rest = 1;
    int k = 0;
    __syncthreads(); /* all have read those of the node before */
    for (int i = node; (i = child_after(t, node, i)) >= 0; k++) {
        const double w = set_weight(c, p, node, i);
        if (threadIdx.x == 0) weight[k] = w;
        rest -= w;
    }
    if (threadIdx.x == 0) weight[k] = rest > 0 ? rest : 0;
    __syncthreads();
    int kept = wg_block_pick(c->b, weight, k + 1, uniform(t, WG_DRAW_ACCEPT, node, 0));
    if (kept < k && weight[kept] > 0)
        for (int i = node; (i = child_after(t, node, i)) >= 0;)
            if (kept-- == 0) return i;
    if (p.point >= 0) {
        *next = p.point;
        return -1;
    }
    for (int i = (int)threadIdx.x; i < c->vocab; i += WG_BLOCK) c->rest[i] = p.of[i];
    __syncthreads();
    if (threadIdx.x == 0)
        for (int i = node; (i = child_after(t, node, i)) >= 0;) c->rest[t->token[i]] = 0;
    __syncthreads();
    *next = pick_rest(c, sum_rest(c), node, depth);
    return -1;
}

/* ---- k independent siblings: verify/kseq.c */

struct least {
    dist p, q;
    double rho;
    WG_DEVICE_MEMBER double operator()(int i) { return p[i] < rho * q[i] ? p[i] / rho : q[i]; }
};

WG_DEVICE double overlap(const court *c, least m) { return wg_mass_value(wg_block_mass(c->b, c->vocab, m)); }

WG_DEVICE double some_pass(double b, int k)
{
    double none = 1;
    for (int i = 0; i < k; i++) none *= 1 - b;
    return 1 - none;
}

WG_DEVICE double smallest_rho(const court *c, least m, int k)
{
    double lo = 1, hi = k;
    m.rho = 1;
    const double b = overlap(c, m);
    if (some_pass(b, k) <= b) return 1;
    for (int i = 0; i < 30; i++) {
        m.rho = (lo + hi) / 2;
        const double at = overlap(c, m);
        if (some_pass(at, k) <= m.rho * at) hi = m.rho;
        else lo = m.rho;
    }
    return hi;
}

WG_DEVICE int settle_kseq(const court *c, int node, int depth, int *next)
{
    const wg_rule_tree *t = c->t;
    int k = 0;
    if (t->law == WG_RULE_FIXED) return settle_set(c, node, depth, next);
    for (int i = node; (i = child_after(t, node, i)) >= 0;) k++;
    if (k == 1) return settle_rounds(c, node, depth, 1, next);
    least m = { row_p(c, node), row_q(c, child_after(t, node, node)), 1 };
    m.rho = smallest_rho(c, m, k);
    for (int i = node; (i = child_after(t, node, i)) >= 0;)
        if (accepts(t, i, m.p[t->token[i]], m.rho * row_q(c, i)[t->token[i]])) return i;
    const double b = overlap(c, m), share = b > 0 ? some_pass(b, k) / b : 0;
    for (int i = (int)threadIdx.x; i < c->vocab; i += WG_BLOCK) {
        const double d = m.p[i] - m(i) * share;
        c->rest[i] = d > 0 ? d : 0;
    }
    __syncthreads();
    *next = pick_rest(c, sum_rest(c), node, depth);
    return -1;
}

/* ---- a chain as a whole: verify/block.c */

struct excess {
    dist p, q; /* q of a fixed child: its point */
    double r, *rest;
    WG_DEVICE_MEMBER double operator()(int i)
    {
        const double d = r * p[i] - q[i];
        return rest[i] = d > 0 ? d : 0;
    }
};

/* (r p - q)+ into c->rest; its mass. */
WG_DEVICE double excess_over(const court *c, dist p, double r, dist q)
{
    excess e = { p, q, r, c->rest };
    return wg_mass_value(wg_block_mass(c->b, c->vocab, e));
}
/* The same after node i of a chain. */
WG_DEVICE double excess_after(const court *c, int i, double r)
{
    return excess_over(c, row_p(c, i), r, c->t->law == WG_RULE_FIXED ? dist{ NULL, c->t->token[i + 1] } : row_q(c, i + 1));
}

WG_DEVICE void settle_block(const court *c)
{
    const wg_rule_tree *t = c->t;
    double *claim = c->s->claim;
    const int n = t->n - 1;
    if (threadIdx.x == 0) {
        claim[0] = 1;
        for (int i = 1; i <= n; i++) {
            const double q = t->law == WG_RULE_FIXED ? 1 : row_q(c, i)[t->token[i]];
            const double rp = claim[i - 1] * row_p(c, i - 1)[t->token[i]];
            claim[i] = rp >= q ? (double)(rp > 0) : rp / q;
        }
    }
    __syncthreads();
    int k = n;
    for (; k > 0; k--) {
        const double r = claim[k];
        double mass = 0;
        if (k < n) {
            if (uniform(t, WG_DRAW_ACCEPT, k, 0) >= r + r * 1e-9) continue; /* the test below is of no more than r */
            mass = excess_after(c, k, r);
            if (mass <= 0 && r >= 1) break;
        }
        if (accepts(t, k, k < n ? mass : r, k < n ? mass + (1 - r) : 1)) break;
    }
    const int next = k == n ? pick_next(c, k, k) : pick_rest(c, excess_after(c, k, claim[k]), k, k);
    for (int i = (int)threadIdx.x; i <= k; i += WG_BLOCK) c->out->node[i] = (int16_t)i;
    if (threadIdx.x == 0) {
        c->out->n = k + 1;
        c->out->next = next;
    }
}

#include "kernels/cuda/lossy_rules.h"
#include "kernels/cuda/multipath_rule.h"

/* ---- rules that settle one node at a time: verify/walk.c */

template <int KIND> WG_DEVICE int settle_node(const court *c, const wg_rule *rule, int node, int depth, int *next)
{
    const wg_rule_tree *t = c->t;
    if (KIND == WG_RULE_GREEDY || KIND == WG_RULE_MATCH || KIND == WG_RULE_COUPLED) {
        const dist p = row_p(c, node);
        if (KIND == WG_RULE_GREEDY) *next = p.point >= 0 ? p.point : wg_block_argmax(c->b, p.of, c->vocab);
        else *next = KIND == WG_RULE_MATCH ? pick_next(c, node, depth) : race(c, p, rule->races, depth);
        return find_child(t, node, *next);
    }
    if (child_after(t, node, node) < 0) {
        *next = pick_next(c, node, depth);
        return -1;
    }
    if (KIND == WG_RULE_RELAXED) return settle_relaxed(c, rule, node, depth, next);
    if (KIND == WG_RULE_OPTIMAL) return settle_optimal(c, node, depth, next);
    if (KIND == WG_RULE_ROUNDS) return settle_rounds(c, node, depth, rule->factor, next);
    return KIND == WG_RULE_TOPK ? settle_set(c, node, depth, next) : settle_kseq(c, node, depth, next);
}

template <int KIND> WG_DEVICE void walk(const court *c, const wg_rule *rule)
{
    int n = 0, next = 0;
    for (int node = 0; node >= 0; n++) {
        const int here = node;
        node = settle_node<KIND>(c, rule, here, n, &next);
        if (threadIdx.x == 0) c->out->node[n] = (int16_t)here;
    }
    if (threadIdx.x == 0) {
        c->out->n = n;
        c->out->next = next;
    }
}

template <int KIND>
WG_KERNEL WG_LAUNCH_BOUNDS(WG_BLOCK, 1)
settle_tree(wg_rule rule, const wg_rule_tree *tree, int vocab, const double *p, const int32_t *p_point, const double *q,
            const int32_t *q_point, double *scratch, wg_rule_path *path)
{
    wg_depend();
    WG_SHARED(wg_block, b, 1);
    WG_SHARED(settle_room, s, 1);
    const size_t V = (size_t)vocab;
    const int32_t *from = (const int32_t *)(tree + blockIdx.x);
    for (int i = (int)threadIdx.x; i < (int)(sizeof *tree / 4); i += WG_BLOCK) ((int32_t *)&s->tree)[i] = from[i];
    __syncthreads();
    double *mine = scratch + wg_gpu_settle_cells((wg_rule_kind)KIND, vocab) * blockIdx.x;
    const court c = { b, s, &s->tree, vocab, p, q, p_point, q_point, mine, mine + V, (wg_bet *)(mine + V),
                      mine + V + 2 * wg_gpu_sorted(vocab), path + blockIdx.x };
    if (KIND == WG_RULE_BLOCK) settle_block(&c);
    else if (KIND == WG_RULE_TRAVERSAL) settle_traversal(&c);
    else if (KIND == WG_RULE_TYPICAL) settle_typical(&c, &rule);
    else if (KIND == WG_RULE_MULTIPATH) settle_multipath(&c, &rule);
    else walk<KIND>(&c, &rule);
}

extern "C" void WG_GPU(settle)(wg_gpu *g, const wg_rule *rule, const wg_rule_tree *tree, int trees, int vocab, const double *p,
                               const int32_t *p_point, const double *q, const int32_t *q_point, double *scratch,
                               wg_rule_path *path)
{
    void (*kernel)(wg_rule, const wg_rule_tree *, int, const double *, const int32_t *, const double *, const int32_t *,
                   double *, wg_rule_path *) = NULL;
    switch (rule->kind) {
    case WG_RULE_GREEDY: kernel = settle_tree<WG_RULE_GREEDY>; break;
    case WG_RULE_MATCH: kernel = settle_tree<WG_RULE_MATCH>; break;
    case WG_RULE_COUPLED: kernel = settle_tree<WG_RULE_COUPLED>; break;
    case WG_RULE_ROUNDS: kernel = settle_tree<WG_RULE_ROUNDS>; break;
    case WG_RULE_TOPK: kernel = settle_tree<WG_RULE_TOPK>; break;
    case WG_RULE_KSEQ: kernel = settle_tree<WG_RULE_KSEQ>; break;
    case WG_RULE_TRAVERSAL: kernel = settle_tree<WG_RULE_TRAVERSAL>; break;
    case WG_RULE_BLOCK: kernel = settle_tree<WG_RULE_BLOCK>; break;
    case WG_RULE_RELAXED: kernel = settle_tree<WG_RULE_RELAXED>; break;
    case WG_RULE_TYPICAL: kernel = settle_tree<WG_RULE_TYPICAL>; break;
    case WG_RULE_MULTIPATH: kernel = settle_tree<WG_RULE_MULTIPATH>; break;
    case WG_RULE_OPTIMAL: kernel = settle_tree<WG_RULE_OPTIMAL>; break;
    default: return;
    }
    WG_LAUNCH(kernel, trees, WG_BLOCK, 0, g->stream, *rule, tree, vocab, p, p_point, q, q_point, scratch, path);
}
