/* SPDX-License-Identifier: MIT
 * The fit of acceptance: known laws are found again, intervals hold what they say, too few points are refused. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "experiments/analysis/scaling_fit.h"
#include "kernels/philox.h"

static double rejected(double n, double t) { return exp(1.2 - 0.15 * log(n) - 0.05 * log(t)); }

static int grid(wg_scaling_point *p, int sizes, int trainings)
{
    int n = 0;
    for (int i = 0; i < sizes; i++)
        for (int k = 0; k < trainings; k++) {
            const double size = 2e5 * pow(2, i), tokens = 1e6 * pow(3, k);
            p[n++] = (wg_scaling_point){ size, tokens, 1 - rejected(size, tokens) };
        }
    return n;
}

Test(scaling_fit, finds_a_law_again)
{
    wg_scaling_point p[12];
    wg_scaling_fit f;
    wg_error err = { 0 };
    const int n = grid(p, 4, 3);
    cr_assert_eq(wg_scaling_fit_points(&f, p, n, &err), WG_OK, "%s", err.text);
    cr_assert_float_eq(f.constant, 1.2, 1e-9);
    cr_assert_float_eq(f.size, -0.15, 1e-10);
    cr_assert_float_eq(f.tokens, -0.05, 1e-10);
    cr_assert(f.deviation < 1e-10);
    const wg_scaling_alpha a = wg_scaling_predict(&f, 7e5, 5e6), b = wg_scaling_predict(&f, 5e6, 5e6);
    cr_assert_float_eq(a.alpha, 1 - rejected(7e5, 5e6), 1e-9);
    cr_assert_float_eq(a.hi - a.lo, 0, 1e-8);
    cr_assert(!a.outside && b.outside);
    cr_assert(wg_scaling_predict(&f, 7e5, 1e8).outside, "more tokens than any point had");
}

Test(scaling_fit, leaves_out_what_does_not_differ)
{
    wg_scaling_point p[4];
    wg_scaling_fit f;
    wg_error err = { 0 };
    grid(p, 4, 1);
    cr_assert_eq(wg_scaling_fit_points(&f, p, 4, &err), WG_OK, "%s", err.text);
    cr_assert(f.by_size && !f.by_tokens && f.terms == 2 && f.tokens == 0);
    cr_assert_float_eq(wg_scaling_predict(&f, 4e5, 1e6).alpha, 1 - rejected(4e5, 1e6), 1e-9);
    p[2].tokens = NAN; /* of one student it is not known: then it is no term */
    cr_assert_eq(wg_scaling_fit_points(&f, p, 4, &err), WG_OK, "%s", err.text);
    cr_assert(!f.by_tokens && isnan(f.tokens_lo));
    cr_assert(!wg_scaling_predict(&f, 4e5, 1e9).outside);
    grid(p, 1, 4);
    cr_assert_eq(wg_scaling_fit_points(&f, p, 4, &err), WG_OK, "%s", err.text);
    cr_assert(!f.by_size && f.by_tokens && f.size == 0);
    cr_assert_float_eq(f.tokens, -0.05, 1e-10);
}

static double normal(uint32_t a, uint32_t b)
{
    const wg_philox p = wg_philox_at(5, a, b, 0, 0);
    double sum = -6; /* of twelve uniform numbers: nearly normal */
    for (int i = 0; i < 4; i++) sum += (p.v[i] & 0xffff) / 65536.0 + (p.v[i] >> 16) / 65536.0 + (p.v[i] % 9973) / 9973.0;
    return sum;
}

/* The interval of a further student holds it in 95 of 100 cases, whatever the number of points. */
Test(scaling_fit, intervals_hold_what_they_say)
{
    enum { CASES = 2000 };
    for (int points = 3; points <= 8; points += 5) {
        int inside = 0;
        for (int c = 0; c < CASES; c++) {
            wg_scaling_point p[8];
            wg_scaling_fit f;
            wg_error err;
            for (int i = 0; i < points; i++) {
                const double size = 2e5 * pow(1.7, i);
                p[i] = (wg_scaling_point){ size, NAN, 1 - rejected(size, 1e6) * exp(0.03 * normal((uint32_t)c, (uint32_t)i)) };
            }
            cr_assert_eq(wg_scaling_fit_points(&f, p, points, &err), WG_OK);
            const wg_scaling_alpha a = wg_scaling_predict(&f, 4e5, NAN);
            const double truth = 1 - rejected(4e5, 1e6) * exp(0.03 * normal((uint32_t)c, 99));
            inside += truth >= a.lo && truth <= a.hi;
        }
        cr_assert(fabs(inside / (double)CASES - 0.95) < 0.02, "%d points: %d of %d", points, inside, CASES);
    }
}

static void refused(const wg_scaling_point *p, int n, const char *why)
{
    wg_scaling_fit f;
    wg_error err = { 0 };
    cr_assert_eq(wg_scaling_fit_points(&f, p, n, &err), WG_EINVAL);
    cr_assert(strstr(err.text, why), "%s", err.text);
}

Test(scaling_fit, refuses_what_it_cannot_tell)
{
    wg_scaling_point p[12] = { { 0 } };
    refused(p, 0, "a fit of acceptance has no points; measure students of different sizes first");
    grid(p, 2, 1);
    refused(p, 1, "1 point of one size: a fit of acceptance needs students of different sizes or training");
    refused(p, 2,
            "2 points: a fit of acceptance over size needs at least 3, one more than it has terms; measure more students");
    grid(p, 3, 1);
    p[1].tokens *= 2;
    refused(p, 3, "3 points: a fit of acceptance over size and tokens needs at least 4");
    for (int i = 0; i < 5; i++) p[i] = (wg_scaling_point){ 1e5 * (i + 1), 1e6 * (i + 1), 0.5 + 0.05 * i };
    refused(p, 5,
            "5 points whose sizes and tokens grow in one proportion: what each of them does cannot be told; train one student");
    p[3].alpha = 1;
    refused(p, 5,
            "point 4 of a fit has 400000 parameters, 4e+06 tokens and alpha 1; expected numbers above 0, and alpha below 1");
    p[3].alpha = NAN;
    refused(p, 5, "point 4 of a fit");
}
