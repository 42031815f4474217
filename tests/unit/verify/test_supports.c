/* SPDX-License-Identifier: MIT
 * Rules decide on rows with a known support as on the same rows without: the same path, the same next token, for any
 * contents of the storage outside the support. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/dist/sampler.h"
#include "kernels/cpu.h"
#include "kernels/philox.h"
#include "tests/accept.h"
#include "tests/unit/verify/rule_options.h"

enum { V = 4000, NODES = WG_TREE_MAX > 8 ? 13 : 7, TRIALS = 100 };

static double uniform(uint32_t a, uint32_t b)
{
    const wg_philox w = wg_philox_at(17, a, b, 0, 0);
    return wg_philox_double(w.v[0], w.v[1]);
}

static void fill(wg_sampler *s, wg_rows *r, uint32_t number, double noise)
{
    static float x[V];
    for (uint32_t i = 0; i < V; i++)
        x[i] = (float)(-2.2 * log(1 + (double)((i * 7919u + number / 2) % V)) + noise * uniform(i, number));
    wg_sampler_row(s, x, r, wg_rows_push(r));
}

/* Children of a node: drawn from its q row, or the largest of p when nothing is drawn. */
static void grow(wg_tree *t, wg_rows *p, wg_rows *q, wg_sibling_law law, int wide, uint32_t trial)
{
    wg_tree_reset(t, 1, law);
    for (int parent = 0; t->n < NODES && parent < t->n; parent++)
        for (int k = 0; k < wide && t->n < NODES; k++) {
            const wg_chance c = wg_chance_philox(3, trial, (uint32_t)t->n);
            const int32_t x = law == WG_LAW_FIXED ? wg_rows_pick(p, parent, &c, WG_DRAW_DRAFT, k)
                                                  : wg_rows_pick(q, parent, &c, WG_DRAW_DRAFT, k);
            if (law == WG_LAW_WITHOUT_REPLACEMENT && wg_tree_find(t, parent, x) >= 0) continue;
            wg_tree_push(t, parent, x, law == WG_LAW_FIXED ? -1 : parent);
        }
}

static void copy_dense(wg_rows *to, wg_rows *from)
{
    for (int i = 0; i < from->n; i++) {
        wg_rows_push(to);
        to->point[i] = from->point[i];
        memcpy(wg_rows_at(to, i), wg_rows_at(from, i), V * sizeof *to->p);
    }
}

Test(supports, rules_decide_as_without_them)
{
    static const wg_sibling_law laws[] = { WG_LAW_FIXED, WG_LAW_IID, WG_LAW_WITHOUT_REPLACEMENT };
    const wg_sampling chain = WG_SAMPLING(1, 0, 0.9, 0);
    wg_sampler s;
    wg_rows p, q, p_dense, q_dense;
    cr_assert(wg_sampler_open(&s, &chain, wg_ops_for(WG_CPU_REF), V, NULL) == WG_OK);
    cr_assert(wg_rows_open(&p, NODES, V, NULL) == WG_OK && wg_rows_open(&q, NODES, V, NULL) == WG_OK);
    cr_assert(wg_rows_open(&p_dense, NODES, V, NULL) == WG_OK && wg_rows_open(&q_dense, NODES, V, NULL) == WG_OK);
    for (uint32_t i = 0; i < NODES; i++) {
        fill(&s, &p, 2 * i, 1);
        fill(&s, &q, 2 * i + 1, 2);
        cr_assert(wg_rows_support(&p, (int)i).token && wg_rows_support(&q, (int)i).token);
    }
    p.point[NODES - 1] = 5; /* a point over a row that had a list */
    copy_dense(&p_dense, &p);
    copy_dense(&q_dense, &q);
    static rule_setting setting[RULE_SETTINGS];
    const int settings = rule_settings(setting);
    for (int i = 0; i < settings; i++) {
        const wg_verifier_class *rule = setting[i].rule;
        const void *options = setting[i].options;
        int longer = 0;
        for (uint32_t trial = 0; trial < TRIALS; trial++)
            for (size_t law = 0; law < sizeof laws / sizeof *laws; law++)
                for (int wide = 1; wide <= (rule->chains ? 1 : 3); wide += 2) {
                    if (!(rule->laws & laws[law])) continue;
                    wg_tree t;
                    wg_path a, b;
                    const wg_chance chance = wg_chance_philox(4, trial, 9);
                    grow(&t, &p, &q, laws[law], wide, trial);
                    accept_alone(rule, options, &t, &p, &q, &chance, &a);
                    accept_alone(rule, options, &t, &p_dense, &q_dense, &chance, &b);
                    cr_assert(a.n == b.n && a.next == b.next && memcmp(a.node, b.node, (size_t)a.n * sizeof *a.node) == 0,
                              "%s, law %s, %d wide, trial %u: %d tokens then %d, without lists %d then %d", rule->name,
                              wg_law_name(laws[law]), wide, trial, a.n, a.next, b.n, b.next);
                    longer += a.n > 1;
                }
        cr_assert(longer > 20, "%s:%s keeps nothing", rule->name, setting[i].text);
    }
    wg_rows_close(&p);
    wg_rows_close(&q);
    wg_rows_close(&p_dense);
    wg_rows_close(&q_dense);
    wg_sampler_close(&s);
}
