/* SPDX-License-Identifier: MIT
 * RMSNorm of rows, one block a row. Where a product follows, quant.cu prepares its input in the same kernel. */
#include "kernels/cuda/norm.h"

enum { THREADS = 128 };

WG_KERNEL WG_LAUNCH_BOUNDS(THREADS, 1) rmsnorm_row(const float *x, const float *weight, int dim, float eps, float *y)
{
    wg_depend();
    WG_SHARED(float, tile, WG_NORM_TILE);
    const float *from = x + (size_t)blockIdx.x * dim;
    float *to = y + (size_t)blockIdx.x * dim;
    const float r = wg_norm_factor(from, dim, eps, tile);
    for (int i = (int)threadIdx.x; i < dim; i += THREADS) to[i] = from[i] * r * weight[i];
}

extern "C" void WG_GPU(rmsnorm)(wg_gpu *g, const float *x, const float *weight, int dim, float eps, float *y, int rows)
{
    WG_LAUNCH(rmsnorm_row, rows, THREADS, 0, g->stream, x, weight, dim, eps, y);
}
