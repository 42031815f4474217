/* SPDX-License-Identifier: MIT */
#include "core/dist/chance.h"
#include "core/dist/mass_weights.h"

#include <criterion/criterion.h>
#include <math.h>

#include "core/base/mem.h"
#include "kernels/philox.h"

/* The address, written out once more: it is a promise to every recorded seed. */
static double uniform(uint64_t seed, uint32_t request, uint32_t position, int purpose, int index)
{
    const wg_philox w = wg_philox_at(seed, (uint32_t)index, (uint32_t)purpose, position, request);
    return wg_philox_double(w.v[0], w.v[1]);
}

Test(chance, ratio_is_u_den_below_num)
{
    for (uint32_t i = 0; i < 5000; i++) {
        const wg_chance c = wg_chance_philox(99, i % 5, i);
        const double u = uniform(99, i % 5, i, WG_DRAW_ACCEPT, 3);
        const double num = uniform(1, i, 0, 0, 0), den = uniform(1, i, 1, 0, 0);
        cr_assert(wg_chance_ratio(&c, WG_DRAW_ACCEPT, 3, num, den) == (u * den < num));
    }
}

Test(chance, ratio_at_the_edges)
{
    for (uint32_t i = 0; i < 2000; i++) {
        const wg_chance c = wg_chance_philox(1, 2, i);
        cr_assert(!wg_chance_ratio(&c, WG_DRAW_ACCEPT, 0, 0, 1));
        cr_assert(!wg_chance_ratio(&c, WG_DRAW_ACCEPT, 0, 0, 0));
        cr_assert(wg_chance_ratio(&c, WG_DRAW_ACCEPT, 0, 1, 1));
        cr_assert(wg_chance_ratio(&c, WG_DRAW_ACCEPT, 0, 5e-324, 5e-324));
        cr_assert(wg_chance_ratio(&c, WG_DRAW_ACCEPT, 0, 5e-324, 0));
        cr_assert(wg_chance_ratio(&c, WG_DRAW_ACCEPT, 0, 2, 1));
    }
}

/* Equality is a miss: u itself as the bound, where all arithmetic is exact (methods.md, Arithmetic). */
Test(chance, comparisons_are_strict)
{
    for (uint32_t i = 0; i < 500; i++) {
        const wg_chance c = wg_chance_philox(8, 0, i);
        const double u = uniform(8, 0, i, WG_DRAW_ACCEPT, 0), split[2] = { u, 1 - u };
        cr_assert(!wg_chance_ratio(&c, WG_DRAW_ACCEPT, 0, u, 1));
        cr_assert(wg_chance_ratio(&c, WG_DRAW_ACCEPT, 0, u + 0x1p-53, 1));
        if (u * 0x1p52 == floor(u * 0x1p52)) cr_assert(wg_chance_pick(&c, WG_DRAW_ACCEPT, 0, split, 2) == 1); /* whole steps */
    }
}

Test(chance, every_part_of_the_address_counts)
{
    const double w[2] = { 1, 1 };
    int seed = 0, request = 0, position = 0, purpose = 0, index = 0;
    for (uint32_t i = 0; i < 200; i++) {
        const wg_chance c = wg_chance_philox(i, 0, 0), d = wg_chance_at(&c, 1);
        const wg_chance other = wg_chance_philox(i + 1000, 0, 0), request1 = wg_chance_philox(i, 1, 0);
        const int here = wg_chance_pick(&c, WG_DRAW_NEXT, 0, w, 2);
        cr_assert(here == wg_chance_pick(&c, WG_DRAW_NEXT, 0, w, 2));
        seed += here != wg_chance_pick(&other, WG_DRAW_NEXT, 0, w, 2);
        request += here != wg_chance_pick(&request1, WG_DRAW_NEXT, 0, w, 2);
        position += here != wg_chance_pick(&d, WG_DRAW_NEXT, 0, w, 2);
        purpose += here != wg_chance_pick(&c, WG_DRAW_DRAFT, 0, w, 2);
        index += here != wg_chance_pick(&c, WG_DRAW_NEXT, 1, w, 2);
    }
    cr_assert(seed > 50 && request > 50 && position > 50 && purpose > 50 && index > 50);
}

