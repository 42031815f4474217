/* SPDX-License-Identifier: MIT
 * Invalid rows. The sampler never produces them (NaN logits count as -inf, a row without a finite logit is one-hot), but a
 * rule must handle any input: it returns a path of the tree and a token, it does not crash, hang or read past a row. Run
 * under the sanitizers. */
#include <math.h>

#include "core/base/mem.h"
#include "core/dist/optimal_acceptance.h"
#include "tests/unit/verify/rule_options.h"
#include "tests/unit/verify/small.h"

enum { V = 7, KINDS = 10 };

static uint32_t dice(uint32_t a, uint32_t b, uint32_t c) { return wg_philox_at(41, a, b, c, 0).v[0]; }

static void garbage(wg_rows *r, int row, uint32_t number)
{
    double *p = wg_rows_at(r, row);
    const uint32_t kind = dice(number, (uint32_t)row, 0) % KINDS;
    random_row(number, (uint32_t)row, V, p);
    r->point[row] = -1;
    for (uint32_t x = 0; x < V; x++) {
        const uint32_t d = dice(number, (uint32_t)row, x + 1);
        switch (kind) {
        case 0: p[x] = NAN; break;
        case 1: p[x] = 0; break;
        case 2: p[x] = INFINITY; break;
        case 3: p[x] = 5e-324 * (d % 3); break;
        case 4: p[x] = d % 4 == 0 ? NAN : p[x]; break;
        case 5: p[x] = d % 4 == 0 ? INFINITY : d % 4 == 1 ? -1 : p[x]; break;
        case 6: p[x] = x == number % V ? 1 : 0; break; /* all on one token, and not said to be a point */
        case 7: p[x] *= 1e300; break;
        case 8: r->point[row] = (int32_t)(number % V); break;
        default: break;
        }
    }
}

/* A tree of a law; tokens as they come, so that q seldom could have drawn them. */
static wg_tree any_tree(uint32_t number, wg_sibling_law law, bool chain)
{
    wg_tree t;
    wg_tree_reset(&t, 0, law);
    const int n = 1 + (int)(dice(number, 0, 77) % (WG_TREE_MAX < 20 ? WG_TREE_MAX : 20));
    for (uint32_t i = 0; t.n < n && i < 200; i++) {
        const int parent = chain ? t.n - 1 : (int)(dice(number, i, 78) % (uint32_t)t.n), x = (int)(dice(number, i, 79) % V);
        if (law == WG_LAW_WITHOUT_REPLACEMENT && wg_tree_find(&t, parent, x) >= 0) continue;
        wg_tree_push(&t, parent, x, parent);
    }
    return t;
}

static void expect_path(const wg_verifier_class *rule, const wg_tree *t, const wg_path *path, uint32_t number)
{
    cr_assert(path->n >= 1 && path->n <= t->n && path->node[0] == 0, "%s, case %u", rule->name, number);
    for (int i = 1; i < path->n; i++)
        cr_assert(path->node[i] > 0 && path->node[i] < t->n && t->parent[path->node[i]] == path->node[i - 1], "%s, case %u",
                  rule->name, number);
    cr_assert(path->next >= 0 && path->next < V, "%s, case %u: next %d", rule->name, number, (int)path->next);
}

Test(garbage, every_rule_returns_a_path)
{
    static const wg_sibling_law laws[] = { WG_LAW_FIXED, WG_LAW_IID, WG_LAW_WITHOUT_REPLACEMENT, WG_LAW_COUPLED };
    wg_rows p, q;
    cr_assert(wg_rows_open(&p, WG_TREE_MAX, V, NULL) == WG_OK && wg_rows_open(&q, WG_TREE_MAX, V, NULL) == WG_OK);
    for (int i = 0; i < WG_TREE_MAX; i++) wg_rows_push(&p), wg_rows_push(&q);
    static rule_setting setting[RULE_SETTINGS];
    const int settings = rule_settings(setting);
    for (int i = 0; i < settings; i++)
        for (uint32_t number = 0; number < 1500; number++) {
            const wg_verifier_class *rule = setting[i].rule;
            const wg_sibling_law law = laws[number % 4];
            if (!(rule->laws & law)) continue;
            const wg_tree t = any_tree(number, law, rule->chains);
            const void *options = setting[i].options;
            wg_path path;
            memset(&path, 0x55, sizeof path);
            cr_assert(wg_tree_check(&t, V, WG_TREE_MAX, NULL) == WG_OK);
            for (int k = 0; k < WG_TREE_MAX; k++) {
                garbage(&p, k, number);
                if (number % 5) garbage(&q, k, number + 7000); /* else as the last case left them */
            }
            const wg_chance c = wg_chance_philox(3, number, 9);
            accept_alone(rule, options, &t, &p, &q, &c, &path);
            expect_path(rule, &t, &path, number);
            for (int k = 0; k < t.n; k++) wg_optimal_alpha(&t, k, &p, &q, work_for(p.vocab));
        }
    wg_rows_close(&p);
    wg_rows_close(&q);
}

