/* SPDX-License-Identifier: MIT
 * Element-wise operations between products: SwiGLU, the gated activation, and residual addition. */
#include "kernels/exp.h"
#include "kernels/variants.h"

void wg_swiglu_ref(const float *gate, const float *up, float *y, int n)
{
    for (int i = 0; i < n; i++) y[i] = gate[i] / (1.0f + wg_exp32_of(-gate[i])) * up[i];
}

void wg_add_ref(float *x, const float *y, int n)
{
    for (int i = 0; i < n; i++) x[i] += y[i];
}
