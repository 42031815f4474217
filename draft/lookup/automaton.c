/* SPDX-License-Identifier: MIT
 * Growing a suffix automaton. States and edges are numbers in fixed arrays: a text of n tokens has at most 2n states and 3n
 * edges (each edge outside the tree of longest paths belongs to a suffix of its own; the same count holds for several texts).
 * An edge is found by hashing (state, token); a state's edges also form a list, for cloning.
 *
 * Invariants: the state of a string is split (cloned) the moment one of its strings ends where another does not, and the clone
 * takes over the counts, which were the same for both until then. A state whose shortest string is longer than `depth` has no
 * counts; shortest strings only get longer. */
#include "draft/lookup/automaton.h"

#include <string.h>

#include "core/base/mem.h"
#include "draft/one_hot.h"

static uint32_t slots_for(int cap)
{
    uint32_t n = 16;
    while (n < 4 * (uint64_t)cap && n < 1u << 31) n *= 2;
    return n;
}

size_t wg_automaton_bytes(int cap, int depth)
{
    const size_t states = 2 * (size_t)cap + 1, each = sizeof(wg_automaton_state) + (depth ? sizeof(wg_automaton_counts) : 0);
    return states * each + 3 * (size_t)cap * sizeof(wg_automaton_edge) + slots_for(cap) * sizeof(uint32_t);
}

int wg_automaton_cap(size_t bytes, int depth)
{
    int low = 0, high = 1 << 28;
    while (low < high) {
        const int mid = low + (high - low + 1) / 2;
        if (wg_automaton_bytes(mid, depth) <= bytes) low = mid;
        else high = mid - 1;
    }
    return low;
}

void wg_automaton_clear(wg_automaton *a)
{
    memset(a->slot, 0, a->slots * sizeof *a->slot);
    a->tokens = a->edges = 0;
    a->states = 1;
    a->state[0] = (wg_automaton_state){ 0, -1, -1, -1 };
    if (a->counts) a->counts[0] = (wg_automaton_counts){ 0, { -1, -1, -1, -1 } };
    wg_automaton_begin(a);
}

bool wg_automaton_open(wg_automaton *a, int cap, int depth)
{
    if (cap < 1) cap = 1;
    *a = (wg_automaton){ .cap = cap, .depth = depth, .slots = slots_for(cap) };
    a->state = wg_alloc(2 * (size_t)cap + 1, sizeof *a->state);
    a->edge = wg_alloc(3 * (size_t)cap, sizeof *a->edge);
    a->slot = wg_calloc(a->slots, sizeof *a->slot);
    if (depth) a->counts = wg_alloc(2 * (size_t)cap + 1, sizeof *a->counts);
    if (!a->state || !a->edge || !a->slot || (depth && !a->counts)) {
        wg_automaton_close(a);
        return false;
    }
    wg_automaton_clear(a);
    return true;
}

void wg_automaton_close(wg_automaton *a)
{
    wg_free(a->state);
    wg_free(a->edge);
    wg_free(a->counts);
    wg_free(a->slot);
    *a = (wg_automaton){ 0 };
}

void wg_automaton_begin(wg_automaton *a) { a->last = a->near = 0; }

/* ---- edges */

static uint32_t home(const wg_automaton *a, int state, int32_t token)
{
    return (uint32_t)wg_hash_mix((uint64_t)(uint32_t)state << 32 | (uint32_t)token) & (a->slots - 1);
}

int wg_automaton_find(const wg_automaton *a, int state, int32_t token)
{
    for (uint32_t i = home(a, state, token); a->slot[i]; i = (i + 1) & (a->slots - 1)) {
        const wg_automaton_edge *e = &a->edge[a->slot[i] - 1];
        if (e->from == state && e->token == token) return (int)a->slot[i] - 1;
    }
    return -1;
}

static int edge_new(wg_automaton *a, int from, int32_t token, int to)
{
    wg_assert(a->edges < 3 * a->cap);
    const int e = a->edges++;
    a->edge[e] = (wg_automaton_edge){ .from = from, .token = token, .to = to, .next = a->state[from].first };
    a->state[from].first = e;
    uint32_t i = home(a, from, token);
    while (a->slot[i]) i = (i + 1) & (a->slots - 1);
    a->slot[i] = (uint32_t)e + 1;
    return e;
}