/* A row of small whole numbers, normalised. */
static void plain_row(wg_rows *r, int row, uint32_t number)
{
    double *p = wg_rows_at(r, row), sum = 0;
    r->point[row] = -1;
    for (uint32_t x = 0; x < V; x++) sum += p[x] = 1 + dice((uint32_t)row, x, number) % 9;
    for (int x = 0; x < V; x++) p[x] /= sum;
}

/* A rule that says it does not look at q takes the same path whatever q holds: where it runs on a device q is not sent. */
Test(garbage, rules_that_do_not_read_q)
{
    static const wg_sibling_law laws[] = { WG_LAW_FIXED, WG_LAW_IID, WG_LAW_WITHOUT_REPLACEMENT, WG_LAW_COUPLED };
    static rule_setting setting[RULE_SETTINGS];
    const int settings = rule_settings(setting);
    int readers = 0;
    wg_rows p, q, other;
    cr_assert(wg_rows_open(&p, WG_TREE_MAX, V, NULL) == WG_OK && wg_rows_open(&q, WG_TREE_MAX, V, NULL) == WG_OK &&
              wg_rows_open(&other, WG_TREE_MAX, V, NULL) == WG_OK);
    for (int i = 0; i < WG_TREE_MAX; i++) wg_rows_push(&p), wg_rows_push(&q), wg_rows_push(&other);
    for (int i = 0; i < settings; i++) {
        const wg_verifier_class *rule = setting[i].rule;
        int differ = 0;
        for (uint32_t number = 0; number < 1500; number++) {
            const wg_sibling_law law = laws[number % 4];
            if (!(rule->laws & law)) continue;
            const wg_tree t = any_tree(number, law, rule->chains);
            for (int k = 0; k < WG_TREE_MAX; k++) {
                plain_row(&p, k, number);
                plain_row(&q, k, number + 7000);
                plain_row(&other, k, number + 9000);
            }
            const wg_chance c = wg_chance_philox(3, number, 9);
            wg_path a, b;
            accept_alone(rule, setting[i].options, &t, &p, &q, &c, &a);
            accept_alone(rule, setting[i].options, &t, &p, &other, &c, &b);
            differ += a.n != b.n || a.next != b.next || memcmp(a.node, b.node, (size_t)a.n * sizeof *a.node);
        }
        cr_assert(rule->reads_q ? differ > 0 : differ == 0, "rule %s: reads_q is %d, but %d paths depend on q", rule->name,
                  rule->reads_q, differ);
        readers += rule->reads_q;
    }
    cr_assert(readers > 0 && readers < settings);
    wg_rows_close(&p), wg_rows_close(&q), wg_rows_close(&other);
}

