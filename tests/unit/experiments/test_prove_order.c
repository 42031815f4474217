/* SPDX-License-Identifier: MIT
 * Known relations of the rules' acceptance, by the exact laws that the prover computes: rules that are never worse than
 * others, optimal rules, and rules that are equal in two forms. */
#include <criterion/criterion.h>
#include <math.h>

#include "core/dist/optimal_acceptance.h"
#include "verify/proof/prove.h"
#include "kernels/philox.h"
#include "verify/verify.h"

enum { V = 3, TEXTS = 1 + 3 + 9 + 27, TABLES = 60 };

/* Random tables for drafts of up to three levels. */
static double p_table[TEXTS * V], q_table[TEXTS * V];
static const wg_prove_tables tables = { p_table, q_table, false };

static void fill(uint32_t number)
{
    for (uint32_t i = 0; i < TEXTS; i++)
        for (uint32_t which = 0; which < 2; which++) {
            double *row = (which ? q_table : p_table) + i * V, sum = 0;
            for (uint32_t x = 0; x < V; x++) {
                const wg_philox w = wg_philox_at(17, x, i, number, which);
                const double u = wg_philox_double(w.v[0], w.v[1]);
                sum += row[x] = number % 3 == 0 ? exp(6 * u) : number % 3 == 1 ? u + 0.02 : x && w.v[2] % 3 == 0 ? 0 : u + 0.02;
            }
            for (int x = 0; x < V; x++) row[x] /= sum;
        }
}

static wg_prove_result prove_with(const wg_verifier_class *rule, const void *options, wg_sibling_law law, int depth,
                                  const int *width)
{
    const wg_prove_options o = { .vocab = V, .depth = depth, .width = width, .law = law, .rule_options = options };
    wg_prove_result r = { 0 };
    wg_error err = { 0 };
    cr_assert(wg_prove_case(rule, &o, &tables, &r, &err) == WG_OK, "%s", err.text);
    cr_assert(r.deviation < 1e-12, "%s: %g", rule->name, r.deviation);
    return r;
}

static wg_prove_result prove(const wg_verifier_class *rule, wg_sibling_law law, int depth, const int *width)
{
    return prove_with(rule, NULL, law, depth, width);
}

static const int one[] = { 1, 1, 1 }, two[] = { 2, 2 }, three[] = { 3 }, pair[] = { 2 };

Test(order, on_chains)
{
    wg_verifier_class recursion = wg_verifier_traversal; /* which runs `block` itself when it sees a chain */
    int better = 0;
    recursion.accept = wg_traversal_tree_accept;
    for (uint32_t i = 0; i < TABLES; i++) {
        fill(i);
        for (int depth = 1; depth <= 3; depth++) {
            const double rejection = prove(&wg_verifier_rejection, WG_LAW_IID, depth, one).tau;
            const double block = prove(&wg_verifier_block, WG_LAW_IID, depth, one).tau;
            cr_assert(block >= rejection - 1e-13);
            better += block > rejection + 1e-6;
            cr_assert(depth > 1 || fabs(block - rejection) < 1e-13);
            cr_assert(fabs(prove(&wg_verifier_traversal, WG_LAW_IID, depth, one).tau - block) < 1e-13);
            cr_assert(fabs(prove(&recursion, WG_LAW_IID, depth, one).tau - block) < 1e-13);
            cr_assert(fabs(prove(&wg_verifier_multipath, WG_LAW_IID, depth, one).tau - block) < 1e-13);
            /* With one child the rules for several are rejection. */
            const wg_verifier_class *const same[] = { &wg_verifier_kseq, &wg_verifier_optimal };
            for (int k = 0; k < 2; k++) cr_assert(fabs(prove(same[k], WG_LAW_IID, depth, one).tau - rejection) < 1e-13);
            cr_assert(fabs(prove(&wg_verifier_without_replacement, WG_LAW_WITHOUT_REPLACEMENT, depth, one).tau - rejection) <
                      1e-13);
            /* Rules that only compare accept less. */
            cr_assert(prove(&wg_verifier_match, WG_LAW_IID, depth, one).tau <= rejection + 1e-13);
            const double coupled = prove(&wg_verifier_coupled, WG_LAW_COUPLED, depth, one).tau;
            cr_assert(coupled <= rejection + 1e-13);
            cr_assert(coupled >= prove(&wg_verifier_match, WG_LAW_IID, depth, one).tau - 1e-13);
        }
    }
    cr_assert(better > TABLES, "block is never better: %d", better);
}

