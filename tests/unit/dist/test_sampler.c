/* SPDX-License-Identifier: MIT
 * The sampler against its definition: sort everything, keep prefixes. Compared to the bit. */
#include "core/dist/sampler.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/mem.h"
#include "kernels/cpu.h"
#include "kernels/philox.h"
#include "tests/unit/dist/by_logit.h"

enum { MAX_V = 3000 };

static const wg_ops *ops(void) { return wg_ops_for(WG_CPU_REF); }

static double uniform(uint32_t a, uint32_t b, uint32_t c)
{
    const wg_philox w = wg_philox_at(42, a, b, c, 0);
    return wg_philox_double(w.v[0], w.v[1]);
}

/* Masses count in steps of 2^-52. */
__extension__ typedef unsigned __int128 wide;
static wide steps(double w) { return (wide)llrint(w * 0x1p52); }
static double value(wide m) { return (double)m * 0x1p-52; }

/* The definition. x has no NaN and a finite maximum; out is dense. */
static void by_definition(const wg_sampling *o, const float *x, int n, double *out)
{
    static int32_t order[MAX_V];
    static double w[MAX_V];
    wide sum = 0;
    ops()->softmax64(x, n, 1 / o->temperature, w);
    for (int i = 0; i < n; i++) sum += steps(w[i]);
    int kept = n;
    for (int i = 0; i < n; i++) order[i] = i;
    sort_by = x;
    qsort(order, (size_t)n, sizeof *order, in_order);
    if (o->top_k > 0 && o->top_k < kept) kept = o->top_k;
    if (o->top_k > 0) {
        sum = 0;
        for (int i = 0; i < kept; i++) sum += steps(w[order[i]]);
    }
    if (o->top_p < 1) {
        const wide enough = (wide)((long double)(o->top_p * value(sum)) * 0x1p52L);
        wide mass = 0;
        int k = 0;
        do mass += steps(w[order[k++]]);
        while (k < kept && mass < enough);
        kept = k;
    }
    for (int i = 0; i < n; i++) out[i] = 0;
    for (int i = 0; i < kept; i++)
        if (w[order[i]] >= o->min_p) out[order[i]] = w[order[i]];
    sum = 0;
    for (int i = n - 1; i >= 0; i--) sum += steps(out[i]);
    for (int i = 0; i < n; i++) out[i] *= 1 / value(sum);
}

/* Logits of several kinds: smooth, heavily tied, peaked, with -inf, one far above all others. */
static void fill(uint32_t kind, uint32_t number, float *x, int n)
{
    for (int i = 0; i < n; i++) {
        const double u = uniform((uint32_t)i, number, kind);
        x[i] = kind == 0 ? (float)(8 * u) : kind == 1 ? (float)floor(4 * u) : kind == 2 ? (float)(60 * u * u) : (float)(5 * u);
        if (kind == 4 && i == n / 2) x[i] = 80;
        if (kind == 3 && i > 0 && u < 0.5) x[i] = -INFINITY;
    }
}

static void compare(const wg_sampling *o, const float *x, int n)
{
    static double want[MAX_V], dense[MAX_V];
    wg_sampler s;
    wg_rows r;
    double sum = 0;
    cr_assert(wg_sampler_open(&s, o, ops(), n, NULL) == WG_OK && wg_rows_open(&r, 1, n, NULL) == WG_OK);
    wg_sampler_row(&s, x, &r, wg_rows_push(&r));
    by_definition(o, x, n, want);
    const double *got = wg_rows_dense(&r, 0, dense);
    for (int i = 0; i < n; i++) {
        sum += got[i];
        cr_assert(got[i] == want[i], "T %g, k %d, p %g, min %g, n %d: token %d has %.17g, not %.17g", o->temperature, o->top_k,
                  o->top_p, o->min_p, n, i, got[i], want[i]);
    }
    cr_assert(fabs(sum - 1) < 1e-12);
    wg_rows_close(&r);
    wg_sampler_close(&s);
}

Test(sampler, is_its_definition)
{
    static float x[MAX_V];
    static const int sizes[] = { 1, 2, 3, 17, 64, 100, 1000, MAX_V };
    static const int top_k[] = { 0, 1, 2, 5, 40, 90, 5000 };
    static const double top_p[] = { 1, 0.95, 0.5, 0, 1 - 1e-9 }, min_p[] = { 0, 0.05, 1 };
    for (uint32_t kind = 0; kind < 5; kind++)
        for (int v = 0; v < 8; v++) {
            fill(kind, (uint32_t)v, x, sizes[v]);
            for (int k = 0; k < 7; k++)
                for (int p = 0; p < 5; p++)
                    for (int m = 0; m < 3; m++) {
                        const double temperature = (k + p + m) % 2 ? 0.8 : 2;
                        compare(&(wg_sampling)WG_SAMPLING(temperature, top_k[k], top_p[p], min_p[m]), x, sizes[v]);
                    }
        }
}

