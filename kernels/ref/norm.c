/* SPDX-License-Identifier: MIT
 * RMSNorm (Zhang and Sennrich 2019): a row divided by its root mean square, times a weight. LayerNorm (Ba et al. 2016): a row
 * less its mean, divided by its deviation, times a weight, plus a bias. */
#include "kernels/ref/fold16.h"
#include "kernels/variants.h"

#include <math.h>

void wg_rmsnorm_ref(const float *x, size_t ldx, const float *weight, int dim, float eps, float *y, size_t ldy, int rows)
{
    for (int m = 0; m < rows; m++) {
        const float *from = x + (size_t)m * ldx;
        float *to = y + (size_t)m * ldy, lane[16] = { 0 };
        for (int i = 0; i < dim; i++) lane[i % 16] = fmaf(from[i], from[i], lane[i % 16]);
        const float r = 1.0f / sqrtf(wg_fold16(lane) / (float)dim + eps);
        for (int i = 0; i < dim; i++) to[i] = from[i] * r * weight[i];
    }
}

void wg_layernorm_ref(const float *x, const float *weight, const float *bias, int dim, float eps, float *y, int rows)
{
    for (int m = 0; m < rows; m++) {
        const float *from = x + (size_t)m * (size_t)dim;
        float *to = y + (size_t)m * (size_t)dim, lane[16] = { 0 }, square[16] = { 0 };
        for (int i = 0; i < dim; i++) lane[i % 16] += from[i];
        const float mean = wg_fold16(lane) / (float)dim;
        for (int i = 0; i < dim; i++) square[i % 16] = fmaf(from[i] - mean, from[i] - mean, square[i % 16]);
        const float r = 1.0f / sqrtf(wg_fold16(square) / (float)dim + eps);
        for (int i = 0; i < dim; i++) to[i] = fmaf((from[i] - mean) * r, weight[i], bias[i]);
    }
}