Test(chance, pick_inverts_the_running_sum)
{
    enum { N = 9 };
    for (uint32_t i = 0; i < 5000; i++) {
        double w[N], sum = 0, run = 0;
        int want = -1;
        const wg_chance c = wg_chance_philox(7, 3, i);
        for (int k = 0; k < N; k++) {
            w[k] = uniform(2, i, (uint32_t)k, 0, 0);
            if (w[k] < 0.4 && (uint32_t)k != i % N) w[k] = 0;
            sum += w[k];
        }
        const double at = uniform(7, 3, i, WG_DRAW_NEXT, 0) * sum;
        for (int k = 0; k < N && want < 0; k++)
            if (at < (run += w[k])) want = k;
        const int got = wg_chance_pick(&c, WG_DRAW_NEXT, 0, w, N);
        cr_assert(got == want && w[got] > 0, "%d, not %d", got, want);
    }
}

Test(chance, pick_never_takes_what_has_no_weight)
{
    const double first[3] = { 0, 0, 5e-324 }, mixed[5] = { 0, 1e-300, 0, 1e-300, 0 }, one[1] = { 3 };
    for (uint32_t i = 0; i < 2000; i++) {
        const wg_chance c = wg_chance_philox(3, 3, i);
        cr_assert(wg_chance_pick(&c, WG_DRAW_NEXT, 0, first, 3) == 2);
        cr_assert(wg_chance_pick(&c, WG_DRAW_NEXT, 0, mixed, 5) % 2 == 1);
        cr_assert(wg_chance_pick(&c, WG_DRAW_NEXT, 0, one, 1) == 0);
    }
}

/* ---- enumeration */

Test(chance_tree, visits_every_outcome_once)
{
    const double w[4] = { 1, 0, 2, 1 };
    wg_chance_tree e;
    double total = 0, law[4][2] = { { 0 } };
    int runs = 0;
    cr_assert(wg_chance_tree_open(&e, NULL) == WG_OK);
    do {
        const wg_chance c = wg_chance_tree_chance(&e, 5);
        const int a = wg_chance_pick(&c, WG_DRAW_NEXT, 0, w, 4);
        /* The second question depends on the first answer; after a 3 there is none. */
        const bool b = a != 3 && wg_chance_ratio(&c, WG_DRAW_ACCEPT, a, 1, 4);
        law[a][b] += wg_chance_tree_probability(&e);
        total += wg_chance_tree_probability(&e);
        runs++;
    } while (wg_chance_tree_next(&e));
    cr_assert(runs == 5 && wg_chance_tree_reused(&e) == 0);
    cr_assert(fabs(total - 1) < 1e-15);
    cr_assert(law[0][1] == 0.0625 && law[0][0] == 0.1875 && law[1][0] == 0 && law[2][1] == 0.125 && law[3][0] == 0.25);
    wg_chance_tree_close(&e);
}

Test(chance_tree, certain_decisions_do_not_branch)
{
    wg_chance_tree e;
    int runs = 0;
    cr_assert(wg_chance_tree_open(&e, NULL) == WG_OK);
    do {
        const wg_chance c = wg_chance_tree_chance(&e, 0);
        const double one[3] = { 0, 1, 0 };
        cr_assert(wg_chance_ratio(&c, WG_DRAW_ACCEPT, 1, 1, 1) && wg_chance_ratio(&c, WG_DRAW_ACCEPT, 2, 2, 0));
        cr_assert(!wg_chance_ratio(&c, WG_DRAW_ACCEPT, 3, 0, 1) && !wg_chance_ratio(&c, WG_DRAW_ACCEPT, 4, 0, 0));
        cr_assert(wg_chance_pick(&c, WG_DRAW_NEXT, 0, one, 3) == 1);
        cr_assert(wg_chance_tree_probability(&e) == 1);
        runs++;
    } while (wg_chance_tree_next(&e));
    cr_assert(runs == 1);
    wg_chance_tree_close(&e);
}

Test(chance_tree, a_body_without_decisions_runs_once)
{
    wg_chance_tree e;
    int runs = 0;
    cr_assert(wg_chance_tree_open(&e, NULL) == WG_OK);
    do cr_assert(wg_chance_tree_probability(&e) == 1 && ++runs == 1);
    while (wg_chance_tree_next(&e));
    wg_chance_tree_close(&e);
}

/* More decisions in a run than the first allocation holds; two outcomes each in the last ten. */
Test(chance_tree, long_scripts)
{
    enum { LONG = 200 };
    wg_chance_tree e;
    double total = 0;
    int runs = 0;
    cr_assert(wg_chance_tree_open(&e, NULL) == WG_OK);
    do {
        const wg_chance c = wg_chance_tree_chance(&e, 0);
        for (int i = 0; i < LONG; i++) wg_chance_ratio(&c, WG_DRAW_ACCEPT, i, 1, i < LONG - 10 ? 1 : 3);
        total += wg_chance_tree_probability(&e);
        runs++;
    } while (wg_chance_tree_next(&e));
    cr_assert(runs == 1024 && fabs(total - 1) < 1e-12 && wg_chance_tree_reused(&e) == 0 && !e.failed);
    wg_chance_tree_close(&e);
}