/* ---- rows that are not ordinary */

static int32_t point_of(double temperature, int top_k, const float *x, int n)
{
    const wg_sampling o = WG_SAMPLING(temperature, top_k, 1, 0);
    wg_sampler s;
    wg_rows r;
    cr_assert(wg_sampler_open(&s, &o, ops(), n, NULL) == WG_OK && wg_rows_open(&r, 1, n, NULL) == WG_OK);
    wg_sampler_row(&s, x, &r, wg_rows_push(&r));
    const int32_t point = r.point[0];
    wg_rows_close(&r);
    wg_sampler_close(&s);
    return point;
}

Test(sampler, points)
{
    const float inf = INFINITY, tie[] = { 1, 3, 3, 2 };
    cr_assert(point_of(0, 0, tie, 4) == 1);
    cr_assert(point_of(1e-310, 0, tie, 4) == 1); /* 1 / temperature overflows */
    cr_assert(point_of(1, 1, tie, 4) == 1);
    cr_assert(point_of(1, 0, tie, 4) == -1 && point_of(1, 2, tie, 4) == -1);
    cr_assert(point_of(1, 0, (float[]){ 0, inf, inf }, 3) == 1 && point_of(0, 0, (float[]){ NAN, 0, inf }, 3) == 2);
    cr_assert(point_of(1, 0, (float[]){ -inf, -inf }, 2) == 0 && point_of(0, 0, (float[]){ NAN, NAN }, 2) == 0);
    cr_assert(point_of(1, 0, (float[]){ NAN, -inf }, 2) == 0 && point_of(0, 0, (float[]){ NAN, -inf }, 2) == 0);
    cr_assert(point_of(0, 0, (float[]){ NAN, -5, -inf }, 3) == 1);
    cr_assert(point_of(1, 5, (float[]){ -inf, -inf, 2, -inf }, 4) == 2); /* the only one that survives */
}

Test(sampler, nan_counts_as_minus_infinity)
{
    float x[] = { 1, NAN, 2, NAN, 0.5f }, y[] = { 1, -INFINITY, 2, -INFINITY, 0.5f };
    for (int k = 0; k < 4; k++) {
        const wg_sampling o = WG_SAMPLING(1, k, 0.9, 0);
        wg_sampler s;
        wg_rows r;
        double a[5], b[5];
        cr_assert(wg_sampler_open(&s, &o, ops(), 5, NULL) == WG_OK && wg_rows_open(&r, 2, 5, NULL) == WG_OK);
        wg_sampler_row(&s, x, &r, wg_rows_push(&r));
        wg_sampler_row(&s, y, &r, wg_rows_push(&r));
        cr_assert(memcmp(wg_rows_dense(&r, 0, a), wg_rows_dense(&r, 1, b), sizeof a) == 0);
        cr_assert(wg_rows_prob(&r, 0, 1) == 0 && wg_rows_prob(&r, 0, 2) > 0.5);
        wg_rows_close(&r);
        wg_sampler_close(&s);
    }
}

Test(sampler, single_finite_logit)
{
    float x[100];
    for (int i = 0; i < 100; i++) x[i] = i == 63 ? -7 : -INFINITY;
    compare(&(wg_sampling)WG_SAMPLING(1, 0, 1, 0), x, 100);
    compare(&(wg_sampling)WG_SAMPLING(1, 0, 0.9, 0), x, 100);
    compare(&(wg_sampling)WG_SAMPLING(1, 3, 0.9, 0.1), x, 100);
}

Test(sampler, open_refuses_and_cleans_up)
{
    wg_sampler s;
    wg_error err = { 0 };
    static const wg_sampling bad[] = {
        WG_SAMPLING(-1, 0, 1, 0),  WG_SAMPLING(NAN, 0, 1, 0),  WG_SAMPLING(1, -1, 1, 0),
        WG_SAMPLING(1, 0, 1.5, 0), WG_SAMPLING(1, 0, 1, -0.1),
    };
    for (int i = 0; i < 5; i++)
        cr_assert(wg_sampler_open(&s, &bad[i], ops(), 10, &err) == WG_EINVAL && strstr(err.text, "expected"));
    for (uint64_t i = 1; i <= 2; i++) {
        const size_t before = wg_mem_read().live_blocks;
        wg_mem_fail_at(i, false);
        cr_assert(wg_sampler_open(&s, &(wg_sampling)WG_SAMPLING(1, 0, 1, 0), ops(), 10, &err) == WG_ENOMEM);
        cr_assert(wg_mem_read().live_blocks == before);
    }
}

Test(sampler, option_defaults_are_legal)
{
    wg_sampling o;
    wg_sampler s;
    wg_option_defaults(wg_sampling_options, &o);
    cr_assert(o.temperature == 0 && o.top_k == 0 && o.top_p == 1 && o.min_p == 0);
    cr_assert(wg_sampler_open(&s, &o, ops(), 10, NULL) == WG_OK);
    wg_sampler_close(&s);
}
