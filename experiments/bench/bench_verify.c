/* SPDX-License-Identifier: MIT
 * wager bench verify. A chain of rows - 1 tokens and a tree as large as trees get, drafted from q; rows of p are lazy over
 * logits, the rule accepts and draws: that is a step. Also timed: materialising all rows, and the rule over materialised
 * rows. One thread, its CPU time, so that other load does not count; every repeat has its logits in other memory, outside
 * the near caches. Kinds of logits, because truncated rows cost what they keep:
 *   zipf    the kth token of a random order has -1.3 ln k + noise: a language model's shape
 *   flat    normal, deviation 1: nearly the whole vocabulary is in the nucleus, the worst there is
 * q is p of the same logits with noise of deviation 0.5. And, so that no row is spared by a rejection,
 *   equal   as flat, and q is p: all tests pass */
#include "experiments/bench/bench_parts.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/json.h"
#include "core/base/json_line.h"
#include "core/base/mem.h"
#include "core/dist/sampler.h"
#include "core/setup/spec.h"
#include "experiments/base/timing.h"
#include "kernels/cpu.h"
#include "kernels/philox.h"

enum { SETS = 3 };

static const double BAR_MS = 2, GREEDY_BAR_MS = 0.3; /* of a step of 17 rows of 128,256 logits */

typedef struct kind {
    const char *name;
    bool flat;
    float noise; /* deviation of q's logits from p's */
} kind;

typedef struct stage {
    const wg_verify_bench *b;
    const wg_ops *ops;
    wg_sampler sampler;
    wg_rows p, q;
    wg_workspace work;
    float *logits; /* (SETS, nodes, vocab): the same numbers SETS times */
    int nodes;     /* number of rows */
    wg_tree tree;
} stage;

/* Two normal deviates (Box and Muller). */
static void normals(uint64_t seed, uint32_t a, uint32_t b, uint32_t c, double out[2])
{
    const wg_philox w = wg_philox_at(seed, a, b, c, 0);
    const double r = sqrt(-2 * log(1 - wg_philox_double(w.v[0], w.v[1]))),
                 t = 6.283185307179586 * wg_philox_double(w.v[2], w.v[3]);
    out[0] = r * cos(t);
    out[1] = r * sin(t);
}

static void fill_logits(const stage *s, bool flat)
{
    const uint32_t V = (uint32_t)s->p.vocab;
    for (uint32_t row = 0; row < (uint32_t)s->nodes; row++) {
        float *x = s->logits + (size_t)row * V;
        const wg_philox w = wg_philox_at(s->b->seed, row, 1, 0, 0);
        for (uint32_t i = 0; i < V; i++) {
            double z[2];
            normals(s->b->seed, i, row, 2, z);
            const uint64_t rank = ((uint64_t)i * 2654435761u + w.v[0]) % V; /* a prime: all ranks when it does not divide V */
            x[i] = (float)(flat ? z[0] : -1.3 * log(1.0 + (double)rank) + 0.5 * z[0]);
        }
    }
    const size_t set = (size_t)s->nodes * V;
    for (size_t k = 1; k < SETS; k++) memcpy(s->logits + k * set, s->logits, set * sizeof *s->logits);
}

/* The q row of one node, and a draft drawn from it. */
static void draft_row(stage *s, float noise, float *noisy, int node)
{
    const int V = s->p.vocab;
    const float *x = s->logits + (size_t)node * (size_t)V;
    for (int i = 0; i < V; i++) {
        double z[2];
        normals(s->b->seed, (uint32_t)i, (uint32_t)node, 3, z);
        noisy[i] = x[i] + noise * (float)z[0];
    }
    wg_sampler_row(&s->sampler, noisy, &s->q, wg_rows_push(&s->q));
}

/* A tree of n nodes, `wide` children for every node until it is full. Nodes are drawn from the q row of their parent, others
 * for every `request`. */
static void draft_tree(stage *s, int n, int wide, wg_sibling_law law, uint32_t request)
{
    wg_tree *t = &s->tree;
    wg_tree_reset(t, 0, law);
    for (int parent = 0; t->n < n && parent < t->n; parent++)
        for (int k = 0; k < wide && t->n < n; k++) {
            const wg_chance c = wg_chance_philox(s->b->seed, request, (uint32_t)t->n);
            int32_t token = wg_rows_pick(&s->q, parent, &c, WG_DRAW_DRAFT, k);
            for (int tries = 0; law == WG_LAW_WITHOUT_REPLACEMENT && tries < 1000 && wg_tree_find(t, parent, token) >= 0;
                 tries++)
                token = wg_rows_pick(&s->q, parent, &c, WG_DRAW_DRAFT, wide * (tries + 1) + k);
            if (law == WG_LAW_WITHOUT_REPLACEMENT && wg_tree_find(t, parent, token) >= 0) break;
            wg_tree_push(t, parent, token, parent);
        }
}

