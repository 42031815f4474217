/* SPDX-License-Identifier: MIT
 * Lazy rows give the values of materialised ones, to the bit, in every order of queries; and the end of a nucleus that is
 * found in a band is the one that sorting finds. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/dist/sampler_impl.h"
#include "kernels/cpu.h"
#include "kernels/philox.h"

enum { V = 30000, ROWS = 6 };

static float logits[ROWS][V];

/* Rows 0 and 1: flat; 2: flat with NaN; 3: peaked; 4: one finite logit; 5: many ties. */
static void fill(uint32_t trial)
{
    for (uint32_t row = 0; row < ROWS; row++)
        for (uint32_t i = 0; i < V; i++) {
            const wg_philox w = wg_philox_at(3, i, row, trial, 0);
            const double u = wg_philox_double(w.v[0], w.v[1]), v = wg_philox_double(w.v[2], w.v[3]);
            const double z = sqrt(-2 * log(1 - u)) * cos(6.283185307179586 * v);
            float x = (float)(row == 1 ? 0.2 * z : row == 3 ? -2 * log(1 + (double)(i * 7919u % V)) + u : z);
            if (row == 2 && i % 100 == 7) x = NAN;
            if (row == 4) x = i == 77 ? 1 : -INFINITY;
            if (row == 5) x = (float)(floor(4 * (double)x) / 4);
            logits[row][i] = x;
        }
}

static const float *by;
static int in_order(const void *a, const void *b)
{
    const int32_t i = *(const int32_t *)a, j = *(const int32_t *)b;
    if (by[i] != by[j]) return by[i] > by[j] ? -1 : 1;
    return i < j ? -1 : 1;
}

Test(lazy_rows, a_band_holds_the_end_that_sorting_finds)
{
    static int32_t order[V];
    static double w[V];
    int found = 0, tries = 0;
    for (uint32_t trial = 0; trial < 4; trial++) {
        fill(trial);
        for (int row = 0; row < 2; row++)
            for (int level = 0; level <= (int)wg_cpu_best(); level++) {
                if (!wg_cpu_has((wg_cpu_level)level)) continue;
                const double top_p[] = { 0.95, 0.5, 0.999 };
                const wg_sampling chain = WG_SAMPLING(0.8, 0, top_p[trial % 3], 0);
                wg_sampler s;
                wg_edge e = { 0, -1 };
                wg_mass all, bare, kept, mass = 0, sum = 0;
                int n = 0;
                cr_assert(wg_sampler_open(&s, &chain, wg_ops_for((wg_cpu_level)level), V, NULL) == WG_OK);
                const float *x = logits[row];
                const float max = x[s.ops->argmax(x, V)];
                const bool ended = wg_nucleus_weigh(&s, x, max, 1 / 0.8, w, &all, &kept, &e);
                cr_assert(wg_nucleus_weigh(&s, x, max, 1 / 0.8, NULL, &bare, &kept, &e) == ended && bare == all);
                tries++;
                found += ended;
                by = x;
                for (int i = 0; i < V; i++) sum += wg_steps_of(w[order[i] = i]);
                cr_assert(sum == all);
                qsort(order, V, sizeof *order, in_order);
                do mass += wg_steps_of(w[order[n++]]);
                while (mass < wg_mass_of(chain.top_p * wg_mass_value(all)));
                cr_assert(!ended || (e.id == order[n - 1] && e.logit == x[e.id] && kept == mass),
                          "row %d, level %d: ends with %d, not %d", row, level, e.id, order[n - 1]);
                wg_sampler_close(&s);
            }
    }
    cr_assert(found > tries / 2, "%d of %d ends found", found, tries); /* few tokens make a wide band, at times too wide */
}

/* The first query of a lazy row, then all of it. */
static void ask(int question, wg_rows *got, wg_rows *want, int row)
{
    const wg_chance c = wg_chance_philox(1, 2, (uint32_t)row);
    if (question == 0)
        for (int32_t x = 0; x < V; x += 37)
            cr_assert(wg_rows_prob(got, row, x) == wg_rows_prob(want, row, x), "row %d, token %d", row, x);
    if (question == 1) cr_assert(wg_rows_one_hot(got, row) == wg_rows_one_hot(want, row));
    if (question == 2) cr_assert(wg_rows_support(got, row).n == wg_rows_support(want, row).n);
    if (question == 3) cr_assert(wg_rows_pick(got, row, &c, WG_DRAW_NEXT, 0) == wg_rows_pick(want, row, &c, WG_DRAW_NEXT, 0));
    if (question == 4) cr_assert(wg_rows_argmax(got, row) == wg_rows_argmax(want, row));
}

Test(lazy_rows, answers_are_those_of_made_rows)
{
    static const wg_sampling chains[] = { WG_SAMPLING(0.8, 0, 0.95, 0), WG_SAMPLING(1, 0, 1, 0), WG_SAMPLING(1, 0, 0.99, 0.001),
                                          WG_SAMPLING(0.7, 20000, 0.9, 0), WG_SAMPLING(0, 0, 0.9, 0) };
    static double a[V], b[V];
    int known = 0;
    fill(9);
    for (size_t c = 0; c < sizeof chains / sizeof *chains; c++)
        for (int level = 0; level <= (int)wg_cpu_best(); level++) {
            if (!wg_cpu_has((wg_cpu_level)level)) continue;
            wg_sampler s;
            wg_rows want, got;
            cr_assert(wg_sampler_open(&s, &chains[c], wg_ops_for((wg_cpu_level)level), V, NULL) == WG_OK);
            cr_assert(wg_rows_open(&want, ROWS, V, NULL) == WG_OK && wg_rows_open(&got, ROWS, V, NULL) == WG_OK);
            want.n = got.n = ROWS;
            for (int row = 0; row < ROWS; row++) wg_sampler_row(&s, logits[row], &want, row);
            for (int question = 0; question < 6; question++) {
                for (int row = 0; row < ROWS; row++) wg_sampler_lazy(&s, logits[row], &got, row);
                for (int row = 0; row < ROWS; row++) ask(question, &got, &want, row);
                for (int row = 0; row < ROWS; row++) {
                    known += got.lazy[row].state == WG_ROW_RESOLVED;
                    const double *all = wg_rows_dense(&want, row, a);
                    cr_assert(memcmp(wg_rows_dense(&got, row, b), all, V * sizeof *all) == 0, "chain %zu, question %d, row %d",
                              c, question, row);
                }
            }
            wg_sampler_lazy(&s, logits[0], &got, 0); /* never read */
            wg_rows_clear(&got);
            cr_assert(wg_rows_push(&got) == 0 && wg_rows_one_hot(&got, 0) == -1 && got.lazy[0].state == WG_ROW_THERE);
            wg_rows_close(&want);
            wg_rows_close(&got);
            wg_sampler_close(&s);
        }
    cr_assert(known > 20, "%d rows were known before they were made", known);
}
