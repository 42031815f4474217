/* SPDX-License-Identifier: MIT
 * Element-wise operations between products: gated activations (SwiGLU and GEGLU; Shazeer 2020), GELU, soft caps, residual
 * addition. */
#include "kernels/act.h"
#include "kernels/variants.h"

void wg_swiglu_ref(const float *gate, const float *up, float *y, int n)
{
    for (int i = 0; i < n; i++) y[i] = gate[i] / (1.0f + wg_exp32_of(-gate[i])) * up[i];
}

void wg_add_ref(float *x, const float *y, int n)
{
    for (int i = 0; i < n; i++) x[i] += y[i];
}

void wg_geglu_ref(const float *gate, const float *up, float *y, int n)
{
    for (int i = 0; i < n; i++) y[i] = wg_gelu_of(gate[i]) * up[i];
}

void wg_clamped_swiglu_ref(const float *gate, const float *up, float *y, int n)
{
    for (int i = 0; i < n; i++) y[i] = wg_clamped_swiglu_of(gate[i], up[i]);
}

void wg_gelu_ref(const float *x, float *y, int n)
{
    for (int i = 0; i < n; i++) y[i] = wg_gelu_of(x[i]);
}

void wg_gelu_erf_ref(const float *x, float *y, int n)
{
    for (int i = 0; i < n; i++) y[i] = wg_gelu_erf_of(x[i]);
}

void wg_relu2_ref(const float *x, float *y, int n)
{
    for (int i = 0; i < n; i++) y[i] = wg_relu2_of(x[i]);
}

void wg_clamp_ref(float *x, float limit, int n)
{
    for (int i = 0; i < n; i++) x[i] = wg_clamp_of(x[i], limit);
}

void wg_softcap_ref(float *x, float cap, int n)
{
    for (int i = 0; i < n; i++) x[i] = wg_softcap_of(x[i], cap);
}

void wg_add_scaled_ref(float *x, float by, const float *y, int n)
{
    for (int i = 0; i < n; i++) x[i] = fmaf(by, y[i], x[i]);
}

void wg_scale_ref(float *x, float by, int n)
{
    for (int i = 0; i < n; i++) x[i] *= by;
}