Test(chance_tree, says_that_memory_ran_out)
{
    wg_chance_tree e;
    cr_assert(wg_chance_tree_open(&e, NULL) == WG_OK);
    wg_mem_fail_at(1, true);
    const wg_chance c = wg_chance_tree_chance(&e, 0);
    for (int i = 0; i < 200; i++) wg_chance_ratio(&c, WG_DRAW_ACCEPT, i, 1, 2);
    cr_assert(!wg_chance_tree_next(&e) && e.failed);
    wg_mem_fail_at(0, false);
    wg_chance_tree_close(&e);
}

Test(chance_tree, counts_addresses_that_are_asked_twice)
{
    wg_chance_tree e;
    cr_assert(wg_chance_tree_open(&e, NULL) == WG_OK);
    do {
        const wg_chance c = wg_chance_tree_chance(&e, 0), d = wg_chance_at(&c, 1);
        wg_chance_ratio(&c, WG_DRAW_ACCEPT, 1, 1, 2);
        wg_chance_ratio(&c, WG_DRAW_NEXT, 1, 1, 2);
        wg_chance_ratio(&c, WG_DRAW_ACCEPT, 2, 1, 2);
        wg_chance_ratio(&d, WG_DRAW_ACCEPT, 1, 1, 2);
        cr_assert(wg_chance_tree_reused(&e) == 0);
    } while (wg_chance_tree_next(&e));
    const wg_chance c = wg_chance_tree_chance(&e, 0);
    wg_chance_ratio(&c, WG_DRAW_ACCEPT, 1, 1, 2);
    wg_chance_ratio(&c, WG_DRAW_ACCEPT, 1, 1, 2);
    cr_assert(wg_chance_tree_reused(&e) == 1);
    wg_chance_tree_close(&e);
}

/* A test that is skipped where a bound shows that it fails: the law of the test itself, unless the bound lies. */
Test(chance_tree, known_failures_are_outcomes)
{
    static const struct {
        double most, p, law;
    } cases[] = { { 0.5, 0.3, 0.3 }, { 1, 0.3, 0.3 }, { 0.3, 0.3, 0.3 }, { 0, 0, 0 }, { 2, 1, 1 }, { 0.2, 0.3, 0.2 } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        wg_error err;
        wg_chance_tree e;
        double all = 0, kept = 0;
        cr_assert_eq(wg_chance_tree_open(&e, &err), WG_OK);
        do {
            const wg_chance c = wg_chance_tree_chance(&e, 4);
            const bool keep =
                !wg_chance_fails(&c, WG_DRAW_ACCEPT, 1, cases[i].most) && wg_chance_ratio(&c, WG_DRAW_ACCEPT, 1, cases[i].p, 1);
            all += wg_chance_tree_probability(&e);
            kept += keep ? wg_chance_tree_probability(&e) : 0;
        } while (wg_chance_tree_next(&e));
        cr_assert_float_eq(all, 1, 1e-15);
        cr_assert_float_eq(kept, cases[i].law, 1e-9 * (cases[i].p > cases[i].most) + 1e-15, "case %zu: %.17g", i, kept);
        cr_assert_eq(wg_chance_tree_reused(&e), 0);
        wg_chance_tree_close(&e);
    }
}

Test(chance, known_failures_fail)
{
    for (uint32_t i = 0; i < 2000; i++) {
        const wg_chance c = wg_chance_philox(6, 0, i);
        const double most = uniform(2, 0, i, 0, 0);
        if (wg_chance_fails(&c, WG_DRAW_ACCEPT, 0, most)) cr_assert(!wg_chance_ratio(&c, WG_DRAW_ACCEPT, 0, most, 1));
        else cr_assert(uniform(6, 0, i, WG_DRAW_ACCEPT, 0) < most + 2e-9);
    }
}

/* What stands behind the weights does not count. */
Test(chance, the_largest_of_the_weights_alone)
{
    double w[40];
    for (int n = 1; n < 40; n++) {
        for (int i = 0; i < 40; i++) w[i] = i < n ? i : 1000;
        cr_assert(wg_weights_largest(w, n) == n - 1 && wg_weights_sum(w, n) == n * (n - 1) / 2, "%d weights", n);
    }
}
