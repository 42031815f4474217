/* SPDX-License-Identifier: MIT
 * exp of an array; kernels/exp.h is the definition. */
#include "kernels/exp.h"
#include "kernels/variants.h"

void wg_exp32_ref(const float *x, float *y, int n)
{
    for (int i = 0; i < n; i++) y[i] = wg_exp32_of(x[i]);
}
