/* SPDX-License-Identifier: MIT
 * Rows with a known support: they equal the dense rows to the bit, for any previous contents of their storage, and queries
 * give the values of dense rows. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/dist/sampler.h"
#include "kernels/cpu.h"
#include "kernels/philox.h"
#include "tests/unit/dist/by_logit.h"
#include "tests/accept.h"

enum { V = 20000 };

static double uniform(uint32_t a, uint32_t b)
{
    const wg_philox w = wg_philox_at(7, a, b, 0, 0);
    return wg_philox_double(w.v[0], w.v[1]);
}

/* What is kept, by the definition: sort, take the shortest prefix, and of it the heavy enough. Returns how many. */
static int by_definition(const wg_sampling *o, const float *x, bool *kept)
{
    static int32_t order[V];
    static double w[V];
    wg_mass sum = 0, mass = 0;
    int n = 0, all = 0;
    (void)wg_ops_for(WG_CPU_REF)->softmax64(x, V, 1 / o->temperature, w);
    for (int i = 0; i < V; i++) order[i] = i;
    sort_by = x;
    qsort(order, V, sizeof *order, in_order);
    const int most = o->top_k ? o->top_k : V;
    for (int i = 0; i < most; i++) sum += wg_steps_of(w[order[i]]);
    do mass += wg_steps_of(w[order[n++]]);
    while (n < most && mass < wg_mass_of(o->top_p * wg_mass_value(sum)));
    memset(kept, 0, V * sizeof *kept);
    for (int i = 0; i < n; i++) all += kept[order[i]] = w[order[i]] >= o->min_p && w[order[i]] > 0;
    return all;
}

static void fill(uint32_t kind, float *x)
{
    for (uint32_t i = 0; i < V; i++) {
        const double u = uniform(i, kind);
        const uint32_t rank = (i * 7919u + kind) % V;
        switch (kind % 6) {
        case 0: x[i] = (float)(-1.3 * log(1 + (double)rank) + u); break;
        case 1: x[i] = (float)(-2.5 * log(1 + (double)rank) + u); break;
        case 2: x[i] = (float)(30 * u * u); break;
        case 3: x[i] = rank < 20 ? 3 : -INFINITY; break;                  /* equal: any sum is met on the dot */
        case 4: x[i] = (float)floor(-1.5 * log(1 + (double)rank)); break; /* ties */
        default: x[i] = (float)u;                                         /* flat: too many for a list */
        }
        if (kind >= 6 && i % 1000 == 3) x[i] = NAN;
        if (kind >= 12 && kind % 6 != 3) x[i] *= -1e30f; /* the lowest logits are on top, and far from each other */
    }
}

Test(support, rows_are_what_the_definition_keeps_in_any_storage)
{
    static float x[V], clean[V];
    static bool kept[V];
    static const wg_sampling chains[] = { WG_SAMPLING(0.8, 0, 0.95, 0),   WG_SAMPLING(1, 0, 0.5, 0),
                                          WG_SAMPLING(1.3, 50, 1, 0),     WG_SAMPLING(0.6, 200, 0.9, 0),
                                          WG_SAMPLING(1, 0, 1, 0.02),     WG_SAMPLING(1, 0, 0.99, 0.001),
                                          WG_SAMPLING(0.8, 3000, 0.8, 0), WG_SAMPLING(1, 0, 0, 0) };
    int lists = 0, dense = 0;
    wg_rows r;
    cr_assert(wg_rows_open(&r, 1, V, NULL) == WG_OK);
    memset(r.p, 0xa5, V * sizeof *r.p);
    r.n = 1;
    for (uint32_t kind = 0; kind < 18; kind++) {
        fill(kind, x);
        for (int i = 0; i < V; i++) clean[i] = isnan(x[i]) ? -INFINITY : x[i];
        for (size_t c = 0; c < sizeof chains / sizeof *chains; c++) {
            wg_mass mass = 0;
            static double w[V];
            const int n = by_definition(&chains[c], clean, kept);
            (void)wg_ops_for(WG_CPU_REF)->softmax64(clean, V, 1 / chains[c].temperature, w);
            for (int i = 0; i < V; i++) mass += kept[i] ? wg_steps_of(w[i]) : 0;
            for (int level = 0; level <= (int)wg_cpu_best(); level++) {
                if (!wg_cpu_has((wg_cpu_level)level)) continue;
                wg_sampler s;
                cr_assert(wg_sampler_open(&s, &chains[c], wg_ops_for((wg_cpu_level)level), V, NULL) == WG_OK);
                wg_sampler_row(&s, x, &r, 0);
                wg_sampler_close(&s);
                if (n < 2) {
                    cr_assert(r.point[0] >= 0 && kept[r.point[0]], "kind %u, chain %zu: not the point", kind, c);
                    continue;
                }
                cr_assert(r.point[0] < 0, "kind %u, chain %zu", kind, c);
                for (int i = 0; i < V; i++)
                    cr_assert(r.p[i] == (kept[i] ? w[i] * (1 / wg_mass_value(mass)) : 0),
                              "kind %u, chain %zu, level %d, token %d: %.17g, %s", kind, c, level, i, r.p[i],
                              kept[i] ? "kept" : "dropped");
                lists += r.supported[0] >= 0;
                dense += r.supported[0] < 0;
                const wg_support list = wg_rows_support(&r, 0);
                cr_assert(list.n == (list.token ? n : V));
                for (int k = 0; list.token && k < n; k++)
                    cr_assert(kept[list.token[k]] && (k == 0 || list.token[k] > list.token[k - 1]));
            }
        }
    }
    cr_assert(lists > 60 && dense > 60, "%d lists, %d dense rows: one of the two is not tested", lists, dense);
    wg_rows_close(&r);
}

