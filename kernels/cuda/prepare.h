/* SPDX-License-Identifier: MIT
 * What an input becomes for a product, one number at a time (quant.cu says why so): eight bits and a step, or two 16-bit
 * numbers. Private to kernels/cuda. */
#ifndef WG_KERNELS_CUDA_PREPARE_H
#define WG_KERNELS_CUDA_PREPARE_H

#include "kernels/cuda/launch.h"
#include "kernels/cuda/stripe.h"

/* ---- eight bits, as kernels/ref/quant.c does it */

WG_DEVICE float wg_act_clamped(float given)
{
    const float low = given > -WG_ACT_CLAMP ? given : -WG_ACT_CLAMP; /* NaN too */
    return low < WG_ACT_CLAMP ? low : WG_ACT_CLAMP;
}

/* The step of a block whose largest number is max; what its numbers are multiplied with; the code of one. */
WG_DEVICE float wg_act_step(float max)
{
    const float up = __uint_as_float((__float_as_uint(max / 127.0f) + 0xffu) & ~0xffu);
    return up < 1e-30f ? 0.0f : up;
}
WG_DEVICE float wg_act_per(float step) { return step > 0 ? 1.0f / step : 0.0f; }
WG_DEVICE int wg_act_code(float v, float per) { return (int)rintf(v * per); }

/* ---- two terms */

struct wg_halves {
    uint16_t hi, lo;
};

WG_DEVICE float wg_power_of_two(int e) { return __uint_as_float((unsigned)(127 + e) << 23); }

/* The exponents of a row's largest number and 2^14 apart, within what a normal f32 can be divided and multiplied by. */
template <int TYPE> WG_DEVICE int wg_halves_exponent(float max)
{
    const int e = (int)(__float_as_uint(max) >> 23) - 127 - 14;
    return TYPE == WG_BF16 || max == 0 || e > 113 ? 0 : e < -100 ? -100 : e; /* 114: infinity or NaN */
}

template <int TYPE> WG_DEVICE wg_halves wg_halves_of(float v)
{
    const uint16_t h = TYPE == WG_F16 ? wg_f16_of(v) : wg_bf16_of(v);
    const float back = TYPE == WG_F16 ? wg_f16_value(h) : wg_bf16_value(h), rest = v - back;
    return wg_halves{ h, (uint16_t)(fabsf(back) > 3e38f ? 0 : TYPE == WG_F16 ? wg_f16_of(rest) : wg_bf16_of(rest)) };
}

#endif
