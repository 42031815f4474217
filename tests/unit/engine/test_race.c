/* SPDX-License-Identifier: MIT
 * Races on shared times: what the production form draws, and the exact joint law of the enumerating one. */
#include "core/engine/race.h"

#include <criterion/criterion.h>
#include <math.h>

#include "core/engine/chance.h"
#include "kernels/philox.h"

enum { MANY = 40000 };

/* The times, written out once more: a promise to every recorded seed. */
static double time_of(uint64_t seed, uint32_t request, uint32_t position, int token)
{
    const wg_philox w = wg_philox_at(seed, (uint32_t)token / 2, WG_DRAW_COUPLED, position, request);
    return -log1p(-wg_philox_double(w.v[token % 2 ? 2 : 0], w.v[token % 2 ? 3 : 1]));
}

Test(race, the_smallest_time_by_weight_wins)
{
    const double w[5] = { 0.1, 0, 2, 0.7, 1e-3 };
    for (uint32_t i = 0; i < 5000; i++) {
        const wg_chance c = wg_chance_philox(4, 2, i);
        int best = -1;
        for (int x = 0; x < 5; x++)
            if (w[x] > 0 && (best < 0 || time_of(4, 2, i, x) / w[x] < time_of(4, 2, i, best) / w[best])) best = x;
        cr_assert_eq(wg_chance_race(&c, WG_DRAW_COUPLED, w, 5), best);
    }
}

Test(race, frequencies_are_the_weights_and_then_those_without_the_winner)
{
    enum { N = 4 };
    const double w[N] = { 0.5, 0.3, 0, 0.2 };
    int first[N] = { 0 }, second[N][N] = { { 0 } };
    for (uint32_t i = 0; i < MANY; i++) {
        const wg_chance c = wg_chance_philox(1, i, 0);
        double rest[N] = { 0.5, 0.3, 0, 0.2 };
        const int a = wg_chance_race(&c, WG_DRAW_COUPLED, w, N);
        rest[a] = 0;
        first[a]++;
        second[a][wg_chance_race(&c, WG_DRAW_COUPLED, rest, N)]++;
    }
    cr_assert(first[2] == 0);
    for (int a = 0; a < N; a++) {
        cr_assert(fabs((double)first[a] / MANY - w[a]) < 5 * sqrt(0.25 / MANY));
        for (int b = 0; b < N && w[a] > 0; b++) {
            const double want = a == b ? 0 : w[a] * w[b] / (1 - w[a]);
            cr_assert(fabs((double)second[a][b] / MANY - want) < 5 * sqrt(0.25 / MANY), "%d %d", a, b);
        }
    }
}

static void random_weights(uint32_t number, int n, double *w)
{
    double sum = 0;
    for (int i = 0; i < n; i++) {
        const wg_philox r = wg_philox_at(3, (uint32_t)i, number, 0, 0);
        sum += w[i] = number % 4 == 0 && i > 0 && r.v[2] % 3 == 0 ? 0 : wg_philox_double(r.v[0], r.v[1]) + 1e-3;
    }
    for (int i = 0; i < n; i++) w[i] /= sum;
}

/* METHODS B12: both races have the winner x with probability 1 / sum_y max(p(y)/p(x), q(y)/q(x)). */
Test(race, joint_law_of_two_is_the_closed_form)
{
    for (int n = 1; n <= WG_RACE_TOKENS; n++)
        for (uint32_t i = 0; i < 200; i++) {
            double p[WG_RACE_TOKENS], q[WG_RACE_TOKENS], alone[WG_RACE_TOKENS], total = 0;
            random_weights(2 * i, n, p);
            random_weights(2 * i + 1, n, q);
            wg_race_law(NULL, 0, q, n, alone);
            double winner_p[WG_RACE_TOKENS] = { 0 };
            for (int x = 0; x < n; x++) {
                cr_assert(fabs(alone[x] - q[x]) < 1e-14);
                wg_race first = { .n = n, .winner = x };
                double both[WG_RACE_TOKENS], sum = 0, most = 0;
                for (int y = 0; y < n; y++) first.weight[y] = q[y];
                if (q[x] == 0) continue;
                wg_race_law(&first, 1, p, n, both);
                for (int y = 0; y < n; y++) {
                    sum += both[y];
                    winner_p[y] += both[y];
                    most += fmax(p[x] > 0 ? p[y] / p[x] : INFINITY, q[y] / q[x]);
                }
                cr_assert(fabs(sum - q[x]) < 1e-14, "the first race keeps its law");
                cr_assert(fabs(both[x] - (p[x] > 0 ? 1 / most : 0)) < 1e-14, "%d of %d: %.17g", x, n, both[x]);
                total += sum;
            }
            for (int y = 0; y < n; y++) cr_assert(fabs(winner_p[y] - p[y]) < 1e-14, "so does the second");
            cr_assert(fabs(total - 1) < 1e-14);
        }
}

