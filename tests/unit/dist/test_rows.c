/* SPDX-License-Identifier: MIT */
#include "core/dist/rows.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "core/base/mem.h"
#include "kernels/philox.h"
#include "tests/accept.h"

enum { V = 5 };

static wg_rows rows_of(int n, const double *p)
{
    wg_rows r;
    cr_assert(wg_rows_open(&r, n, V, NULL) == WG_OK);
    for (int i = 0; i < n; i++) memcpy(wg_rows_at(&r, wg_rows_push(&r)), p + i * V, V * sizeof *p);
    return r;
}

Test(rows, push_until_full)
{
    wg_rows r;
    cr_assert(wg_rows_open(&r, 2, V, NULL) == WG_OK);
    cr_assert(wg_rows_push(&r) == 0 && wg_rows_push(&r) == 1 && wg_rows_push(&r) == -1 && r.n == 2);
    r.point[1] = 3;
    wg_rows_clear(&r);
    cr_assert(wg_rows_push(&r) == 0 && wg_rows_push(&r) == 1 && r.point[1] == -1);
    wg_rows_close(&r);
    for (uint64_t i = 1; i <= 3; i++) {
        const size_t before = wg_mem_read().live_blocks;
        wg_mem_fail_at(i, false);
        cr_assert(wg_rows_open(&r, 2, V, NULL) == WG_ENOMEM && wg_mem_read().live_blocks == before);
    }
}

Test(rows, questions)
{
    const double p[2 * V] = { .1, .3, .3, .2, .1, 0, 0, 0, 0, 0 };
    wg_rows r = rows_of(2, p);
    double out[V];
    r.point[1] = 4;
    cr_assert(wg_rows_argmax(&r, 0) == 1 && wg_rows_argmax(&r, 1) == 4);
    cr_assert(wg_rows_prob(&r, 0, 3) == .2 && wg_rows_prob(&r, 1, 3) == 0 && wg_rows_prob(&r, 1, 4) == 1);
    cr_assert(wg_rows_dense(&r, 0, out) == wg_rows_at(&r, 0));
    const double *d = wg_rows_dense(&r, 1, out);
    for (int i = 0; i < V; i++) cr_assert(d[i] == (i == 4));
    const wg_chance c = wg_chance_philox(1, 2, 3);
    cr_assert(wg_rows_pick(&r, 1, &c, WG_DRAW_NEXT, 0) == 4);
    cr_assert(wg_rows_pick(&r, 0, &c, WG_DRAW_NEXT, 0) == wg_chance_pick(&c, WG_DRAW_NEXT, 0, p, V));
    wg_rows_close(&r);
}

/* Against the definition, for dense and point rows on both sides. */
Test(rows, overlap_and_residual)
{
    for (uint32_t n = 0; n < 2000; n++) {
        double v[2][V], rest[V], mass = 0, overlap = 0;
        wg_rows r[2];
        for (int k = 0; k < 2; k++) {
            const wg_philox w = wg_philox_at(1, n, (uint32_t)k, 0, 0);
            double sum = 0;
            for (int i = 0; i < V; i++) {
                v[k][i] = wg_philox_at(2, n, (uint32_t)k, (uint32_t)i, 0).v[0] % 4;
                sum += v[k][i];
            }
            if (sum == 0) sum = v[k][0] = 1;
            for (int i = 0; i < V; i++) v[k][i] /= sum;
            if (w.v[0] % 3 == 0)
                for (int i = 0; i < V; i++) v[k][i] = (uint32_t)i == w.v[1] % V;
            r[k] = rows_of(1, v[k]);
            if (w.v[0] % 3 == 0) r[k].point[0] = (int32_t)(w.v[1] % V);
        }
        for (int i = 0; i < V; i++) {
            overlap += fmin(v[0][i], v[1][i]);
            mass += rest[i] = fmax(v[0][i] - v[1][i], 0);
        }
        const wg_chance c = wg_chance_philox(4, 0, n);
        const int32_t got = wg_rows_pick_residual(&r[0], 0, &r[1], 0, &c, WG_DRAW_NEXT, 0, work_for(r[0].vocab));
        cr_assert(fabs(wg_rows_overlap(&r[0], 0, &r[1], 0) - overlap) < 1e-15);
        cr_assert(got == wg_chance_pick(&c, WG_DRAW_NEXT, 0, mass > 0 ? rest : v[0], V));
        cr_assert(wg_rows_pick_residual(&r[0], 0, &r[1], -1, &c, WG_DRAW_NEXT, 0, work_for(r[0].vocab)) ==
                  wg_rows_pick(&r[0], 0, &c, WG_DRAW_NEXT, 0));
        wg_rows_close(&r[0]);
        wg_rows_close(&r[1]);
    }
}