static wg_sibling_law law_of(const wg_verifier_class *v)
{
    static const wg_sibling_law all[] = { WG_LAW_IID, WG_LAW_WITHOUT_REPLACEMENT, WG_LAW_FIXED };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (v->laws & all[i]) return all[i];
    return WG_LAW_COUPLED;
}

typedef struct cost {
    double step, sample, accept; /* medians in seconds: of a step; of materialising all its rows; of the rule over
                                  * materialised rows */
    long emitted;
    uint64_t allocations;
} cost;

static cost measure(stage *s, const wg_verifier_class *rule, const void *options, int nodes, int wide)
{
    const size_t V = (size_t)s->p.vocab;
    double step[WG_BENCH_REPEATS], sample[WG_BENCH_REPEATS], accept[WG_BENCH_REPEATS];
    cost c = { 0 };
    const uint64_t calls = wg_mem_read().calls;
    for (int r = -2; r < s->b->repeats; r++) { /* the first two are warm-up */
        draft_tree(s, nodes, wide, law_of(rule), (uint32_t)(r + 3));
        s->p.n = s->tree.n;
        const size_t set = (size_t)s->nodes * V;
        const float *x = s->logits + (size_t)((2 * r + 4) % SETS) * set, *y = s->logits + (size_t)((2 * r + 5) % SETS) * set;
        const wg_chance chance = wg_chance_philox(s->b->seed, 0, (uint32_t)(r + 2));
        wg_path path;
        const double begin = wg_bench_clock(1);
        for (int i = 0; i < s->tree.n; i++) wg_sampler_lazy(&s->sampler, y + (size_t)i * V, &s->p, i);
        rule->accept(options, &s->tree, &s->p, &s->q, &chance, &s->work, &path);
        const double start = wg_bench_clock(1);
        for (int i = 0; i < s->tree.n; i++) wg_sampler_row(&s->sampler, x + (size_t)i * V, &s->p, i);
        const double sampled = wg_bench_clock(1);
        rule->accept(options, &s->tree, &s->p, &s->q, &chance, &s->work, &path);
        const double end = wg_bench_clock(1);
        if (r < 0) continue;
        step[r] = start - begin;
        sample[r] = sampled - start;
        accept[r] = end - sampled;
        c.emitted += path.n;
    }
    c.allocations = wg_mem_read().calls - calls;
    c.step = wg_bench_median(step, s->b->repeats);
    c.sample = wg_bench_median(sample, s->b->repeats);
    c.accept = wg_bench_median(accept, s->b->repeats);
    return c;
}

static void print_line(const stage *s, const char *rule, const char *kind, const cost *chain, const cost *tree, int nodes)
{
    const double emitted = (double)chain->emitted / s->b->repeats;
    const uint64_t allocations = chain->allocations + (tree ? tree->allocations : 0);
    if (s->b->json) {
        json_t *o =
            json_pack("{s:s, s:s, s:i, s:i, s:f, s:f, s:f, s:f, s:I}", "rule", rule, "rows_are", kind, "vocab", s->p.vocab,
                      "rows", s->b->rows, "sample_ms", chain->sample * 1e3, "accept_ms", chain->accept * 1e3, "step_ms",
                      chain->step * 1e3, "emitted", emitted, "allocations", (json_int_t)allocations);
        if (tree) json_object_set_new(o, "tree_node_us", json_real(tree->accept / nodes * 1e6));
        wg_json_put_line(o, 0);
        return;
    }
    printf("%-20s %-7s %9.3f %12.3f %10.3f %8.2f ", rule, kind, chain->step * 1e3, chain->sample * 1e3, chain->accept * 1e3,
           emitted);
    if (tree) printf("%12.2f", tree->accept / nodes * 1e6);
    else printf("%12s", "-");
    printf(" %11" PRIu64 "\n", allocations);
}

