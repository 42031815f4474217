/* SPDX-License-Identifier: MIT
 * With few sub-layers every set is evaluated. Otherwise there are three stages, which share the best set so far: the early
 * exits; the sub-layers in the order of the value of skipping each alone, added one by one; then changes of the best set, drawn
 * at addresses of the seed and kept when they are better (SWIFT's random search, without its model of the objective). No set is
 * evaluated twice. */
#include "experiments/analysis/skip_search.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/model/submodel.h"
#include "kernels/philox.h"

enum { STREAM = 0x5C1B }; /* stream of its draws */

/* Sub-layer i of a set is bit i % 2 of layer i / 2: attention, MLP. */
typedef struct search {
    const wg_skip_problem *p;
    int n;                /* sub-layers */
    uint8_t *skip, *best; /* (layers) the current set; the best so far */
    double value;         /* of the best */
    uint8_t *seen;        /* (seen_cap, layers) sets that were evaluated */
    long seen_n, seen_cap;
    double *alone; /* (n) value of skipping one sub-layer alone */
    int *order;    /* (n) */
} search;

static bool has(const uint8_t *skip, int i) { return skip[i / 2] >> (i % 2) & 1; }
static void toggle(uint8_t *skip, int i) { skip[i / 2] ^= (uint8_t)(1 << (i % 2)); }

static int size_of(const search *s, const uint8_t *skip)
{
    int n = 0;
    for (int i = 0; i < s->n; i++) n += has(skip, i);
    return n;
}

static bool was_seen(const search *s)
{
    const size_t layers = (size_t)s->p->layers;
    for (long i = 0; i < s->seen_n; i++)
        if (!memcmp(s->seen + (size_t)i * layers, s->skip, layers)) return true;
    return false;
}

/* Evaluates the current set if it is new, and neither empty nor full; otherwise *value is NAN. It can become the best only
 * if it has the required size. */
static wg_status evaluate(search *s, double *value, wg_error *err)
{
    const size_t layers = (size_t)s->p->layers;
    const int size = size_of(s, s->skip);
    *value = NAN;
    if (size == 0 || size == s->n || was_seen(s)) return WG_OK;
    if (s->seen_n == s->seen_cap) {
        const long cap = 2 * s->seen_cap + 64;
        uint8_t *more = wg_realloc(s->seen, (size_t)cap * layers, 1);
        if (!more) return wg_nomem(err, (size_t)cap * layers, "the sets of a search");
        s->seen = more;
        s->seen_cap = cap;
    }
    memcpy(s->seen + (size_t)s->seen_n++ * layers, s->skip, layers);
    WG_TRY(s->p->value(s->p->user, s->skip, value, err));
    if ((s->p->size && size != s->p->size) || !(*value > s->value)) return WG_OK;
    s->value = *value;
    memcpy(s->best, s->skip, layers);
    return WG_OK;
}

/* ---- the stages */

/* The number of sets of the required size, at most `most` + 1. */
static double sets(const search *s, double most)
{
    double all = 1;
    for (int i = 0; i < s->n && all <= most; i++) all *= 2;
    if (!s->p->size || all > most * 1e9) return all;
    double some = 1;
    for (int i = 0; i < s->p->size; i++) some = some * (s->n - i) / (i + 1);
    return some;
}

static wg_status try_all(search *s, wg_error *err)
{
    double value;
    for (uint64_t set = 1; set + 1 < (uint64_t)1 << s->n; set++) {
        if (s->p->size && __builtin_popcountll(set) != s->p->size) continue;
        for (int l = 0; l < s->p->layers; l++) s->skip[l] = (uint8_t)(set >> (2 * l) & 3);
        WG_TRY(evaluate(s, &value, err));
    }
    return WG_OK;
}

static wg_status try_exits(search *s, wg_error *err)
{
    double value;
    for (int exit = 1; exit < s->p->layers; exit++) {
        if (s->p->size && s->p->size != s->n - 2 * exit) continue;
        for (int l = 0; l < s->p->layers; l++) s->skip[l] = l < exit ? 0 : WG_SKIP_ATTENTION | WG_SKIP_MLP;
        WG_TRY(evaluate(s, &value, err));
    }
    return WG_OK;
}

