/* SPDX-License-Identifier: MIT
 * Activation functions of one number, defined to the bit: these scalar texts are the specification, vectors do the same
 * operations. gelu is the approximation by tanh (Hendrycks and Gimpel 2016), with tanh u = 2 / (1 + exp(-2u)) - 1 written out:
 *     gelu(x) = x / (1 + exp32(x * fma(x * x, -2 c k, -2 c)))     c = sqrt(2 / pi), k = 0.044715
 * gelu_erf is the exact one, x Phi(x). The normal law's tail is exp(-x^2/2) t P(t), t = 1 / (1 + p |x|), with P a minimax
 * fit of the relative error (Remez exchange in 40 digits, 3.0e-8 for |x| <= 14; Horner with fma):
 *     h = exp32(x x * -0.5) * (t P(t)), y = x h for x < 0, else x - x h
 * relu2 is the square of a number above zero, else 0 (So et al. 2021).
 * clamped_swiglu is the gated activation of gpt-oss (OpenAI 2025), with a sharper sigmoid, limits and one added to the up side:
 *     clamped_swiglu(g, u) = g' / (1 + exp32(g' * -1.702)) * (u' + 1)     g' = min(g, 7), u' = clamp(u, 7)
 * softcap limits a number to [-cap, cap] (Bello et al. 2016; Gemma 2):
 *     softcap(x) = cap * (+-((1 - e) / (1 + e)))                  e = exp32(-2 |x / cap|), the sign that of x */
#ifndef WG_KERNELS_ACT_H
#define WG_KERNELS_ACT_H

#include "kernels/exp.h"

#define WG_GELU_LINEAR -1.5957691216057308f /* -2 c */
#define WG_GELU_CUBIC -0.07135481627260025f /* -2 c k */

WG_HD static inline float wg_gelu_of(float x)
{
    return x / (1.0f + wg_exp32_of(x * fmaf(x * x, WG_GELU_CUBIC, WG_GELU_LINEAR)));
}

#define WG_GELU_ERF_P 0x1.5c28f6p-2f
#define WG_GELU_ERF_C0 0x1.15c034p-3f
#define WG_GELU_ERF_C1 0x1.16c1fep-3f
#define WG_GELU_ERF_C2 0x1.d7d984p-4f
#define WG_GELU_ERF_C3 0x1.d882cap-4f
#define WG_GELU_ERF_C4 -0x1.6e5518p-5f
#define WG_GELU_ERF_C5 0x1.9e11d6p-3f
#define WG_GELU_ERF_C6 -0x1.17b010p-2f
#define WG_GELU_ERF_C7 0x1.1db1dcp-3f
#define WG_GELU_ERF_C8 -0x1.abf522p-6f

WG_HD static inline float wg_gelu_erf_of(float x)
{
    const float t = 1.0f / fmaf(fabsf(x), WG_GELU_ERF_P, 1.0f);
    float p = fmaf(WG_GELU_ERF_C8, t, WG_GELU_ERF_C7);
    p = fmaf(p, t, WG_GELU_ERF_C6);
    p = fmaf(p, t, WG_GELU_ERF_C5);
    p = fmaf(p, t, WG_GELU_ERF_C4);
    p = fmaf(p, t, WG_GELU_ERF_C3);
    p = fmaf(p, t, WG_GELU_ERF_C2);
    p = fmaf(p, t, WG_GELU_ERF_C1);
    p = fmaf(p, t, WG_GELU_ERF_C0);
    const float h = x * (wg_exp32_of(x * x * -0.5f) * (p * t));
    return x < 0.0f ? h : x - h;
}

WG_HD static inline float wg_relu2_of(float x) { return x < 0.0f ? 0.0f : x * x; }

WG_HD static inline float wg_clamp_of(float x, float limit) { return x < -limit ? -limit : limit < x ? limit : x; }

#define WG_CLAMPED_LIMIT 7.0f
#define WG_CLAMPED_ALPHA 1.702f

WG_HD static inline float wg_clamped_swiglu_of(float gate, float up)
{
    const float g = WG_CLAMPED_LIMIT < gate ? WG_CLAMPED_LIMIT : gate;
    return g / (1.0f + wg_exp32_of(g * -WG_CLAMPED_ALPHA)) * (wg_clamp_of(up, WG_CLAMPED_LIMIT) + 1.0f);
}

WG_HD static inline float wg_softcap_of(float x, float cap)
{
    const float e = wg_exp32_of(fabsf(x / cap) * -2.0f), t = (1.0f - e) / (1.0f + e);
    return (x < 0.0f ? 0.0f - t : t) * cap;
}

#endif