static wg_status bench_rule(stage *s, const wg_verifier_class *v, const char *kind, double *step, wg_error *err)
{
    void *options = NULL;
    if (v->options) {
        if (!(options = wg_calloc(1, v->size))) return wg_nomem(err, v->size, "a rule's options");
        wg_option_defaults(v->options, options);
    }
    const cost chain = measure(s, v, options, s->b->rows, 1);
    cost tree;
    int nodes = 0;
    if (!v->chains) {
        tree = measure(s, v, options, s->nodes, 3);
        nodes = s->tree.n;
    }
    *step = chain.step;
    print_line(s, v->name, kind, &chain, v->chains ? NULL : &tree, nodes);
    wg_free(options);
    return WG_OK;
}

/* All rules on one kind of rows; temperature 0: `greedy` alone unless another is named. */
static wg_status bench_kind(stage *s, const kind *k, double temperature, wg_error *err)
{
    const bool all = !strcmp(s->b->rule, "all");
    const wg_sampling sampling = WG_SAMPLING(temperature, 0, s->b->top_p, 0);
    const double bar = temperature > 0 ? BAR_MS : GREEDY_BAR_MS;
    int rules = 0, within = 0;
    wg_status status = wg_sampler_open(&s->sampler, &sampling, s->ops, s->p.vocab, err);
    float *noisy = wg_alloc((size_t)s->p.vocab, sizeof *noisy);
    if (!status && !noisy) status = wg_nomem(err, (size_t)s->p.vocab * sizeof *noisy, "logits of the draft");
    if (!status) fill_logits(s, k->flat);
    wg_rows_clear(&s->q);
    for (int node = 0; !status && node < s->nodes; node++) draft_row(s, k->noise, noisy, node);
    for (int i = 0; !status && wg_program_plugins.verifiers[i]; i++) {
        const wg_verifier_class *v = wg_program_plugins.verifiers[i];
        double step = 0;
        if (all ? !wg_verifier_lossless(v, temperature) || v->zero_only != (temperature <= 0)
                : strcmp(v->name, s->b->rule) != 0)
            continue;
        status = bench_rule(s, v, k->name, &step, err);
        rules++;
        within += step * 1e3 <= bar;
    }
    if (!status && !s->b->json)
        printf("%-20s %-7s %9.3f: %d of %d rules are within it\n", "the bar", k->name, bar, within, rules);
    wg_free(noisy);
    wg_sampler_close(&s->sampler);
    return status;
}

wg_status wg_bench_verify(const wg_verify_bench *b, wg_error *err)
{
    stage s = { .b = b, .ops = wg_ops_for(wg_cpu_chosen()) };
    const wg_verifier_class *named;
    if (strcmp(b->rule, "all") != 0) WG_TRY(wg_find_verifier(&wg_program_plugins, b->rule, &named, err));
    wg_assert(b->rows >= 1 && b->rows <= WG_TREE_MAX && b->repeats >= 1 && b->repeats <= WG_BENCH_REPEATS);
    s.nodes = WG_TREE_MAX;
    wg_status status = wg_rows_open(&s.p, s.nodes, b->vocab, err);
    if (!status) status = wg_rows_open(&s.q, s.nodes, b->vocab, err);
    if (!status) status = wg_workspace_open(&s.work, b->vocab, err);
    const size_t floats = (size_t)SETS * (size_t)s.nodes * (size_t)b->vocab;
    if (!status && !(s.logits = wg_alloc(floats, sizeof *s.logits)))
        status = wg_nomem(err, floats * sizeof *s.logits, "logits");
    if (!status && !b->json)
        printf(
            "vocabulary %d, a chain of %d rows, a tree of %d nodes; T=%g, top-p %g; %s; CPU time of one thread, medians of %d\n"
            "rule                 rows      step ms  all rows ms  accept ms  emitted tree us/node allocations\n",
            b->vocab, b->rows, s.nodes, b->temperature, b->top_p, s.ops->name, b->repeats);
    if (!status) status = bench_kind(&s, &(kind){ "greedy", false, 0.5f }, 0, err);
    static const kind kinds[] = { { "zipf", false, 0.5f }, { "flat", true, 0.5f }, { "equal", true, 0 } };
    for (size_t k = 0; !status && k < sizeof kinds / sizeof *kinds; k++)
        status = bench_kind(&s, &kinds[k], b->temperature, err);
    wg_free(s.logits);
    wg_workspace_close(&s.work);
    wg_rows_close(&s.q);
    wg_rows_close(&s.p);
    return status;
}
