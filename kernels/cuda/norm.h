/* SPDX-License-Identifier: MIT
 * What RMSNorm multiplies a row with, to the bit of kernels/ref: sixteen partial sums, element i in lane i % 16, ascending,
 * then folded. Private to kernels/cuda. */
#ifndef WG_KERNELS_CUDA_NORM_H
#define WG_KERNELS_CUDA_NORM_H

#include "kernels/cuda/launch.h"

enum { WG_NORM_TILE = 2048 };

WG_DEVICE float wg_norm_of(float squares, int dim, float eps) { return 1.0f / sqrtf(squares / (float)dim + eps); }

/* 1 / sqrt(mean of squares + eps), known to all threads of the block, all of which call; tile: shared, WG_NORM_TILE floats. */
WG_DEVICE float wg_norm_factor(const float *row, int dim, float eps, float *tile)
{
    const int t = (int)threadIdx.x, threads = (int)blockDim.x;
    float sum = 0;
    for (int first = 0; first < dim; first += WG_NORM_TILE) {
        const int n = dim - first < WG_NORM_TILE ? dim - first : WG_NORM_TILE;
        for (int i = t; i < n; i += threads) tile[i] = row[first + i];
        __syncthreads();
        if (t < 16)
            for (int i = t; i < n; i += 16) sum = fmaf(tile[i], tile[i], sum);
        __syncthreads();
    }
    if (t < WG_WARP) {
        sum = wg_warp_fold16(sum); /* lanes from 16 on fold zeros among themselves */
        if (t == 0) tile[0] = wg_norm_of(sum, dim, eps);
    }
    __syncthreads();
    return tile[0];
}

#endif