/* Of the same tree of draws. */
Test(order, at_a_node)
{
    int gain[3] = { 0 };
    for (uint32_t i = 0; i < TABLES; i++) {
        fill(i);
        const int *const shapes[] = { pair, three };
        for (int s = 0; s < 2; s++) {
            const int k = shapes[s][0];
            const wg_prove_result best = prove(&wg_verifier_optimal, WG_LAW_IID, 1, shapes[s]);
            const double rounds = prove(&wg_verifier_rejection, WG_LAW_IID, 1, shapes[s]).alpha;
            const double kseq = prove(&wg_verifier_kseq, WG_LAW_IID, 1, shapes[s]).alpha;
            cr_assert(fabs(best.alpha - best.alpha_star) < 1e-12, "k %d: %.17g, the optimum is %.17g", k, best.alpha,
                      best.alpha_star);
            cr_assert(fabs(prove(&wg_verifier_multipath, WG_LAW_IID, 1, shapes[s]).alpha - best.alpha) < 1e-12);
            cr_assert(rounds <= best.alpha + 1e-12 && kseq <= best.alpha + 1e-12);
            cr_assert(kseq >= (1 - exp(-1)) * best.alpha - 1e-12); /* SpecTr's guarantee */
            gain[0] += best.alpha > rounds + 1e-6;
            gain[1] += best.alpha > kseq + 1e-6;
            /* All tokens drawn: nothing can be missed that q can draw. */
            const wg_prove_result cover = prove(&wg_verifier_without_replacement, WG_LAW_WITHOUT_REPLACEMENT, 1, shapes[s]);
            cr_assert(cover.alpha <= cover.alpha_star + 1e-10);
            if (k == V) cr_assert(i % 3 == 2 || fabs(cover.alpha - 1) < 1e-12, "%g", cover.alpha);
            cr_assert(cover.alpha >= rounds - 1e-12); /* distinct siblings are worth more */
            /* p(C) for a set, by any rule */
            const wg_verifier_class *const sets[] = { &wg_verifier_topk,      &wg_verifier_rejection,
                                                      &wg_verifier_match,     &wg_verifier_without_replacement,
                                                      &wg_verifier_kseq,      &wg_verifier_optimal,
                                                      &wg_verifier_traversal, &wg_verifier_multipath,
                                                      &wg_verifier_coupled };
            for (int r = 0; r < 9; r++) {
                const wg_prove_result set = prove(sets[r], WG_LAW_FIXED, 1, shapes[s]);
                cr_assert(fabs(set.alpha - set.alpha_star) < 1e-12, "%s", sets[r]->name);
            }
        }
        cr_assert(prove(&wg_verifier_traversal, WG_LAW_IID, 2, two).tau >=
                  prove(&wg_verifier_rejection, WG_LAW_IID, 2, two).tau - 1e-13);
        gain[2] += prove(&wg_verifier_traversal, WG_LAW_IID, 2, two).tau >
                   prove(&wg_verifier_rejection, WG_LAW_IID, 2, two).tau + 1e-6;
    }
    cr_assert(gain[0] > 10 && gain[1] > 10 && gain[2] > 10, "%d %d %d", gain[0], gain[1], gain[2]);
}

/* Over several levels, in the mean of the tables: each look further keeps more, and selection by p/q alone is not the best.
 * That multipath never keeps less than optimal is no theorem here, but so it is on these tables. */
Test(order, on_trees_of_independent_draws)
{
    static const int shapes[][2] = { { 2, 1 }, { 2, 2 }, { 3, 1 } };
    const wg_verifier_class *const rules[] = { &wg_verifier_rejection, &wg_verifier_kseq, &wg_verifier_optimal,
                                               &wg_verifier_traversal, &wg_verifier_multipath };
    for (int s = 0; s < 3; s++) {
        double mean[5] = { 0 };
        for (uint32_t i = 0; i < TABLES / 2; i++) {
            double tau[5];
            fill(i);
            for (int k = 0; k < 5; k++) mean[k] += tau[k] = prove(rules[k], WG_LAW_IID, 2, shapes[s]).tau;
            cr_assert(tau[4] >= tau[2] - 1e-12 && tau[3] >= tau[0] - 1e-12);
        }
        cr_assert(mean[0] < mean[1] && mean[1] < mean[2] && mean[2] < mean[4] && mean[3] < mean[4], "%g %g %g %g %g", mean[0],
                  mean[1], mean[2], mean[3], mean[4]);
    }
}

