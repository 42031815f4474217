/* SPDX-License-Identifier: MIT
 * Rules decide on lazy rows as on materialised ones: the same path, the same next token. Most rows are flat, so that single
 * probabilities are read before the row is materialised. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/dist/sampler.h"
#include "kernels/cpu.h"
#include "kernels/philox.h"
#include "tests/accept.h"
#include "verify/verify.h"

enum { V = 6000, NODES = WG_TREE_MAX > 8 ? 13 : 7, TRIALS = 12 };

static float logits[NODES][V];

static double normal(uint32_t a, uint32_t b)
{
    const wg_philox w = wg_philox_at(19, a, b, 0, 0);
    return sqrt(-2 * log(1 - wg_philox_double(w.v[0], w.v[1]))) * cos(6.283185307179586 * wg_philox_double(w.v[2], w.v[3]));
}

static void fill(wg_sampler *s, wg_rows *p, wg_rows *q, uint32_t row)
{
    static float noisy[V];
    for (uint32_t i = 0; i < V; i++) {
        const double flat = normal(i, row), x = row % 4 == 3 ? -2 * log(1 + (double)(i * 7919u % V)) + flat : flat;
        logits[row][i] = (float)x;
        noisy[i] = (float)(x + 0.4 * normal(i, row + 100));
    }
    wg_sampler_row(s, logits[row], p, wg_rows_push(p));
    wg_sampler_row(s, noisy, q, wg_rows_push(q));
}

static void grow(wg_tree *t, wg_rows *q, wg_sibling_law law, int wide, uint32_t trial)
{
    wg_tree_reset(t, 1, law);
    for (int parent = 0; t->n < NODES && parent < t->n; parent++)
        for (int k = 0; k < wide && t->n < NODES; k++) {
            const wg_chance c = wg_chance_philox(3, trial, (uint32_t)t->n);
            const int32_t x = wg_rows_pick(q, parent, &c, WG_DRAW_DRAFT, k);
            if (law != WG_LAW_IID && wg_tree_find(t, parent, x) >= 0) continue;
            wg_tree_push(t, parent, x, law == WG_LAW_FIXED ? -1 : parent);
        }
}

Test(lazy_decisions, rules_decide_as_on_made_rows)
{
    static const wg_sibling_law laws[] = { WG_LAW_FIXED, WG_LAW_IID, WG_LAW_WITHOUT_REPLACEMENT };
    const wg_sampling chain = WG_SAMPLING(0.8, 0, 0.95, 0);
    wg_sampler s;
    wg_rows p, q, late;
    int spared = 0, longer = 0;
    cr_assert(wg_sampler_open(&s, &chain, wg_ops_for(wg_cpu_best()), V, NULL) == WG_OK);
    cr_assert(wg_rows_open(&p, NODES, V, NULL) == WG_OK && wg_rows_open(&q, NODES, V, NULL) == WG_OK);
    cr_assert(wg_rows_open(&late, NODES, V, NULL) == WG_OK);
    for (uint32_t i = 0; i < NODES; i++) fill(&s, &p, &q, i);
    late.n = NODES;
    for (int i = 0; wg_verifiers[i]; i++) {
        const wg_verifier_class *v = wg_verifiers[i];
        void *options = v->options ? wg_calloc(1, v->size) : NULL;
        if (options) wg_option_defaults(v->options, options);
        for (uint32_t trial = 0; trial < TRIALS; trial++)
            for (size_t law = 0; law < sizeof laws / sizeof *laws; law++)
                for (int wide = 1; wide <= (v->chains ? 1 : 3); wide += 2) {
                    wg_tree t;
                    wg_path a, b;
                    const wg_chance chance = wg_chance_philox(4, trial, 9);
                    if (!(v->laws & laws[law])) continue;
                    grow(&t, &q, laws[law], wide, trial);
                    for (int row = 0; row < NODES; row++) wg_sampler_lazy(&s, logits[row], &late, row);
                    accept_alone(v, options, &t, &p, &q, &chance, &a);
                    accept_alone(v, options, &t, &late, &q, &chance, &b);
                    cr_assert(a.n == b.n && a.next == b.next && memcmp(a.node, b.node, (size_t)a.n * sizeof *a.node) == 0,
                              "%s, law %s, %d wide, trial %u: %d tokens then %d, promised %d then %d", v->name,
                              wg_law_name(laws[law]), wide, trial, a.n, a.next, b.n, b.next);
                    longer += a.n > 1;
                    for (int row = 0; row < t.n; row++) spared += late.lazy[row].state == WG_ROW_LAZY;
                }
        wg_free(options);
    }
    cr_assert(longer > 100 && spared > 1000, "%d paths kept something, %d rows were never made", longer, spared);
    wg_rows_close(&p);
    wg_rows_close(&q);
    wg_rows_close(&late);
    wg_sampler_close(&s);
}
