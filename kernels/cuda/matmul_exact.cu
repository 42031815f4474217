/* SPDX-License-Identifier: MIT
 * Products y = x W^T with the bits of kernels/ref, from the same panels of 32 outputs: a warp owns a panel, a lane an output,
 * so that a warp reads whole lines; a thread keeps the sums of ROWS rows, each one chain over k (float types) or over blocks
 * of 32 (quantised types, exact integer sums by dp4a). What a row's sum is never depends on ROWS. Plain rather than fast: the
 * tensor cores are matmul_mma.cu's; one row of quantised weights is read at the speed of memory all the same.
 *
 * Bytes: the weights once for every ROWS rows. */
#include "kernels/cuda/launch.h"
#include "kernels/cuda/weight.h"

enum { THREADS = 128, WARPS = THREADS / WG_WARP, MOST_ROWS = 8, TILE_K = 256 };

struct matmul_job {
    const void *data;
    const void *act;
    int n, k, rows;
    float *y;
};

template <int ROWS> WG_DEVICE void store_sums(const matmul_job &j, const float *acc, int first, int n)
{
    if (n >= j.n) return;
    WG_UNROLL for (int r = 0; r < ROWS; r++)
        if (first + r < j.rows) j.y[(size_t)(first + r) * j.n + n] = acc[r];
}

/* ---- float types: acc = fma(w, x, acc), k ascending */

template <int TYPE, int ROWS> WG_KERNEL WG_LAUNCH_BOUNDS(THREADS, 1) matmul_float(matmul_job j)
{
    WG_SHARED(float, x, ROWS * TILE_K);
    const int warp = (int)threadIdx.x / WG_WARP, lane = (int)threadIdx.x % WG_WARP, first = (int)blockIdx.y * ROWS;
    const int panel = (int)blockIdx.x * WARPS + warp;
    const bool mine = panel * WG_PANEL < j.n;
    const size_t at = (size_t)panel * j.k * WG_PANEL + lane;
    const float *act = (const float *)j.act;
    float acc[ROWS];
    WG_UNROLL for (int r = 0; r < ROWS; r++) acc[r] = 0;
    for (int k0 = 0; k0 < j.k; k0 += TILE_K) {
        const int n = j.k - k0 < TILE_K ? j.k - k0 : TILE_K;
        __syncthreads();
        WG_UNROLL for (int r = 0; r < ROWS; r++)
            for (int i = (int)threadIdx.x; i < n; i += THREADS)
                x[r * TILE_K + i] = first + r < j.rows ? act[(size_t)(first + r) * j.k + k0 + i] : 0.0f;
        __syncthreads();
        for (int i = 0; i < n && mine; i++) {
            const size_t e = at + (size_t)(k0 + i) * WG_PANEL;
            const float w = TYPE == WG_F32   ? ((const float *)j.data)[e]
                            : TYPE == WG_F16 ? wg_f16_value(((const uint16_t *)j.data)[e])
                                             : wg_bf16_value(((const uint16_t *)j.data)[e]);
            WG_UNROLL for (int r = 0; r < ROWS; r++) acc[r] = fmaf(w, x[r * TILE_K + i], acc[r]);
        }
    }
    if (mine) store_sums<ROWS>(j, acc, first, panel * WG_PANEL + lane);
}

/* ---- quantised types: per block and part, acc = fma((float)i * da, scale, acc); then the minimum */

struct act_block { float da, das; int sum, low; };

template <int TYPE, int ROWS>
WG_DEVICE void add_block(const uint8_t *head, const uint8_t *block, int lane, const int *q, const act_block *blocks, float *acc)
{
    const int parts = wg_parts(TYPE);
    float scale[2], min;
    uint32_t four[WG_BLOCK / 4];
    wg_block_scales<TYPE>(head, block, lane, scale, &min);
    WG_UNROLL for (int i = 0; i < WG_BLOCK / 4; i++) four[i] = wg_four_values<TYPE>(block, lane, i);
    WG_UNROLL for (int r = 0; r < ROWS; r++) {
        const act_block a = blocks[r * WG_ACT_BLOCKS];
        WG_UNROLL for (int part = 0; part < parts; part++) {
            int sum = 0;
            WG_UNROLL for (int i = part * 8 / parts; i < (part + 1) * 8 / parts; i++)
                sum = __dp4a((int)four[i], q[r * TILE_K / 4 + i], sum);
            const int inputs = parts == 1 ? a.sum : part ? a.sum - a.low : a.low;
            const float exact = (float)(sum - wg_four_zero<TYPE>() * inputs);
            acc[r] = fmaf(exact * a.da, scale[part], acc[r]);
        }
        if (wg_has_min(TYPE)) acc[r] = fmaf(a.das, min, acc[r]);
    }
}

