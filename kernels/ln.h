/* SPDX-License-Identifier: MIT
 * The natural logarithm in f64 from basic operations alone, so that every machine and every device has its bits:
 *     x = m 2^e with m in [sqrt 1/2, sqrt 2), s = (m - 1) / (m + 1), |s| < 0.172
 *     log x = e ln 2 + 2 (s + s^3/3 + ... + s^23/23)
 * The first omitted term is below 2e-20 of s. With rounding, measured against long double (test_exp): 3.2e-16. For x > 0 and
 * finite. */
#ifndef WG_KERNELS_LN_H
#define WG_KERNELS_LN_H

#include <math.h>

#include "kernels/hd.h"

WG_HD static inline double wg_log64_of(double x)
{
    int e;
    double m = frexp(x, &e);
    if (m < 0x1.6a09e667f3bcdp-1) {
        m *= 2;
        e--;
    }
    const double s = (m - 1) / (m + 1), z = s * s;
    double series = 0;
    for (int k = 23; k > 1; k -= 2) series = (series + 1.0 / k) * z;
    return e * 0x1.62e42fefa39efp-1 + 2 * (s + s * series);
}

#endif