/* Three races at once, enumerated, against what production draws. */
Test(race, enumeration_is_the_law_of_production)
{
    enum { N = 4 };
    double w[3][N], law[N][N][N] = { { { 0 } } }, seen[N][N][N] = { { { 0 } } };
    for (uint32_t k = 0; k < 3; k++) random_weights(4 * k + 1, N, w[k]);
    wg_chance_tree e;
    cr_assert(wg_chance_tree_open(&e, NULL) == WG_OK);
    do {
        const wg_chance c = wg_chance_tree_chance(&e, 7);
        int x[3];
        for (int k = 0; k < 3; k++) {
            x[k] = wg_chance_race(&c, WG_DRAW_COUPLED, w[k], N);
            wg_chance_ratio(&c, WG_DRAW_ACCEPT, k, 1, 3); /* decisions in between do not matter */
        }
        law[x[0]][x[1]][x[2]] += wg_chance_tree_probability(&e);
    } while (wg_chance_tree_next(&e));
    cr_assert(wg_chance_tree_reused(&e) == 0 && !e.failed && !e.beyond);
    wg_chance_tree_close(&e);
    for (uint32_t i = 0; i < MANY; i++) {
        const wg_chance c = wg_chance_philox(9, i, 7);
        int x[3];
        for (int k = 0; k < 3; k++) x[k] = wg_chance_race(&c, WG_DRAW_COUPLED, w[k], N);
        seen[x[0]][x[1]][x[2]] += 1.0 / MANY;
    }
    double total = 0;
    for (int a = 0; a < N; a++)
        for (int b = 0; b < N; b++)
            for (int d = 0; d < N; d++) {
                total += law[a][b][d];
                cr_assert(fabs(law[a][b][d] - seen[a][b][d]) < 5 * sqrt(0.25 / MANY), "%d %d %d", a, b, d);
                cr_assert(seen[a][b][d] == 0 || law[a][b][d] > 0);
            }
    cr_assert(fabs(total - 1) < 1e-13);
}

/* Other positions have other times; and what is not computed is said, not guessed. */
Test(race, positions_are_independent_and_large_races_are_refused)
{
    const double w[6] = { 1, 1, 1, 1, 1, 1 };
    wg_chance_tree e;
    int runs = 0;
    cr_assert(wg_chance_tree_open(&e, NULL) == WG_OK);
    do {
        const wg_chance c = wg_chance_tree_chance(&e, 0), d = wg_chance_at(&c, 1);
        wg_chance_race(&c, WG_DRAW_COUPLED, w, 6);
        wg_chance_race(&d, WG_DRAW_COUPLED, w, 6);
        runs++;
    } while (wg_chance_tree_next(&e));
    cr_assert(runs == 36 && !e.beyond);
    wg_chance_tree_close(&e);
    cr_assert(wg_chance_tree_open(&e, NULL) == WG_OK);
    const wg_chance c = wg_chance_tree_chance(&e, 0);
    wg_chance_race(&c, WG_DRAW_COUPLED, w, 6);
    wg_chance_race(&c, WG_DRAW_COUPLED, w, 6);
    cr_assert(e.beyond && !wg_chance_tree_next(&e));
    wg_chance_tree_close(&e);
}