template <int TYPE, int ROWS> WG_KERNEL WG_LAUNCH_BOUNDS(THREADS, 1) matmul_blocks(matmul_job j)
{
    WG_SHARED(int, q, ROWS * TILE_K / 4);
    WG_SHARED(act_block, blocks, ROWS * WG_ACT_BLOCKS);
    const int t = (int)threadIdx.x, warp = t / WG_WARP, lane = t % WG_WARP, first = (int)blockIdx.y * ROWS;
    const int panel = (int)blockIdx.x * WARPS + warp, n_blocks = wg_blocks(j.k);
    const bool mine = panel * WG_PANEL < j.n;
    const uint8_t *w = (const uint8_t *)j.data + (size_t)panel * wg_panel_bytes(TYPE, j.k);
    const int *act_q = (const int *)j.act;
    const act_block *act_b = (const act_block *)((const int8_t *)j.act + (size_t)j.rows * j.k);
    float acc[ROWS];
    WG_UNROLL for (int r = 0; r < ROWS; r++) acc[r] = 0;
    for (int b0 = 0; b0 < n_blocks; b0 += WG_ACT_BLOCKS) {
        const int n = n_blocks - b0 < WG_ACT_BLOCKS ? n_blocks - b0 : WG_ACT_BLOCKS;
        __syncthreads();
        for (int i = t; i < ROWS * TILE_K / 4; i += THREADS) {
            const int r = first + i / (TILE_K / 4), word = i % (TILE_K / 4);
            if (word < n * (WG_BLOCK / 4)) q[i] = r < j.rows ? act_q[((size_t)r * j.k + (size_t)b0 * WG_BLOCK) / 4 + word] : 0;
        }
        for (int i = t; i < ROWS * WG_ACT_BLOCKS; i += THREADS) {
            const int r = first + i / WG_ACT_BLOCKS, b = i % WG_ACT_BLOCKS;
            if (b < n) blocks[i] = r < j.rows ? act_b[(size_t)r * n_blocks + b0 + b] : act_block{ 0, 0, 0, 0 };
        }
        __syncthreads();
        for (int b = 0; b < n && mine; b++)
            add_block<TYPE, ROWS>(w + wg_head_of(TYPE, b0 + b), w + wg_block_of(TYPE, b0 + b), lane, q + b * (WG_BLOCK / 4),
                                  blocks + b, acc);
    }
    if (mine) store_sums<ROWS>(j, acc, first, panel * WG_PANEL + lane);
}

/* ---- launching */

typedef void matmul_kernel(matmul_job);

template <int ROWS> static matmul_kernel *kernel_for(int type)
{
    switch (type) {
    case WG_F32: return matmul_float<WG_F32, ROWS>;
    case WG_F16: return matmul_float<WG_F16, ROWS>;
    case WG_BF16: return matmul_float<WG_BF16, ROWS>;
#define X(type) case type: return matmul_blocks<type, ROWS>;
    WG_GPU_QUANTISED(X)
#undef X
    default: return NULL;
    }
}

extern "C" void WG_GPU(matmul)(wg_gpu *g, const wg_matrix *w, int fragments, const void *act, int rows, float *y)
{
    if (fragments && wg_gpu_is_half(w->type)) {
        WG_GPU(matmul_mma)(g, w, act, rows, y);
        return;
    }
    const matmul_job j = { w->data, act, w->n, w->k, rows, y };
    const int each = rows == 1 ? 1 : MOST_ROWS;
    matmul_kernel *kernel = rows == 1 ? kernel_for<1>(w->type) : kernel_for<MOST_ROWS>(w->type);
    const dim3 grid(wg_blocks_for((size_t)w->n, WARPS * WG_PANEL), wg_blocks_for((size_t)rows, each));
    WG_LAUNCH(kernel, grid, THREADS, 0, g->stream, j);
}