/* methods.md, Coupled races: sum_x 1 / sum_y max(p(y)/p(x), q(y)/q(x)), between (1 - TV)/(1 + TV) and 1 - TV. */
Test(order, coupled_is_the_closed_form)
{
    for (uint32_t i = 0; i < TABLES; i++) {
        fill(i);
        double want = 0, overlap = 0;
        for (int x = 0; x < V; x++) {
            double most = 0;
            overlap += fmin(p_table[x], q_table[x]);
            if (p_table[x] == 0 || q_table[x] == 0) continue;
            for (int y = 0; y < V; y++) most += fmax(p_table[y] / p_table[x], q_table[y] / q_table[x]);
            want += 1 / most;
        }
        const wg_prove_result r = prove(&wg_verifier_coupled, WG_LAW_COUPLED, 1, one);
        cr_assert(fabs(r.alpha - want) < 1e-13, "%.17g, not %.17g", r.alpha, want);
        cr_assert(r.alpha >= overlap / (2 - overlap) - 1e-13 && r.alpha <= overlap + 1e-13);
    }
}

/* K lists (GLS, arXiv 2506.05632). One child is kept as often for every K: it races on all lists. K children, one for each
 * list, are accepted at least as often as by the list matching lemma, sum_x K / (sum_y max(p(y)/p(x), q(y)/q(x)) + (K -
 * 1)/p(x)), which is for children that may be equal (test_race has these exactly); no rule keeps more than alpha*. The first
 * finishers of one race are kept more often, in the mean: one drafter has no use for lists, they are for drafters that do
 * not see each other. */
Test(order, coupled_lists)
{
    double lists_mean[2] = { 0 }, finishers_mean[2] = { 0 };
    for (uint32_t i = 0; i < TABLES; i++) {
        const int *const shapes[] = { pair, three };
        fill(i);
        const double chain = prove(&wg_verifier_coupled, WG_LAW_COUPLED, 2, one).tau;
        for (int s = 0; s < 2; s++) {
            const int K = shapes[s][0];
            double bound = 0;
            for (int x = 0; x < V; x++) {
                double most = 0;
                if (p_table[x] == 0 || q_table[x] == 0) continue;
                for (int y = 0; y < V; y++) most += fmax(p_table[y] / p_table[x], q_table[y] / q_table[x]);
                bound += K / (most + (K - 1) / p_table[x]);
            }
            cr_assert(fabs(prove_with(&wg_verifier_coupled, &K, WG_LAW_COUPLED, 2, one).tau - chain) < 1e-13);
            const wg_prove_result r = prove_with(&wg_verifier_coupled, &K, WG_LAW_COUPLED, 1, shapes[s]);
            cr_assert(r.alpha >= bound - 1e-13 && r.alpha <= r.alpha_star + 1e-10, "%g %g %g", bound, r.alpha, r.alpha_star);
            lists_mean[s] += r.alpha / TABLES;
            finishers_mean[s] += prove(&wg_verifier_coupled, WG_LAW_COUPLED, 1, shapes[s]).alpha / TABLES;
        }
    }
    cr_assert(finishers_mean[0] > lists_mean[0] && finishers_mean[1] > lists_mean[1] - 1e-13, "%g %g, %g %g", finishers_mean[0],
              lists_mean[0], finishers_mean[1], lists_mean[1]);
}

/* Two tokens by hand: p = (2/3, 1/3), q = (1/3, 2/3). Two draws: S* = {1}, q^2 - p = 1/9, so alpha* = 8/9; in rounds the second
 * draw meets the residual (1, 0): 2/3 + 1/3 * 1/3 = 7/9. Chains of two are the example of Sun et al. (2024): 10/9 kept tokens
 * by rejection, 11/9 by block. */
Test(order, by_hand)
{
    for (int i = 0; i < TEXTS; i++) {
        const double p[V] = { 2. / 3, 1. / 3, 0 }, q[V] = { 1. / 3, 2. / 3, 0 };
        for (int x = 0; x < V; x++) p_table[i * V + x] = p[x], q_table[i * V + x] = q[x];
    }
    cr_assert(fabs(prove(&wg_verifier_optimal, WG_LAW_IID, 1, pair).alpha - 8. / 9) < 1e-15);
    cr_assert(fabs(prove(&wg_verifier_rejection, WG_LAW_IID, 1, pair).alpha - 7. / 9) < 1e-15);
    cr_assert(fabs(prove(&wg_verifier_without_replacement, WG_LAW_WITHOUT_REPLACEMENT, 1, pair).alpha - 1) < 1e-15);
    cr_assert(fabs(prove(&wg_verifier_rejection, WG_LAW_IID, 2, one).tau - (1 + 2. / 3 + 4. / 9)) < 1e-15);
    const double block = prove(&wg_verifier_block, WG_LAW_IID, 2, one).tau;
    cr_assert(fabs(block - (1 + 11. / 9)) < 1e-15, "%.17g", block);
}
