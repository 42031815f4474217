/* SPDX-License-Identifier: MIT
 * Reference values (methods.md, Reference values), line by line: the structure and the closed form exactly, and beside them
 * numbers of a seeded pair of models. They change only when a rule does. The last of these values, what a length chosen after
 * seeing the token does, is in test_mutations. */
#include <criterion/criterion.h>
#include <math.h>

#include "core/dist/optimal_acceptance.h"
#include "verify/proof/prove.h"
#include "kernels/philox.h"
#include "tests/accept.h"
#include "verify/verify.h"

enum { V = 3, DEPTH = 3, TEXTS = 1 + 3 + 9 + 27 };

static double p_table[TEXTS * V], q_table[TEXTS * V];
static const wg_prove_tables tables = { p_table, q_table, false };

/* A row of n weights, uniform in (0.05, 1.05), normalised. */
static void random_row(uint32_t number, uint32_t which, int n, double *row)
{
    double sum = 0;
    for (uint32_t x = 0; x < (uint32_t)n; x++) {
        const wg_philox w = wg_philox_at(2024, x, number, which, 0);
        sum += row[x] = wg_philox_double(w.v[0], w.v[1]) + 0.05;
    }
    for (int x = 0; x < n; x++) row[x] /= sum;
}

static void fill(void)
{
    for (uint32_t i = 0; i < TEXTS; i++) {
        random_row(i, 0, V, p_table + i * V);
        random_row(i, 1, V, q_table + i * V);
    }
}

TestSuite(reference, .init = fill);

static wg_prove_result prove(const wg_verifier_class *rule, wg_sibling_law law, int depth, const int *width)
{
    const wg_prove_options o = { .vocab = V, .depth = depth, .width = width, .law = law };
    wg_prove_result r = { 0 };
    wg_error err = { 0 };
    cr_assert(wg_prove_case(rule, &o, &tables, &r, &err) == WG_OK, "%s", err.text);
    cr_assert(r.deviation < 5e-16, "%s: %g", rule->name, r.deviation);
    return r;
}

static void expect(const char *what, double got, double want, double within)
{
    cr_expect(fabs(got - want) <= within, "%s: %.6f, not %.6f", what, got, want);
}

/* B3 and B8, chains of three: exact, and block emits more. */
Test(reference, rejection_and_block_on_a_chain_of_three)
{
    static const int chain[] = { 1, 1, 1 };
    const double rejection = prove(&wg_verifier_rejection, WG_LAW_IID, DEPTH, chain).tau;
    const double block = prove(&wg_verifier_block, WG_LAW_IID, DEPTH, chain).tau;
    expect("rejection", rejection, 2.9769, 5e-5);
    expect("block", block, 3.1185, 5e-5);
    cr_assert(block > rejection);
}

/* B4: three draws with replacement; 1 - prod_i (1 - sum min(p_i, q)), p_{i+1} = norm((p_i - q)+). */
Test(reference, three_draws_in_rounds)
{
    static const int three[] = { 3 };
    double r[V], missed = 1;
    for (int x = 0; x < V; x++) r[x] = p_table[x];
    for (int k = 0; k < 3; k++) {
        double kept = 0, mass = 0;
        for (int x = 0; x < V; x++) kept += fmin(r[x], q_table[x]);
        for (int x = 0; x < V; x++) mass += r[x] = fmax(r[x] - q_table[x], 0);
        for (int x = 0; x < V; x++) r[x] /= mass;
        missed *= 1 - kept;
    }
    const double alpha = prove(&wg_verifier_rejection, WG_LAW_IID, 1, three).alpha;
    expect("the closed form", alpha, 1 - missed, 1e-15);
    expect("acceptance", alpha, 0.9212, 5e-5);
}

/* B9: traversal on trees of (children, depth) = (1,2), (1,3), (2,1), (2,2), both ways of drawing. */
Test(reference, traversal_on_small_trees)
{
    static const int chain[] = { 1, 1, 1 }, pair[] = { 2 }, pairs[] = { 2, 2 };
    static const wg_sibling_law laws[] = { WG_LAW_IID, WG_LAW_WITHOUT_REPLACEMENT };
    double on_pairs[2];
    for (int l = 0; l < 2; l++) {
        for (int depth = 2; depth <= 3; depth++)
            expect("a chain is block", prove(&wg_verifier_traversal, laws[l], depth, chain).tau,
                   prove(&wg_verifier_block, laws[l], depth, chain).tau, 1e-15);
        prove(&wg_verifier_traversal, laws[l], 1, pair);
        if (WG_TREE_MAX >= 7) on_pairs[l] = prove(&wg_verifier_traversal, laws[l], 2, pairs).tau;
    }
    if (WG_TREE_MAX < 7) return;
    expect("independent draws", on_pairs[0], 2.6724, 5e-5);
    expect("without replacement", on_pairs[1], 2.7691, 5e-5);
    cr_assert(on_pairs[1] > on_pairs[0]);
}

/* B10: the threshold set against all 2^8 subsets, k = 1 .. 4. */
Test(reference, optimum_against_all_subsets)
{
    enum { N = 8 };
    wg_rows p, q;
    cr_assert(wg_rows_open(&p, 1, N, NULL) == WG_OK && wg_rows_open(&q, 1, N, NULL) == WG_OK);
    wg_rows_push(&p), wg_rows_push(&q);
    for (uint32_t i = 0; i < 300; i++) {
        random_row(i, 2, N, wg_rows_at(&p, 0));
        random_row(i, 3, N, wg_rows_at(&q, 0));
        for (int k = 1; k <= 4; k++) {
            double worst = 0;
            for (int set = 0; set < 1 << N; set++) {
                double ps = 0, qs = 0;
                for (int x = 0; x < N; x++)
                    if (set >> x & 1) ps += wg_rows_prob(&p, 0, x), qs += wg_rows_prob(&q, 0, x);
                worst = fmax(worst, pow(qs, k) - ps);
            }
            expect("alpha*", wg_optimal_iid(&p, 0, &q, 0, k, work_for(p.vocab)), 1 - worst, 1e-12);
            if (i == 0 && k == 2) expect("alpha* of two draws", 1 - worst, 0.8425, 5e-5);
        }
    }
    wg_rows_close(&p), wg_rows_close(&q);
}

/* B12: races on the same times match by the formula, above (1 - TV)/(1 + TV). 100,000 draws; three deviations are 0.0047. */
Test(reference, match_probability_of_races)
{
    enum { N = 8, DRAWS = 100000 };
    double p[N], q[N], formula = 0, tv = 0;
    int match = 0;
    random_row(0, 4, N, p);
    random_row(0, 5, N, q);
    for (int x = 0; x < N; x++) {
        double most = 0;
        for (int y = 0; y < N; y++) most += fmax(p[y] / p[x], q[y] / q[x]);
        formula += 1 / most;
        tv += fabs(p[x] - q[x]) / 2;
    }
    for (uint32_t i = 0; i < DRAWS; i++) {
        const wg_chance c = wg_chance_philox(16, i, 0);
        match += wg_chance_race(&c, WG_DRAW_COUPLED, wg_list_0, NULL, p, N) ==
                 wg_chance_race(&c, WG_DRAW_COUPLED, wg_list_0, NULL, q, N);
    }
    const double bound = (1 - tv) / (1 + tv), seen = (double)match / DRAWS;
    expect("formula", formula, 0.6633, 5e-5);
    expect("simulated", seen, 0.6634, 5e-5);
    expect("bound", bound, 0.6072, 5e-5);
    cr_assert(formula > bound && fabs(seen - formula) < 0.0047);
}