/* At temperature 0 every lossless rule is `greedy`, on every tree of every law. */
Test(garbage, points_are_greedy)
{
    static const wg_sibling_law laws[] = { WG_LAW_FIXED, WG_LAW_IID, WG_LAW_WITHOUT_REPLACEMENT, WG_LAW_COUPLED };
    int kept = 0;
    wg_rows p, q;
    cr_assert(wg_rows_open(&p, WG_TREE_MAX, V, NULL) == WG_OK && wg_rows_open(&q, WG_TREE_MAX, V, NULL) == WG_OK);
    for (int i = 0; i < WG_TREE_MAX; i++) wg_rows_push(&p), wg_rows_push(&q);
    for (int i = 0; wg_verifiers[i]; i++)
        for (uint32_t number = 0; number < 800; number++) {
            const wg_verifier_class *rule = wg_verifiers[i];
            const wg_sibling_law law = laws[number % 4];
            if (!(rule->laws & law) || !rule->lossless) continue;
            const wg_tree t = any_tree(number, law, rule->chains);
            for (int k = 0; k < WG_TREE_MAX; k++) { /* a function of the text: nodes that spell the same have one row */
                uint32_t text = 0;
                for (int a = 1; k < t.n && a <= k; a++)
                    if (wg_mask_has(&t.anc[k], a)) text = text * (V + 1) + (uint32_t)t.token[a] + 1;
                p.point[k] = (int32_t)(dice(text, number, 90) % V);
                for (int x = 0; x < V; x++) wg_rows_at(&q, k)[x] = 1 + dice(text, (uint32_t)x, 91) % 9;
                double sum = 0;
                for (int x = 0; x < V; x++) sum += wg_rows_at(&q, k)[x];
                for (int x = 0; x < V; x++) wg_rows_at(&q, k)[x] /= sum;
            }
            const wg_chance c = wg_chance_philox(3, number, 9);
            const wg_path path = accept_with(rule, &t, &p, &q, &c), want = accept_with(&wg_verifier_greedy, &t, &p, &q, &c);
            /* Among siblings that are duplicates greedy takes the first; multipath keeps them all and may get further. */
            cr_assert(rule == &wg_verifier_multipath ? path.n >= want.n : path.n == want.n, "%s, law %s, case %u", rule->name,
                      wg_law_name(law), number);
            for (int k = 1; k < want.n; k++) cr_assert(t.token[path.node[k]] == t.token[want.node[k]]);
            cr_assert((path.n > want.n ? t.token[path.node[want.n]] : path.next) == want.next);
            kept += path.n - 1;
        }
    cr_assert(kept > 500, "%d", kept);
    wg_rows_close(&p);
    wg_rows_close(&q);
}

/* What the documentation promises for rows that mean nothing. */
Test(garbage, documented_fallbacks)
{
    const double none[V] = { 0 }, q[V] = { .2, .2, .2, .2, .2 }, one[V] = { 0, 0, 0, 1 };
    wg_rows p = rows_of(1, V, q), same = rows_of(1, V, q), zero = rows_of(1, V, none), single = rows_of(1, V, one);
    const wg_chance c = wg_chance_philox(1, 1, 1);
    /* no residual mass: from p, the draw at the same address */
    cr_assert(wg_rows_pick_residual(&p, 0, &same, 0, &c, WG_DRAW_NEXT, 0, work_for(p.vocab)) ==
              wg_rows_pick(&p, 0, &c, WG_DRAW_NEXT, 0));
    /* no mass at all: the lowest token */
    cr_assert(wg_rows_pick(&zero, 0, &c, WG_DRAW_NEXT, 0) == 0 &&
              wg_chance_race(&c, WG_DRAW_COUPLED, wg_list_0, NULL, none, V) == 0);
    /* all of it on one token */
    cr_assert(wg_rows_pick(&single, 0, &c, WG_DRAW_NEXT, 0) == 3 &&
              wg_chance_race(&c, WG_DRAW_COUPLED, wg_list_0, NULL, one, V) == 3);
    wg_rows_close(&p);
    wg_rows_close(&same);
    wg_rows_close(&zero);
    wg_rows_close(&single);
}

/* Accept never allocates: with every allocation failing, nothing changes. */
Test(garbage, rules_do_not_allocate)
{
    wg_workspace *work = work_for(V);
    wg_rows p, q;
    cr_assert(wg_rows_open(&p, WG_TREE_MAX, V, NULL) == WG_OK && wg_rows_open(&q, WG_TREE_MAX, V, NULL) == WG_OK);
    for (int i = 0; i < WG_TREE_MAX; i++) {
        random_row(1, (uint32_t)i, V, wg_rows_at(&p, wg_rows_push(&p)));
        random_row(2, (uint32_t)i, V, wg_rows_at(&q, wg_rows_push(&q)));
    }
    for (int i = 0; wg_verifiers[i]; i++) {
        const wg_tree t = any_tree(5, WG_LAW_IID, wg_verifiers[i]->chains);
        double options[8];
        wg_path path;
        wg_option_defaults(wg_verifiers[i]->options, options);
        const wg_chance c = wg_chance_philox(3, 1, 9);
        work_for(V);
        const uint64_t before = wg_mem_read().calls;
        wg_mem_fail_at(1, true);
        wg_verifiers[i]->accept(options, &t, &p, &q, &c, work, &path);
        wg_mem_fail_at(0, false);
        cr_assert(wg_mem_read().calls == before, "%s", wg_verifiers[i]->name);
    }
    wg_rows_close(&p);
    wg_rows_close(&q);
}
