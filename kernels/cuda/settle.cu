/* SPDX-License-Identifier: MIT
 * The rules of verify/ over rows that stay on the device: a block settles a tree, and a path of some bytes is all that leaves.
 * Which rule does what and why it is exact stands in verify/<rule>.c; here are the same decisions from the same bits, which the
 * tests hold against each other. All threads of a block run the rule with the same numbers and meet in what goes over the
 * vocabulary, so nothing below depends on threadIdx but through kernels/cuda/block.h and stores.
 *
 * Rows are whole here, where the host may know a support: it adds zeros to chains, which are left out (block.h). */
#include "kernels/cuda/court.h"

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
            const wg_philox r = wg_philox_at(t->seed, (uint32_t)x >> 1, DRAW_COUPLED + 256u * (uint32_t)list,
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

struct subtract {
    const court *c;
    const double *old, *drawn; /* drawn NULL: q */
    dist q;
    int token;                 /* of a fixed child; -1 */
    double less;               /* what is taken of it, or of the row drawn from */
    WG_DEVICE_MEMBER bool operator()(int i, double *v)
    {
        double d = old[i];
        if (token < 0) d -= less * (drawn ? drawn[i] : q[i]);
        else if (i == token) d -= less;
        *v = c->rest[i] = d > 0 ? d : 0;
        return d > 0;
    }
};

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
        const double all = cut ? without_earlier(c, node, child) : 1;
        const dist q = fixed ? dist{ NULL, x } : row_q(c, child);
        if (accepts(t, child, rx * all, mass * lenience * (cut ? c->drawn[x] : q[x]))) return child;
        if (p.point >= 0) continue;
        const double scale = all > 0 ? mass * lenience / all : 0;
        subtract take = { c, r ? r : p.of, cut ? c->drawn : NULL, q, fixed ? x : -1, fixed ? mass * lenience : scale };
        __syncthreads(); /* all have read r[x] */
        mass = wg_block_chain(c->b, c->vocab, take);
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
    double rest = 1, sum = 0, run = 0;
    int kept = -1;
    for (int i = node; (i = child_after(t, node, i)) >= 0;) {
        const double w = set_weight(c, p, node, i);
        rest -= w;
        sum += w;
    }
    sum += rest > 0 ? rest : 0;
    const double at = uniform(t, DRAW_ACCEPT, node, 0) * sum;
    for (int i = node; kept < 0 && (i = child_after(t, node, i)) >= 0;) {
        const double w = set_weight(c, p, node, i);
        run += w;
        if (w > 0 && (at < run)) kept = i;
    }
    if (kept < 0 && !(rest > 0)) /* rounding: the last that can be */
        for (int i = node; (i = child_after(t, node, i)) >= 0;)
            if (set_weight(c, p, node, i) > 0) kept = i;
    if (kept >= 0) return kept;
    if (p.point >= 0) {
        *next = p.point;
        return -1;
    }
    for (int i = (int)threadIdx.x; i < c->vocab; i += WG_BLOCK) c->rest[i] = p.of[i];
    __syncthreads();
    if (threadIdx.x == 0)
        for (int i = node; (i = child_after(t, node, i)) >= 0;) c->rest[t->token[i]] = 0;
    __syncthreads();
    positive_weight take = { c->rest };
    const double mass = wg_block_chain(c->b, c->vocab, take);
    *next = pick_rest(c, mass, node, depth);
    return -1;
}

/* ---- k independent siblings: verify/kseq.c */

struct least {
    dist p, q;
    double rho;
    WG_DEVICE_MEMBER bool operator()(int i, double *v)
    {
        *v = p[i] < rho * q[i] ? p[i] / rho : q[i];
        return *v > 0;
    }
};

struct beyond {
    least kept;
    double share, *rest;
    WG_DEVICE_MEMBER bool operator()(int i, double *v)
    {
        double k;
        kept(i, &k);
        const double d = kept.p[i] - k * share;
        *v = rest[i] = d > 0 ? d : 0;
        return d > 0;
    }
};

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
    const double b = wg_block_chain(c->b, c->vocab, m);
    if (some_pass(b, k) <= b) return 1;
    for (int i = 0; i < 30; i++) {
        m.rho = (lo + hi) / 2;
        const double at = wg_block_chain(c->b, c->vocab, m);
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
    const double b = wg_block_chain(c->b, c->vocab, m);
    beyond left = { m, b > 0 ? some_pass(b, k) / b : 0, c->rest };
    const double mass = wg_block_chain(c->b, c->vocab, left);
    *next = pick_rest(c, mass, node, depth);
    return -1;
}

/* ---- a chain as a whole: verify/block.c */

struct excess {
    dist p, q;
    double r, *rest;
    int token; /* of a fixed child */
    WG_DEVICE_MEMBER double operator()(int i)
    {
        const double d = r * p[i] - q[i];
        return rest[i] = d > 0 ? d : 0;
    }
    WG_DEVICE_MEMBER bool operator()(int i, double *v)
    {
        const double d = i == token ? r * p[i] - 1 : r * p[i];
        *v = rest[i] = d > 0 ? d : 0;
        return d > 0;
    }
};

/* (r p - q)+ after node i, into c->rest; its mass. */
WG_DEVICE double excess_after(const court *c, int i, double r)
{
    const bool fixed = c->t->law == WG_RULE_FIXED;
    excess e = { row_p(c, i), fixed ? dist{ NULL, 0 } : row_q(c, i + 1), r, c->rest, c->t->token[i + 1] };
    return fixed ? wg_block_chain(c->b, c->vocab, e) : wg_block_lanes16(c->b, c->vocab, e);
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
            if (uniform(t, DRAW_ACCEPT, k, 0) >= r + r * 1e-9) continue; /* the test below is of no more than r */
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

#include "kernels/cuda/lossy.h"
#include "kernels/cuda/traversal.h"

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
    const court c = { b, s, &s->tree, vocab, p, q, p_point, q_point, scratch + 2 * V * blockIdx.x,
                      scratch + 2 * V * blockIdx.x + V, path + blockIdx.x };
    if (KIND == WG_RULE_BLOCK) settle_block(&c);
    else if (KIND == WG_RULE_TRAVERSAL) settle_traversal(&c);
    else if (KIND == WG_RULE_TYPICAL) settle_typical(&c, &rule);
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
    default: return;
    }
    WG_LAUNCH(kernel, trees, WG_BLOCK, 0, g->stream, *rule, tree, vocab, p, p_point, q, q_point, scratch, path);
}
