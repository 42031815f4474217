/* SPDX-License-Identifier: MIT
 * Products of float weights with the bits of kernels/ref, from the same panels of 32 outputs: a warp owns a panel, a lane an
 * output, so that a warp reads whole lines; a thread keeps the sums of ROWS rows, each one chain of fused multiply-adds over k
 * (f8_e4m3: a chain for each block, and one over the blocks). What a row's sum is never depends on ROWS. Plain rather than
 * fast: f16, bf16 and f8_e4m3 have tensor cores (matmul_mma.cu) in the strict mode.
 *
 * Bytes: the weights once for every ROWS rows. */
#include "kernels/cuda/product.h"
#include "kernels/layout.h"

enum { THREADS = 128, WARPS = THREADS / WG_WARP, MOST_ROWS = 8, TILE_K = 256 };

/* x: ROWS * TILE_K floats, shared. */
template <int TYPE, int ROWS> WG_DEVICE void sum_panels(const wg_product &p, float *x)
{
    const int lane = (int)threadIdx.x % WG_WARP, first = (int)blockIdx.y * ROWS;
    const wg_unit u = wg_unit_of(p, (int)blockIdx.x * WARPS + (int)threadIdx.x / WG_WARP);
    const size_t at = (size_t)u.index * p.k * WG_PANEL + lane;
    const uint8_t *panel = (const uint8_t *)u.data + (size_t)u.index * wg_float_at(TYPE, p.k); /* f8_e4m3 */
    const float *act = (const float *)p.act;
    float acc[ROWS], sum[ROWS]; /* sum: of the blocks before, f8_e4m3 */
    WG_UNROLL_FOR(int r = 0; r < ROWS; r++) acc[r] = sum[r] = 0;
    for (int k0 = 0; k0 < p.k; k0 += TILE_K) {
        const int n = p.k - k0 < TILE_K ? p.k - k0 : TILE_K;
        __syncthreads();
        WG_UNROLL_FOR(int r = 0; r < ROWS; r++)
            for (int i = (int)threadIdx.x; i < n; i += THREADS)
                x[r * TILE_K + i] = first + r < p.rows ? act[(size_t)(first + r) * p.k + k0 + i] : 0.0f;
        __syncthreads();
        for (int i = 0; i < n && u.mine; i++) {
            const size_t e = at + (size_t)(k0 + i) * WG_PANEL;
            const uint8_t *block = panel + wg_float_at(TYPE, (k0 + i) / WG_F8_RUN * WG_F8_RUN);
            const float w = TYPE == WG_F32       ? ((const float *)u.data)[e]
                            : TYPE == WG_F16     ? wg_f16_value(((const uint16_t *)u.data)[e])
                            : TYPE == WG_F8_E4M3 ? wg_f8_value(block[WG_F8_HEAD + i % WG_F8_RUN * WG_PANEL + lane])
                                                 : wg_bf16_value(((const uint16_t *)u.data)[e]);
            WG_UNROLL_FOR(int r = 0; r < ROWS; r++) acc[r] = fmaf(w, x[r * TILE_K + i], acc[r]);
            if (TYPE == WG_F8_E4M3 && i % WG_F8_RUN == WG_F8_RUN - 1)
                WG_UNROLL_FOR(int r = 0; r < ROWS; r++) {
                    sum[r] = fmaf(((const float *)block)[lane], acc[r], sum[r]);
                    acc[r] = 0;
                }
        }
    }
    if (TYPE == WG_F8_E4M3)
        WG_UNROLL_FOR(int r = 0; r < ROWS; r++) acc[r] = sum[r];
    __syncthreads();
    if (!wg_take_pairs<ROWS>(p, acc, x) || !u.mine) return;
    WG_UNROLL_FOR(int r = 0; r < ROWS; r++) wg_store_sum(p, u, first + r, u.index * WG_PANEL + lane, acc[r]);
}

template <int TYPE, int ROWS> WG_KERNEL WG_LAUNCH_BOUNDS(THREADS, 1) matmul_panels(wg_product p)
{
    wg_depend();
    WG_SHARED(float, x, (ROWS * TILE_K));
    sum_panels<TYPE, ROWS>(p, x);
}

template <int TYPE> WG_KERNEL WG_LAUNCH_BOUNDS(THREADS, 1) expert_panels(wg_product p, wg_expert_runs of)
{
    wg_depend();
    WG_SHARED(float, x, (WG_GPU_RUN * TILE_K));
    if (wg_take_expert(of, &p)) sum_panels<TYPE, WG_GPU_RUN>(p, x);
}

typedef void product_kernel(wg_product);

template <int ROWS> static product_kernel *kernel_for(int type)
{
    return type == WG_F32       ? matmul_panels<WG_F32, ROWS>
           : type == WG_F16     ? matmul_panels<WG_F16, ROWS>
           : type == WG_F8_E4M3 ? matmul_panels<WG_F8_E4M3, ROWS>
                                : matmul_panels<WG_BF16, ROWS>;
}

extern "C" void WG_GPU(matmul_float)(wg_gpu *g, int type, const wg_product *p)
{
    const int each = p->rows == 1 ? 1 : MOST_ROWS;
    product_kernel *kernel = p->rows == 1 ? kernel_for<1>(type) : kernel_for<MOST_ROWS>(type);
    const dim3 grid(wg_blocks_for((size_t)p->units, WARPS), wg_blocks_for((size_t)p->rows, (unsigned)each));
    WG_LAUNCH(kernel, grid, THREADS, 0, g->stream, *p);
}

extern "C" void WG_GPU(experts_float)(wg_gpu *g, int type, const wg_product *p, const wg_expert_runs *of)
{
    void (*kernel)(wg_product, wg_expert_runs) = type == WG_F32       ? expert_panels<WG_F32>
                                                 : type == WG_F16     ? expert_panels<WG_F16>
                                                 : type == WG_F8_E4M3 ? expert_panels<WG_F8_E4M3>
                                                                      : expert_panels<WG_BF16>;
    const dim3 grid(wg_blocks_for((size_t)p->units, WARPS), (unsigned)(p->rows / WG_GPU_RUN));
    WG_LAUNCH(kernel, grid, THREADS, 0, g->stream, *p, *of);
}
