/* SPDX-License-Identifier: MIT
 * Shared by the products: several matrices in one launch, and the destination of a sum. A unit is the outputs that one warp
 * (matmul_mma.cu: up to four) computes: a panel of 32 outputs or a stripe of 16. Private to kernels/cuda. */
#ifndef WG_KERNELS_CUDA_PRODUCT_H
#define WG_KERNELS_CUDA_PRODUCT_H

#include "kernels/cuda/launch.h"
#include "kernels/exp.h"

struct wg_product {
    const void *data[WG_GPU_MATRICES];
    float *y[WG_GPU_MATRICES];
    int n[WG_GPU_MATRICES];
    int first[WG_GPU_MATRICES]; /* unit of each */
    int units, k, rows, then;
    const void *act;
};

/* Matrices of experts: the addresses of the data of all, and of which one a run of WG_GPU_RUN rows is (-1: of none). */
struct wg_expert_runs {
    const void *const *data[WG_GPU_MATRICES];
    const int32_t *expert;
};

/* The matrices of this block's run, behind wg_depend(). false: the run has no expert. */
WG_DEVICE bool wg_take_expert(const wg_expert_runs &of, wg_product *p)
{
    const int expert = of.expert[blockIdx.y];
    if (expert < 0) return false;
    p->data[0] = of.data[0][expert];
    if (p->then == WG_GPU_SWIGLU) p->data[1] = of.data[1][expert];
    return true;
}

/* The same kernels, a run of rows with its expert's matrices a block. */
extern "C" void WG_GPU(experts_float)(wg_gpu *g, int type, const wg_product *p, const wg_expert_runs *of);
extern "C" void WG_GPU(experts_mma)(wg_gpu *g, int type, const wg_product *p, const wg_expert_runs *of);
extern "C" void WG_GPU(experts_blocks)(wg_gpu *g, int type, const wg_product *p, const wg_expert_runs *of);

/* matmul_float.cu, matmul_mma.cu, matmul_blocks.cu */
extern "C" void WG_GPU(matmul_float)(wg_gpu *g, int type, const wg_product *p);
extern "C" void WG_GPU(matmul_mma)(wg_gpu *g, int type, const wg_product *p);
extern "C" void WG_GPU(matmul_blocks)(wg_gpu *g, int type, const wg_product *p);

/* Rows as they are (fused.h); the latter three. */
struct wg_fusion;
extern "C" void WG_GPU(fused_mma)(wg_gpu *g, int type, const wg_product *p, const wg_fusion *f);
extern "C" void WG_GPU(fused_blocks)(wg_gpu *g, int type, const wg_product *p, const wg_fusion *f);

struct wg_unit {
    const void *data;
    int matrix, index;
    bool mine;
};

/* With WG_GPU_SWIGLU gate and up take turns, so that neighbouring warps hold the sums of the same outputs. */
WG_DEVICE wg_unit wg_unit_of(const wg_product &p, int unit)
{
    const bool pair = p.then == WG_GPU_SWIGLU, mine = unit < p.units;
    const int m = pair ? unit % 2 : unit < p.first[1] ? 0 : unit < p.first[2] ? 1 : 2;
    const int index = pair ? unit / 2 : unit - (m == 0 ? 0 : m == 1 ? p.first[1] : p.first[2]);
    return wg_unit{ m == 0 ? p.data[0] : m == 1 ? p.data[1] : p.data[2], m, mine ? index : 0, mine };
}

/* The outputs of a unit's matrix, and how many; asked for when sums are stored, so no loop over K holds them in registers. */
WG_DEVICE float *wg_unit_y(const wg_product &p, const wg_unit &u)
{
    return p.then == WG_GPU_SWIGLU || u.matrix == 0 ? p.y[0] : u.matrix == 1 ? p.y[1] : p.y[2];
}
WG_DEVICE int wg_unit_n(const wg_product &p, const wg_unit &u)
{
    return u.matrix == 0 ? p.n[0] : u.matrix == 1 ? p.n[1] : p.n[2];
}

WG_DEVICE float wg_swiglu_of(float gate, float up) { return gate / (1.0f + wg_exp32_of(-gate)) * up; }

/* The sums a warp is to store: false for the warps of `up`, whose sums those of `gate` have taken. All threads of the block
 * call; room: COUNT * 32 floats for each two warps, shared and done with. */
template <int COUNT> WG_DEVICE bool wg_take_pairs(const wg_product &p, float *sum, float *room)
{
    if (p.then != WG_GPU_SWIGLU) return true;
    const int warp = (int)threadIdx.x / WG_WARP;
    float *line = room + warp / 2 * COUNT * WG_WARP + (int)threadIdx.x % WG_WARP;
    if (warp % 2)
        WG_UNROLL_FOR(int i = 0; i < COUNT; i++) line[i * WG_WARP] = sum[i];
    __syncthreads();
    if (warp % 2 == 0)
        WG_UNROLL_FOR(int i = 0; i < COUNT; i++) sum[i] = wg_swiglu_of(sum[i], line[i * WG_WARP]);
    return warp % 2 == 0;
}

WG_DEVICE void wg_store_sum(const wg_product &p, const wg_unit &u, int row, int n, float sum)
{
    const int outputs = wg_unit_n(p, u);
    if (row >= p.rows || n >= outputs) return;
    float *to = wg_unit_y(p, u) + (size_t)row * outputs + n;
    *to = p.then == WG_GPU_ADD ? *to + sum : sum;
}

#endif
