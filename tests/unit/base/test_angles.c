/* SPDX-License-Identifier: MIT
 * The project's sin, cos and powers against libm's. */
#include <criterion/criterion.h>
#include <math.h>

#include "core/base/angles.h"

Test(angles, sin_and_cos)
{
    double worst = 0;
    for (int i = 0; i < 2000000; i++) {
        /* dense near zero and near multiples of pi/4, then all over the range */
        const double x = i < 500000 ? i * 1e-5 : i < 1000000 ? (i - 500000) * 0.785398163397448 : (i - 1000000) * 8.388607;
        double s, c;
        wg_sincos(i % 2 ? x : -x, &s, &c);
        worst = fmax(worst, fmax(fabs(s - sin(i % 2 ? x : -x)), fabs(c - cos(x))));
    }
    cr_assert(worst < 1e-15, "worst %g", worst);
    double s, c;
    wg_sincos(0, &s, &c);
    cr_assert(s == 0 && c == 1);
    wg_sincos(WG_ANGLE_MAX, &s, &c);
    cr_assert(fabs(s - sin(WG_ANGLE_MAX)) < 1e-15 && fabs(c - cos(WG_ANGLE_MAX)) < 1e-15);
}

Test(angles, powers)
{
    static const double base[] = { 1, 1.5, 100, 10000, 500000, 1e6, 3.7e9, 1e12 };
    double worst = 0;
    for (int b = 0; b < 8; b++)
        for (int i = -1000; i <= 1000; i++) {
            const double e = i / 1000.0, want = pow(base[b], e);
            worst = fmax(worst, fabs(wg_pow(base[b], e) / want - 1));
        }
    cr_assert(worst < 1e-14, "worst %g", worst);
    cr_assert(wg_pow(10000, 0) == 1);
}

Test(angles, frequencies_and_table)
{
    double worst = 0, f[64];
    for (int i = 0; i < 64; i++) {
        f[i] = wg_rope_frequency(500000, 8, i, 128);
        worst = fmax(worst, fabs(f[i] / (pow(500000, -i / 64.0) / 8) - 1));
    }
    cr_assert(worst < 1e-14, "worst %g", worst);
    float cs[128];
    for (int p = 0; p < 100000; p += 777) {
        wg_rope_angles(p, f, 64, cs);
        for (int i = 0; i < 64; i++)
            cr_assert(fabs(cs[2 * i] - cos(p * f[i])) < 6e-8 && fabs(cs[2 * i + 1] - sin(p * f[i])) < 6e-8,
                      "position %d pair %d", p, i);
    }
}