static wg_status try_in_order(search *s, wg_error *err)
{
    const size_t layers = (size_t)s->p->layers;
    double value;
    for (int i = 0; i < s->n; i++) {
        memset(s->skip, 0, layers);
        toggle(s->skip, i);
        WG_TRY(evaluate(s, &value, err));
        s->alone[i] = value;
        int at = i; /* in descending order; among equals the earlier first */
        for (; at > 0 && s->alone[s->order[at - 1]] < value; at--) s->order[at] = s->order[at - 1];
        s->order[at] = i;
    }
    memset(s->skip, 0, layers);
    for (int i = 0; i < (s->p->size ? s->p->size : s->n - 1); i++) {
        toggle(s->skip, s->order[i]);
        if (!s->p->size || i + 1 == s->p->size) WG_TRY(evaluate(s, &value, err));
    }
    return WG_OK;
}

/* Adds, removes or exchanges one sub-layer. */
static void change(const search *s, const wg_philox *r)
{
    const int a = (int)(r->v[1] % (uint32_t)s->n), b = (int)(r->v[2] % (uint32_t)s->n);
    if (s->p->size || r->v[0] % 2) {
        if (has(s->skip, a) == has(s->skip, b)) return;
        toggle(s->skip, b);
    }
    toggle(s->skip, a);
}

/* One change, with probability 1/2 another, and so on: so the search also leaves a best set whose neighbours have all been
 * evaluated. */
static wg_status try_changes(search *s, wg_error *err)
{
    double value;
    const long most = s->seen_n + s->p->tries;
    for (uint32_t i = 0; s->seen_n < most && i < 20 * (uint64_t)s->p->tries; i++) {
        memcpy(s->skip, s->best, (size_t)s->p->layers);
        for (uint32_t k = 0, more = 1; more; k++) {
            const wg_philox r = wg_philox_at(s->p->seed, i, STREAM, k, 0);
            change(s, &r);
            more = r.v[3] % 2;
        }
        WG_TRY(evaluate(s, &value, err));
    }
    return WG_OK;
}

static wg_status run(search *s, wg_error *err)
{
    if (s->n <= 40 && sets(s, (double)s->p->tries) <= (double)s->p->tries) return try_all(s, err);
    WG_TRY(try_exits(s, err));
    WG_TRY(try_in_order(s, err));
    return try_changes(s, err);
}

wg_status wg_skip_search(const wg_skip_problem *p, uint8_t *best, double *value, long *evaluated, wg_error *err)
{
    search s = { .p = p, .n = 2 * p->layers, .value = -INFINITY };
    if (p->layers < 1) return wg_fail(err, WG_EINVAL, "a model of %d layers: there is nothing to leave out", p->layers);
    if (p->size < 0 || p->size >= s.n)
        return wg_fail(err, WG_EINVAL,
                       "%d sub-layers to leave out: the model has %d (an attention and an MLP a layer); expected "
                       "1..%d, or 0 for the best number",
                       p->size, s.n, s.n - 1);
    s.skip = wg_calloc((size_t)p->layers, sizeof *s.skip);
    s.best = wg_calloc((size_t)p->layers, sizeof *s.best);
    s.alone = wg_calloc((size_t)s.n, sizeof *s.alone);
    s.order = wg_calloc((size_t)s.n, sizeof *s.order);
    wg_status st =
        s.skip && s.best && s.alone && s.order ? run(&s, err) : wg_nomem(err, (size_t)s.n * sizeof *s.alone, "a search");
    if (!st && s.value == -INFINITY) st = wg_fail(err, WG_EINVAL, "no set of sub-layers could be measured");
    if (!st) {
        memcpy(best, s.best, (size_t)p->layers);
        *value = s.value;
        *evaluated = s.seen_n;
    }
    wg_free(s.skip);
    wg_free(s.best);
    wg_free(s.alone);
    wg_free(s.order);
    wg_free(s.seen);
    return st;
}

const char *wg_skip_list(const uint8_t *skip, int layers, uint8_t bit, char *buf, size_t size)
{
    size_t n = 0;
    buf[0] = '\0';
    for (int i = 0; i < layers && n < size; i++) {
        if (!(skip[i] & bit)) continue;
        int last = i;
        while (last + 1 < layers && skip[last + 1] & bit) last++;
        n += (size_t)snprintf(buf + n, size - n, last > i ? "%s%d-%d" : "%s%d", n ? "/" : "", i, last);
        i = last;
    }
    return buf;
}
