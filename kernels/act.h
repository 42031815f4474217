/* SPDX-License-Identifier: MIT
 * Activation functions of one number, defined to the bit: these scalar texts are the specification, vectors do the same
 * operations. gelu is the approximation by tanh (Hendrycks and Gimpel 2016), with tanh u = 2 / (1 + exp(-2u)) - 1 written out:
 *     gelu(x) = x / (1 + exp32(x * fma(x * x, -2 c k, -2 c)))     c = sqrt(2 / pi), k = 0.044715
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

WG_HD static inline float wg_softcap_of(float x, float cap)
{
    const float e = wg_exp32_of(fabsf(x / cap) * -2.0f), t = (1.0f - e) / (1.0f + e);
    return (x < 0.0f ? 0.0f - t : t) * cap;
}

#endif
