/* SPDX-License-Identifier: MIT
 * The mass of weights in [0, 1]: a sum of integers, which is exact, so its order does not matter. A weight w counts as w *
 * 2^52 rounded to the nearest (ties to even): these are the bits of w + 1 after its leading one. The value of the mass of n
 * weights is within n * 2^-53 of their sum, and rounded once more: 1.5e-11 of at least 1 for 128,256 tokens, if all were
 * rounded the same way. */
#ifndef WG_KERNELS_MASS_H
#define WG_KERNELS_MASS_H

#include <stdint.h>

#include "kernels/hd.h"

__extension__ typedef unsigned __int128 wg_mass; /* in steps of 2^-52 */

#define WG_MASS_ONE ((wg_mass)1 << 52)
#define WG_MASS_BITS_OF_ONE 0x3ff0000000000000u /* of the double 1.0 */
enum { WG_MASS_PIECE = 2048 };                  /* so many weights have a mass below 2^64 */

WG_HD static inline uint64_t wg_steps_of(double w)
{
    const union {
        double f;
        uint64_t u;
    } t = { w + 1.0 };
    return t.u - WG_MASS_BITS_OF_ONE;
}

WG_HD static inline double wg_mass_value(wg_mass m)
{
    return (double)(uint64_t)(m >> 52) + (double)((uint64_t)m & (((uint64_t)1 << 52) - 1)) * 0x1p-52;
}

/* Of a value in [0, 2^63), rounded down. */
WG_HD static inline wg_mass wg_mass_of(double value)
{
    const uint64_t whole = (uint64_t)value;
    return ((wg_mass)whole << 52) + (uint64_t)((value - (double)whole) * 0x1p52);
}

/* A power of two that brings weights, the largest of which this is, into [0, 1), and it to 1/2 or more if it is not
 * subnormal. */
WG_HD static inline double wg_scale_of(double largest)
{
    const union {
        double f;
        uint64_t u;
    } t = { largest };
    const uint64_t e = t.u >> 52 & 0x7ff;
    union {
        double f;
        uint64_t u;
    } scale;
    scale.u = (e < 2045 ? 2045 - e : 1) << 52;
    return scale.f;
}

/* u m, rounded down, for a u in [0, 1) of 53 bits and an m below 2^75: below m when there is any. */
WG_HD static inline wg_mass wg_mass_part(wg_mass m, double u) { return (uint64_t)(u * 0x1p53) * m >> 53; }

/* Of n lanes. */
static inline wg_mass wg_mass_fold(const uint64_t *lane, int n)
{
    wg_mass m = 0;
    for (int i = 0; i < n; i++) m += lane[i];
    return m;
}

#endif
