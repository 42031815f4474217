/* SPDX-License-Identifier: MIT
 * exp in f32 and f64, defined to the bit: these scalar texts are the specification, vectors do the same operations.
 *     t = fma(x, log2 e, magic)   magic = 1.5 * 2^23 (2^52): the low bits of t are n = rint(x log2 e), t - magic is n
 *     r = fma(n, -ln2_low, fma(n, -ln2_high, x))           |r| <= 0.3466
 *     p = 1 + r + r^2 P(r), Horner with fma; the result is p with n added to its exponent field.
 * The limits keep that field inside the normal range, so results are never denormal. P is a minimax fit of the relative error
 * (Remez exchange in 50 digits): 3.1e-9 for f32, 3.7e-18 for f64; with rounding, measured against long double (test_exp):
 * 7.4e-8 and 1.4e-16. NaN gives NaN. */
#ifndef WG_KERNELS_EXP_H
#define WG_KERNELS_EXP_H

#include <math.h>
#include <stdint.h>

#include "kernels/hd.h"

#define WG_EXP32_LOW -87.3f /* below: 0 */
#define WG_EXP32_HIGH 88.7f /* above: inf */
#define WG_EXP32_MAGIC 12582912.0f
#define WG_LOG2E32 0x1.715476p+0f
#define WG_LN2_HIGH32 0x1.62e43p-1f
#define WG_LN2_LOW32 -0x1.05c61p-29f
/* P(r) = C2 + C3 r + ... */
#define WG_EXP32_C2 0x1.fffffcp-2f
#define WG_EXP32_C3 0x1.555492p-3f
#define WG_EXP32_C4 0x1.5558f2p-5f
#define WG_EXP32_C5 0x1.1239e2p-7f
#define WG_EXP32_C6 0x1.6a2434p-10f

#define WG_EXP64_LOW -708.0
#define WG_EXP64_HIGH 709.0
#define WG_EXP64_MAGIC 0x1.8p52
#define WG_LOG2E64 0x1.71547652b82fep+0
#define WG_LN2_HIGH64 0x1.62e42fefa39efp-1
#define WG_LN2_LOW64 0x1.abc9e3b39803fp-56
#define WG_EXP64_C2 0x1.000000000000ap-1
#define WG_EXP64_C3 0x1.55555555554fap-3
#define WG_EXP64_C4 0x1.555555555087cp-5
#define WG_EXP64_C5 0x1.1111111127be5p-7
#define WG_EXP64_C6 0x1.6c16c1842a126p-10
#define WG_EXP64_C7 0x1.a01a012a57b5ep-13
#define WG_EXP64_C8 0x1.a0199a0c66195p-16
#define WG_EXP64_C9 0x1.71df255235e0bp-19
#define WG_EXP64_C10 0x1.28ad72cd4ab37p-22
#define WG_EXP64_C11 0x1.ad7f6f0e24922p-26

WG_HD static inline float wg_exp32_of(float x)
{
    union {
        float f;
        uint32_t u;
    } t, p;
    if (x < WG_EXP32_LOW) return 0.0f;
    if (x > WG_EXP32_HIGH) return INFINITY;
    t.f = fmaf(x, WG_LOG2E32, WG_EXP32_MAGIC);
    const float n = t.f - WG_EXP32_MAGIC;
    const float r = fmaf(n, -WG_LN2_LOW32, fmaf(n, -WG_LN2_HIGH32, x));
    p.f = fmaf(WG_EXP32_C6, r, WG_EXP32_C5);
    p.f = fmaf(p.f, r, WG_EXP32_C4);
    p.f = fmaf(p.f, r, WG_EXP32_C3);
    p.f = fmaf(p.f, r, WG_EXP32_C2);
    p.f = fmaf(p.f, r, 1.0f);
    p.f = fmaf(p.f, r, 1.0f);
    p.u += t.u << 23;
    return p.f;
}

WG_HD static inline double wg_exp64_of(double x)
{
    union {
        double f;
        uint64_t u;
    } t, p;
    if (x < WG_EXP64_LOW) return 0.0;
    if (x > WG_EXP64_HIGH) return (double)INFINITY;
    t.f = fma(x, WG_LOG2E64, WG_EXP64_MAGIC);
    const double n = t.f - WG_EXP64_MAGIC;
    const double r = fma(n, -WG_LN2_LOW64, fma(n, -WG_LN2_HIGH64, x));
    p.f = fma(WG_EXP64_C11, r, WG_EXP64_C10);
    p.f = fma(p.f, r, WG_EXP64_C9);
    p.f = fma(p.f, r, WG_EXP64_C8);
    p.f = fma(p.f, r, WG_EXP64_C7);
    p.f = fma(p.f, r, WG_EXP64_C6);
    p.f = fma(p.f, r, WG_EXP64_C5);
    p.f = fma(p.f, r, WG_EXP64_C4);
    p.f = fma(p.f, r, WG_EXP64_C3);
    p.f = fma(p.f, r, WG_EXP64_C2);
    p.f = fma(p.f, r, 1.0);
    p.f = fma(p.f, r, 1.0);
    p.u += t.u << 52;
    return p.f;
}

#endif
