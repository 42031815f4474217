/* SPDX-License-Identifier: MIT
 * RMSNorm (Zhang and Sennrich 2019): a row divided by its root mean square, times a weight. */
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
