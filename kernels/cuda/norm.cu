/* SPDX-License-Identifier: MIT
 * RMSNorm with the bits of kernels/ref: sixteen partial sums, element i in lane i % 16, ascending, then folded. The first half
 * warp of a row's block sums from shared memory; all threads scale. */
#include "kernels/cuda/launch.h"

enum { THREADS = 128, TILE = 2048 };

WG_KERNEL WG_LAUNCH_BOUNDS(THREADS, 1) rmsnorm_row(const float *x, const float *weight, int dim, float eps, float *y)
{
    WG_SHARED(float, tile, TILE);
    WG_SHARED(float, factor, 1);
    const float *from = x + (size_t)blockIdx.x * dim;
    float *to = y + (size_t)blockIdx.x * dim;
    const int t = (int)threadIdx.x;
    float sum = 0;
    for (int first = 0; first < dim; first += TILE) {
        const int n = dim - first < TILE ? dim - first : TILE;
        for (int i = t; i < n; i += THREADS) tile[i] = from[first + i];
        __syncthreads();
        if (t < 16)
            for (int i = t; i < n; i += 16) sum = fmaf(tile[i], tile[i], sum);
        __syncthreads();
    }
    if (t < WG_WARP) {
        sum = wg_warp_fold16(sum); /* lanes from 16 on fold zeros among themselves */
        if (t == 0) factor[0] = 1.0f / sqrtf(sum / (float)dim + eps);
    }
    __syncthreads();
    const float r = factor[0];
    for (int i = t; i < dim; i += THREADS) to[i] = from[i] * r * weight[i];
}

extern "C" void WG_GPU(rmsnorm)(wg_gpu *g, const float *x, const float *weight, int dim, float eps, float *y, int rows)
{
    WG_LAUNCH(rmsnorm_row, rows, THREADS, 0, g->stream, x, weight, dim, eps, y);
}
