/* SPDX-License-Identifier: MIT
 * RMSNorm and LayerNorm of rows, one block a row. Where a product follows, quant.cu prepares its input in the same kernel. */
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

/* The sum of a row, or of the squares of its differences to `mean`, in the sixteen lanes of kernels/ref; all threads call. */
template <bool SQUARES> WG_DEVICE float lanes_sum(const float *row, int dim, float mean, float *tile)
{
    const int t = (int)threadIdx.x;
    float sum = 0;
    for (int first = 0; first < dim; first += WG_NORM_TILE) {
        const int n = dim - first < WG_NORM_TILE ? dim - first : (int)WG_NORM_TILE;
        for (int i = t; i < n; i += THREADS) tile[i] = row[first + i] - mean;
        __syncthreads();
        if (t < 16)
            for (int i = t; i < n; i += 16) sum = SQUARES ? fmaf(tile[i], tile[i], sum) : sum + tile[i];
        __syncthreads();
    }
    if (t < WG_WARP) {
        sum = wg_warp_fold16(sum);
        if (t == 0) tile[0] = sum;
    }
    __syncthreads();
    sum = tile[0];
    __syncthreads();
    return sum;
}

WG_KERNEL WG_LAUNCH_BOUNDS(THREADS, 1)
    layernorm_row(const float *x, const float *weight, const float *bias, int dim, float eps, float *y)
{
    wg_depend();
    WG_SHARED(float, tile, WG_NORM_TILE);
    const float *from = x + (size_t)blockIdx.x * dim;
    float *to = y + (size_t)blockIdx.x * dim;
    const float mean = lanes_sum<false>(from, dim, 0, tile) / (float)dim;
    const float r = wg_norm_of(lanes_sum<true>(from, dim, mean, tile), dim, eps);
    for (int i = (int)threadIdx.x; i < dim; i += THREADS) to[i] = fmaf((from[i] - mean) * r, weight[i], bias[i]);
}

extern "C" void WG_GPU(layernorm)(wg_gpu *g, const float *x, const float *weight, const float *bias, int dim, float eps,
                                  float *y, int rows)
{
    WG_LAUNCH(layernorm_row, rows, THREADS, 0, g->stream, x, weight, bias, dim, eps, y);
}
