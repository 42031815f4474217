/* SPDX-License-Identifier: MIT
 * Statistics against closed forms: quantiles, the normal distribution, ratios of totals, and intervals whose coverage is
 * counted. */
#include <criterion/criterion.h>
#include <math.h>

#include "experiments/base/stats.h"
#include "kernels/philox.h"

static double scratch[WG_RESAMPLES];

static double uniform(uint32_t a, uint32_t b)
{
    const wg_philox x = wg_philox_at(99, a, b, 0, 1);
    return wg_philox_double(x.v[0], x.v[1]);
}

Test(stats, normal_distribution)
{
    cr_assert_float_eq(wg_normal_cdf(0), 0.5, 1e-15);
    cr_assert_float_eq(wg_normal_cdf(1.959963984540054), 0.975, 1e-12);
    cr_assert_float_eq(wg_normal_quantile(0.975), 1.959963984540054, 1e-10);
    cr_assert_float_eq(wg_normal_quantile(0.5), 0, 1e-12);
    for (double p = 0.0005; p < 1; p += 0.0005) cr_assert_float_eq(wg_normal_cdf(wg_normal_quantile(p)), p, 1e-12, "p = %g", p);
}

Test(stats, quantiles)
{
    double v[] = { 4, 1, 3, 2 };
    cr_assert_float_eq(wg_quantile(v, 4, 0.5), 2.5, 1e-15);
    cr_assert_float_eq(wg_quantile(v, 4, 0), 1, 1e-15);
    cr_assert_float_eq(wg_quantile(v, 4, 1), 4, 1e-15);
    cr_assert_float_eq(wg_quantile(v, 4, 0.9), 3.7, 1e-15);
    cr_assert_float_eq(wg_quantile(v, 1, 0.99), 1, 1e-15);
    cr_assert(isnan(wg_quantile(v, 0, 0.5)));
}

/* Ratio of totals, not mean of ratios: (1+9)/(1+3) = 2.5, where the mean of 1/1 and 9/3 is 2. */
Test(stats, ratio_of_totals)
{
    const double a[] = { 1, 9 }, b[] = { 1, 3 }, c[] = { 2, 2 }, d[] = { 1, 1 }, zero[] = { 0, 0 };
    const wg_ratio plain = { a, b, NULL, NULL, 2 }, paired = { a, b, c, d, 2 }, nothing = { a, zero, NULL, NULL, 2 };
    cr_assert_float_eq(wg_ratio_value(&plain), 2.5, 1e-15);
    cr_assert_float_eq(wg_ratio_value(&paired), 1.25, 1e-15);
    cr_assert(isnan(wg_ratio_value(&nothing)));
}

Test(stats, intervals_are_functions_of_their_data)
{
    double a[20], b[20], lo[2], hi[2];
    for (int i = 0; i < 20; i++) a[i] = 1 + uniform((uint32_t)i, 0), b[i] = 1;
    const wg_ratio r = { a, b, NULL, NULL, 20 };
    for (int k = 0; k < 2; k++) cr_assert(wg_ratio_interval(&r, 5, scratch, &lo[k], &hi[k]));
    cr_assert(lo[0] == lo[1] && hi[0] == hi[1]);
    const double v = wg_ratio_value(&r);
    cr_assert(lo[0] < v && v < hi[0] && hi[0] - lo[0] < 0.5);
    const wg_ratio one = { a, b, NULL, NULL, 1 };
    cr_assert_not(wg_ratio_interval(&one, 5, scratch, &lo[0], &hi[0]));
    for (int i = 0; i < 20; i++) a[i] = 3; /* no spread: the interval is the point */
    cr_assert(wg_ratio_interval(&r, 5, scratch, &lo[0], &hi[0]));
    cr_assert_float_eq(lo[0], 3, 1e-12);
    cr_assert_float_eq(hi[0], 3, 1e-12);
}

/* A common factor of both sides must not widen the interval: prompts differ by 10x, the speed-up is 2 within 5 %. Resampling
 * the two sides apart would give an interval several times as wide. */
Test(stats, pairing_removes_what_the_prompts_share)
{
    double a[30], c[30], n[30], lo, hi;
    for (uint32_t i = 0; i < 30; i++) {
        const double size = 1 + 9 * uniform(i, 1);
        a[i] = 2 * size * (0.95 + 0.1 * uniform(i, 2));
        c[i] = size;
        n[i] = 64;
    }
    const wg_ratio r = { a, n, c, n, 30 };
    cr_assert(wg_ratio_interval(&r, 1, scratch, &lo, &hi));
    cr_assert(lo < 2 && 2 < hi && hi - lo < 0.08, "[%g, %g]", lo, hi);
}

/* Skewed data whose true ratio is 2/3: a 95 % interval from 25 prompts must cover it in about 95 of 100 worlds. */
Test(stats, coverage)
{
    int covered = 0;
    for (uint32_t world = 0; world < 100; world++) {
        double a[25], b[25], lo, hi;
        for (uint32_t i = 0; i < 25; i++) {
            a[i] = -log(1 - uniform(i, 1000 + world)); /* exponential: mean 1 */
            b[i] = 1 + uniform(i, 5000 + world);       /* mean 1.5 */
        }
        const wg_ratio r = { a, b, NULL, NULL, 25 };
        cr_assert(wg_ratio_interval(&r, world, scratch, &lo, &hi));
        covered += lo <= 1 / 1.5 && 1 / 1.5 <= hi;
    }
    cr_assert(covered >= 88 && covered <= 99, "%d of 100", covered);
}
