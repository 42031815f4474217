/* SPDX-License-Identifier: MIT
 * The operations of training in f32: the file of each instruction set includes it once and names the table. */
#include <math.h>
#include <stdint.h>

#include "kernels/exp.h"

/* log of a normal number: x = m 2^e with m in [2/3, 4/3), s = (m - 1) / (m + 1), |s| <= 0.2, log m = 2 (s + s^3/3 + ... +
 * s^11/11); the first omitted term is below 4e-10 of s. */
static inline float log32(float x)
{
    union {
        float f;
        uint32_t u;
    } m = { x };
    const uint32_t e = (m.u - 0x3F2AAAABu) & 0xFF800000u; /* the bits of 2/3 */
    m.u -= e;
    const float s = (m.f - 1) / (m.f + 1), z = s * s, n = (float)((int32_t)e / (1 << 23));
    float series = fmaf(z, 2.0f / 11, 2.0f / 9);
    series = fmaf(series, z, 2.0f / 7);
    series = fmaf(series, z, 2.0f / 5);
    series = fmaf(series, z, 2.0f / 3);
    series = fmaf(series * z, s, 2 * s);
    return fmaf(n, WG_LN2_HIGH32, fmaf(n, WG_LN2_LOW32, series));
}

#define REAL float
#define GEMM wg_gemm_f32
#define SQRT sqrtf
#define FMA fmaf
#define EXP wg_exp32_of
#define LOG log32
#include "draft/train/ops_text.h"
