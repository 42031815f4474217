/* SPDX-License-Identifier: MIT
 * exp and log against the long double of the C library: the error bounds that ops.h promises, and the edges. */
#include <criterion/criterion.h>

#include <math.h>

#include "kernels/cpu.h"
#include "kernels/exp.h"
#include "kernels/ln.h"
#include "kernels/ops.h"

Test(exp, f32_relative_error_over_the_whole_range)
{
    double worst = 0;
    float at = 0;
    for (uint32_t sign = 0; sign < 2; sign++)
        for (uint32_t bits = 0; bits < 0x42b2cccd; bits += 331) { /* |x| <= 89.4, every 331st float */
            union {
                uint32_t u;
                float f;
            } x = { bits | sign << 31 };
            if (x.f < WG_EXP32_LOW || x.f > WG_EXP32_HIGH) continue;
            const long double want = expl((long double)x.f);
            const double error = fabs((double)(((long double)wg_exp32_of(x.f) - want) / want));
            if (error > worst) worst = error, at = x.f;
        }
    cr_log_info("exp32: worst relative error %.3g at %a", worst, (double)at);
    cr_assert_lt(worst, 2e-7, "relative error %.3g at %a", worst, (double)at);
    cr_assert_gt(worst, 1e-9, "an f32 result cannot be this good: the scan saw nothing");
}

Test(exp, f64_relative_error_over_the_whole_range)
{
    enum { POINTS = 2000000 };
    double worst = 0, at = 0;
    for (int i = 0; i < POINTS; i++) {
        const double x = WG_EXP64_LOW + (WG_EXP64_HIGH - WG_EXP64_LOW) * ((double)i + 0.371) / POINTS;
        const long double want = expl((long double)x);
        const double error = fabs((double)(((long double)wg_exp64_of(x) - want) / want));
        if (error > worst) worst = error, at = x;
    }
    for (int i = 0; i < POINTS / 2; i++) { /* near zero, on a logarithmic scale */
        const double x = (i & 1 ? -1 : 1) * ldexp(1 + (double)i / POINTS, -(i % 60));
        const double error = fabs((double)(((long double)wg_exp64_of(x) - expl((long double)x)) / expl((long double)x)));
        if (error > worst) worst = error, at = x;
    }
    cr_log_info("exp64: worst relative error %.3g at %a", worst, at);
    cr_assert_lt(worst, 1e-15, "relative error %.3g at %a", worst, at);
    cr_assert_gt(worst, 1e-18, "a double result cannot be this good: the scan saw nothing");
}

/* Against a relative bound: near 1 the logarithm is small, and so is its error. */
Test(exp, log_relative_error)
{
    enum { POINTS = 1000000 };
    double worst = 0, at = 0;
    for (int i = 0; i < 2 * POINTS; i++) {
        const double fine = ((double)i + 0.371) / POINTS;
        const double x = i < POINTS ? ldexp(1 + fine, i % 2098 - 1074) : 0.6 + 0.8 * (fine - 1); /* all exponents; around 1 */
        const long double want = logl((long double)x);
        const double error = fabs((double)(((long double)wg_log64_of(x) - want) / want));
        if (error > worst) worst = error, at = x;
    }
    cr_log_info("log64: worst relative error %.3g at %a", worst, at);
    cr_assert_lt(worst, 1e-15, "relative error %.3g at %a", worst, at);
    cr_assert_gt(worst, 1e-18, "a double result cannot be this good: the scan saw nothing");
    cr_assert(wg_log64_of(1) == 0 && wg_log64_of(1 + 0x1p-52) == 0x1p-52 && wg_log64_of(2) == 0x1.62e42fefa39efp-1);
    cr_assert(wg_log64_of(0x1p-1074) < -744 && wg_log64_of(0x1.fffffffffffffp1023) > 709);
}

Test(exp, edges)
{
    cr_assert_eq(wg_exp32_of(0.0f), 1.0f);
    cr_assert_eq(wg_exp32_of(-0.0f), 1.0f);
    cr_assert_eq(wg_exp32_of(-INFINITY), 0.0f);
    cr_assert_eq(wg_exp32_of(-87.4f), 0.0f);
    cr_assert_gt(wg_exp32_of(WG_EXP32_LOW), 0x1p-126f);
    cr_assert_eq(wg_exp32_of(88.8f), INFINITY);
    cr_assert_eq(wg_exp32_of(INFINITY), INFINITY);
    cr_assert(isfinite(wg_exp32_of(WG_EXP32_HIGH)));
    cr_assert(isnan(wg_exp32_of(NAN)));
    cr_assert_eq(wg_exp64_of(0.0), 1.0);
    cr_assert_eq(wg_exp64_of(-(double)INFINITY), 0.0);
    cr_assert_eq(wg_exp64_of(-708.1), 0.0);
    cr_assert_gt(wg_exp64_of(WG_EXP64_LOW), 0x1p-1022);
    cr_assert(isfinite(wg_exp64_of(WG_EXP64_HIGH)));
    cr_assert(isinf(wg_exp64_of(709.1)));
    cr_assert(isnan(wg_exp64_of((double)NAN)));
}

/* Every level's exp of an array is monotone where it matters and equals the definition. */
Test(exp, levels_equal_the_definition)
{
    enum { N = 4099 };
    static float x[N], y[N];
    for (int i = 0; i < N; i++) x[i] = -90.0f + 180.0f * (float)i / N;
    for (int level = 0; level <= (int)wg_cpu_best(); level++) {
        if (!wg_cpu_has((wg_cpu_level)level)) continue;
        wg_ops_for((wg_cpu_level)level)->exp32(x, y, N);
        for (int i = 0; i < N; i++) {
            cr_assert_eq(y[i], wg_exp32_of(x[i]), "%s at %a", wg_cpu_name((wg_cpu_level)level), (double)x[i]);
            if (i) cr_assert_geq(y[i], y[i - 1]);
        }
    }
}