/* The same questions to a row with its list and to a copy without. */
Test(support, questions_have_the_answers_of_dense_rows)
{
    static float x[V];
    const wg_sampling chain = WG_SAMPLING(1, 0, 0.9, 0);
    wg_sampler s;
    wg_rows a, b;
    cr_assert(wg_sampler_open(&s, &chain, wg_ops_for(WG_CPU_REF), V, NULL) == WG_OK);
    cr_assert(wg_rows_open(&a, 2, V, NULL) == WG_OK && wg_rows_open(&b, 2, V, NULL) == WG_OK);
    for (uint32_t kind = 0; kind < 2; kind++) {
        for (int row = 0; row < 2; row++) {
            fill(kind, x);
            for (int i = 0; row && i < V; i++) x[i] += (float)(2 * uniform((uint32_t)i, 99));
            if (kind == 0) wg_rows_push(&a), wg_rows_push(&b);
            wg_sampler_row(&s, x, &a, row);
            cr_assert(a.supported[row] > 1);
            memcpy(wg_rows_at(&b, row), wg_rows_at(&a, row), V * sizeof *b.p);
        }
        cr_assert(wg_rows_argmax(&a, 0) == wg_rows_argmax(&b, 0));
        cr_assert(wg_rows_overlap(&a, 0, &a, 1) == wg_rows_overlap(&b, 0, &b, 1));
        for (uint32_t k = 0; k < 200; k++) {
            const wg_chance c = wg_chance_philox(5, 0, k);
            cr_assert(wg_rows_pick(&a, 0, &c, WG_DRAW_NEXT, 0) == wg_rows_pick(&b, 0, &c, WG_DRAW_NEXT, 0));
            cr_assert(wg_rows_pick_residual(&a, 0, &a, 1, &c, WG_DRAW_NEXT, 0, work_for(a.vocab)) ==
                      wg_rows_pick_residual(&b, 0, &b, 1, &c, WG_DRAW_NEXT, 0, work_for(b.vocab)));
        }
    }
    wg_rows_close(&a);
    wg_rows_close(&b);
    wg_sampler_close(&s);
}

Test(support, a_pushed_row_forgets_its_list)
{
    const int32_t token[] = { 3, 8 };
    const double mass[] = { 0.25, 0.75 };
    wg_rows r;
    cr_assert(wg_rows_open(&r, 1, 16, NULL) == WG_OK);
    cr_assert(wg_rows_push(&r) == 0 && wg_rows_support(&r, 0).n == 16);
    for (int i = 0; i < 16; i++) r.p[i] = 1;
    wg_rows_set(&r, 0, token, mass, 2);
    for (int i = 0; i < 16; i++) cr_assert(r.p[i] == (i == 3 ? 0.25 : i == 8 ? 0.75 : 0));
    wg_rows_set(&r, 0, token + 1, mass + 1, 1);
    cr_assert(r.p[3] == 0 && r.p[8] == 0.75 && wg_rows_support(&r, 0).n == 1);
    wg_rows_clear(&r);
    cr_assert(wg_rows_push(&r) == 0 && wg_rows_support(&r, 0).token == NULL && wg_rows_support(&r, 0).n == 16);
    wg_rows_close(&r);
}

/* As many candidates as there is room for, all of them kept: nothing is written behind them (the address sanitizer looks). None
 * of them is among the tokens that the estimate looks at, so the room is not expected to be crowded. */
Test(support, a_row_that_fills_the_room)
{
    enum { VOCAB = 1024, ROOM = VOCAB / 8 };
    static float x[VOCAB];
    static double got[VOCAB];
    int likely = 0;
    for (int i = 0; i < VOCAB; i++) x[i] = i % 64 && likely < ROOM ? likely++, 0.F : -100.F;
    for (int level = 0; level <= (int)wg_cpu_best(); level++) {
        if (!wg_cpu_has((wg_cpu_level)level)) continue;
        const wg_sampling chain = WG_SAMPLING(1, 0, 1, 0.5);
        wg_sampler s;
        wg_rows r;
        cr_assert(wg_sampler_open(&s, &chain, wg_ops_for((wg_cpu_level)level), VOCAB, NULL) == WG_OK && s.room == ROOM);
        cr_assert(wg_rows_open(&r, 1, VOCAB, NULL) == WG_OK);
        wg_sampler_row(&s, x, &r, wg_rows_push(&r));
        const double *row = wg_rows_dense(&r, 0, got);
        cr_assert_eq(wg_rows_support(&r, 0).n, ROOM);
        for (int i = 0; i < VOCAB; i++) cr_assert(row[i] == (x[i] == 0 ? 1. / ROOM : 0), "token %d: %g", i, row[i]);
        wg_rows_close(&r);
        wg_sampler_close(&s);
    }
}
