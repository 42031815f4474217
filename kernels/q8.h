/* SPDX-License-Identifier: MIT
 * 8-bit codes with a scale, to the bit: of prepared activations (blocks of 32) and of a WG_KV_Q8 cache (up to 64). This
 * scalar code is the specification. Private to kernels/. */
#ifndef WG_KERNELS_Q8_H
#define WG_KERNELS_Q8_H

#include <math.h>
#include <stdint.h>

#define WG_ACT_CLAMP 0x1p110f /* elements are clamped to it, so that 1.5 * 2^23 times a scale is finite */

/* max|x| / 127, its 8 lowest bits rounded up and away; 0 below 1e-30. */
static inline float wg_q8_scale(float max)
{
    union {
        float f;
        uint32_t u;
    } d = { max / 127.0f };
    d.u = (d.u + 0xffu) & ~0xffu;
    return d.f < 1e-30f ? 0.0f : d.f;
}

/* n elements, all clamped: codes and their scale. |code| <= 127. */
static inline float wg_q8_block(const float *x, int n, int8_t *code)
{
    float max = 0;
    for (int i = 0; i < n; i++) {
        const float low = x[i] > -WG_ACT_CLAMP ? x[i] : -WG_ACT_CLAMP, a = fabsf(low < WG_ACT_CLAMP ? low : WG_ACT_CLAMP);
        max = a > max ? a : max;
    }
    const float d = wg_q8_scale(max), inverse = d > 0 ? 1.0f / d : 0.0f;
    for (int i = 0; i < n; i++) {
        const float low = x[i] > -WG_ACT_CLAMP ? x[i] : -WG_ACT_CLAMP;
        code[i] = (int8_t)rintf((low < WG_ACT_CLAMP ? low : WG_ACT_CLAMP) * inverse);
    }
    return d;
}

#endif
