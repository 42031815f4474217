/* SPDX-License-Identifier: MIT
 * Rotary angles. Textbook reductions (Cody and Waite 1980) and Taylor series: the reduced arguments are small, a table is
 * filled once per model, so a few terms more cost nothing. */
#include "core/base/angles.h"

#include <math.h> /* frexp, ldexp, rint: exact operations */

/* sum of coef[i] x^i, from the last. */
static double horner(double x, const double *coef, int n)
{
    double s = coef[n - 1];
    for (int i = n - 2; i >= 0; i--) s = s * x + coef[i];
    return s;
}

static const double LN2_HI = 0x1.62e42fee00000p-1, LN2_LO = 0x1.a39ef35793c76p-33; /* the first has 32 bits */

/* x = m 2^e with m in [sqrt(1/2), sqrt(2)); log m = 2 artanh s, s = (m - 1) / (m + 1). */
static double log_of(double x)
{
    static const double coef[] = { 1.0,      1.0 / 3,  1.0 / 5,  1.0 / 7,  1.0 / 9,  1.0 / 11,
                                   1.0 / 13, 1.0 / 15, 1.0 / 17, 1.0 / 19, 1.0 / 21, 1.0 / 23 };
    int e;
    double m = frexp(x, &e);
    if (m < 0x1.6a09e667f3bcdp-1) {
        m *= 2;
        e--;
    }
    const double s = (m - 1) / (m + 1);
    return e * LN2_HI + (e * LN2_LO + 2 * s * horner(s * s, coef, 12));
}

/* x = n ln 2 + r, |r| <= ln 2 / 2. */
static double exp_of(double x)
{
    static const double coef[] = {
        1.0,        1.0,         1.0 / 2,      1.0 / 6,       1.0 / 24,       1.0 / 120,       1.0 / 720,
        1.0 / 5040, 1.0 / 40320, 1.0 / 362880, 1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800
    };
    const double n = rint(x * 0x1.71547652b82fep+0);
    const double r = (x - n * LN2_HI) - n * LN2_LO;
    return ldexp(horner(r, coef, 14), (int)n);
}

double wg_pow(double base, double e) { return exp_of(e * log_of(base)); }

/* x = n pi/2 + r, |r| <= pi/4: pi/2 in three parts, the first two of 30 bits, so that n times them is exact for n < 2^23. */
void wg_sincos(double x, double *sine, double *cosine)
{
    static const double sin_coef[] = { 1.0,
                                       -1.0 / 6,
                                       1.0 / 120,
                                       -1.0 / 5040,
                                       1.0 / 362880,
                                       -1.0 / 39916800,
                                       1.0 / 6227020800,
                                       -1.0 / 1307674368000,
                                       1.0 / 355687428096000 };
    static const double cos_coef[] = { 1.0,
                                       -1.0 / 2,
                                       1.0 / 24,
                                       -1.0 / 720,
                                       1.0 / 40320,
                                       -1.0 / 3628800,
                                       1.0 / 479001600,
                                       -1.0 / 87178291200,
                                       1.0 / 20922789888000,
                                       -1.0 / 6402373705728000 };
    const double n = rint(x * 0x1.45f306dc9c883p-1);
    const double r = ((x - n * 0x1.921fb54000000p+0) - n * 0x1.10b4611800000p-30) - n * 0x1.313198a2e0370p-61;
    const double s = r * horner(r * r, sin_coef, 9), c = horner(r * r, cos_coef, 10);
    const int quarter = (int)n & 3;
    *sine = quarter == 0 ? s : quarter == 1 ? c : quarter == 2 ? -s : -c;
    *cosine = quarter == 0 ? c : quarter == 1 ? -s : quarter == 2 ? -c : s;
}

double wg_rope_frequency(double base, double scale, int i, int n_rot) { return wg_pow(base, -2.0 * i / n_rot) / scale; }

void wg_rope_angles(int position, const double *frequency, int pairs, float *cs)
{
    for (int i = 0; i < pairs; i++) {
        double s, c;
        wg_sincos(position * frequency[i], &s, &c);
        cs[2 * i] = (float)c;
        cs[2 * i + 1] = (float)s;
    }
}