/* ---- states */

static int state_new(wg_automaton *a, int len, int link, int32_t end)
{
    wg_assert(a->states < 2 * a->cap + 1);
    a->state[a->states] = (wg_automaton_state){ len, link, -1, end };
    if (a->counts) a->counts[a->states] = (wg_automaton_counts){ 0, { -1, -1, -1, -1 } };
    return a->states++;
}

/* Splits off a state for the strings of `q` of at most `len` tokens, with q's edges and counts; edges to q from p and its links
 * lead to it. */
static int split(wg_automaton *a, int q, int len, int p, int32_t token)
{
    const int clone = state_new(a, len, a->state[q].link, a->state[q].end);
    for (int e = a->state[q].first; e >= 0; e = a->edge[e].next) {
        const int copy = edge_new(a, clone, a->edge[e].token, a->edge[e].to);
        a->edge[copy].count = a->edge[e].count;
        for (int i = 0; a->counts && i < WG_AUTOMATON_TOP; i++)
            if (a->counts[q].top[i] == e) a->counts[clone].top[i] = copy;
    }
    if (a->counts) a->counts[clone].out = a->counts[q].out;
    a->state[q].link = clone;
    for (int e; p >= 0 && (e = wg_automaton_find(a, p, token)) >= 0 && a->edge[e].to == q; p = a->state[p].link)
        a->edge[e].to = clone;
    return clone;
}

/* Appends a token to the text and returns the state of the whole. */
static int extend(wg_automaton *a, int32_t token, int32_t at)
{
    int p = a->last, e = wg_automaton_find(a, p, token);
    if (e >= 0) { /* a later text repeats an earlier one */
        const int q = a->edge[e].to;
        return a->state[q].len == a->state[p].len + 1 ? q : split(a, q, a->state[p].len + 1, p, token);
    }
    const int now = state_new(a, a->state[p].len + 1, 0, at);
    for (; p >= 0 && (e = wg_automaton_find(a, p, token)) < 0; p = a->state[p].link) edge_new(a, p, token, now);
    if (p < 0) return now;
    const int q = a->edge[e].to;
    a->state[now].link = a->state[q].len == a->state[p].len + 1 ? q : split(a, q, a->state[p].len + 1, p, token);
    return now;
}

/* ---- counts */

/* Keeps the most frequent edges first, after `e` has been counted. */
static void raise_edge(const wg_automaton *a, wg_automaton_counts *c, int e)
{
    int i = 0;
    while (i < WG_AUTOMATON_TOP && c->top[i] >= 0 && c->top[i] != e) i++;
    if (i == WG_AUTOMATON_TOP) {
        if (a->edge[e].count <= a->edge[c->top[--i]].count) return;
    }
    c->top[i] = e;
    for (; i > 0 && a->edge[e].count > a->edge[c->top[i - 1]].count; i--) {
        c->top[i] = c->top[i - 1];
        c->top[i - 1] = e;
    }
}

/* Counts the token after every context of at most depth tokens before it. */
static void count(wg_automaton *a, int32_t token)
{
    a->near = wg_automaton_near(a, a->near); /* the extension may have split it */
    int to = 0;
    for (int p = a->near; p >= 0; p = a->state[p].link) {
        const int e = wg_automaton_find(a, p, token);
        if (p == a->near) to = a->edge[e].to;
        a->edge[e].count++;
        a->counts[p].out++;
        raise_edge(a, &a->counts[p], e);
    }
    a->near = wg_automaton_near(a, to);
}

bool wg_automaton_put(wg_automaton *a, int32_t token, int32_t at)
{
    if (a->tokens == a->cap) return false;
    a->last = extend(a, token, at);
    a->tokens++;
    if (a->counts) count(a, token);
    return true;
}

int wg_automaton_step(const wg_automaton *a, int state, int *len, int32_t token)
{
    for (;;) {
        const int e = wg_automaton_find(a, state, token);
        if (e >= 0) {
            ++*len;
            return a->edge[e].to;
        }
        if (state == 0) return *len = 0;
        state = a->state[state].link;
        *len = a->state[state].len;
    }
}
