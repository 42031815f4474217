/* SPDX-License-Identifier: MIT
 * What the products on floating-point tensor cores share (matmul_mma.cu, matmul_f8.cu): the ring of stages through which a
 * step of WG_GPU_K inputs comes by cp.async, and the slices of K that four warps take apart. A record is a stripe's step of
 * weights, RECORD bytes. A stage is a record for each warp, then for each slice a step of inputs: [TERMS][TILES * 8] lines of
 * LINE 16-bit numbers, 144 bytes, so that the eight rows of an ldmatrix lie in different banks. Private to kernels/cuda. */
#ifndef WG_KERNELS_CUDA_SLICE_RING_H
#define WG_KERNELS_CUDA_SLICE_RING_H

#include "kernels/cuda/fused.h"

enum {
    SLICES = 4,
    LINE = WG_GPU_K + 8,
    TERMS = 2,
    PIECES = WG_GPU_K / 8 /* of 16 bytes in a line */,
    ENOUGH = 128 /* blocks of a grid, for any card */,
    BOUND = 384 /* leaves a thread 168 registers */
};

/* Warps of a stripe. A block has one or more stripes side by side. */
WG_HD static constexpr int warps_of(int tiles) { return tiles == 1 ? SLICES : 1; }

template <int TILES> WG_HD static inline int inputs_bytes() { return TERMS * TILES * 8 * LINE * 2; }
template <int TILES, int RECORD> WG_HD static inline int stage_bytes(int stripes)
{
    return warps_of(TILES) * (stripes * RECORD + inputs_bytes<TILES>());
}

/* Of fused kernels: the rows, and for each warp a ring of weights alone and room for its sums. */
template <int RECORD> WG_HD static inline size_t fused_bytes(int rows, int k, int stripes, int stages)
{
    return (size_t)rows * wg_gpu_line_bytes(k) + (size_t)stripes * SLICES * (stages * RECORD + WG_SUMS * WG_WARP * 4);
}

/* One step of this warp's weights; step < 0: none. */
template <int RECORD> WG_DEVICE void fetch_weights(const wg_product &p, const wg_unit &u, uint8_t *stage, int step)
{
    const int lane = (int)threadIdx.x % WG_WARP, warp = (int)threadIdx.x / WG_WARP;
    const size_t stripe = wg_gpu_k_padded(p.k) / WG_GPU_K * RECORD;
    const uint8_t *record = (const uint8_t *)u.data + (size_t)u.index * stripe + (size_t)(step < 0 ? 0 : step) * RECORD;
    for (int i = lane * 16; i < RECORD && step >= 0 && u.mine; i += WG_WARP * 16)
        wg_copy_async16(stage + warp * RECORD + i, record + i, true);
}

/* One step of inputs of its slice, which the warps of that slice fetch together; rows past the last are zeros. Closes a group:
 * an empty one counts too. */
template <int TILES, int RECORD>
WG_DEVICE void fetch_inputs(const wg_product &p, int stripes, uint8_t *stage, int first, int step)
{
    const unsigned k = (unsigned)wg_gpu_k_padded(p.k);
    const int t = (int)threadIdx.x, group = stripes * WG_WARP;
    const int slice = warps_of(TILES) == 1 ? 0 : t / WG_WARP / stripes;
    uint16_t *to = (uint16_t *)(stage + stripes * warps_of(TILES) * RECORD + slice * inputs_bytes<TILES>());
    for (int i = t - slice * group; i < TERMS * TILES * 8 * PIECES && step >= 0; i += group) {
        const int piece = i % PIECES, row = i / PIECES % (TILES * 8), term = i / (PIECES * TILES * 8);
        const bool valid = first + row < p.rows;
        const unsigned line = (unsigned)(term * p.rows + (valid ? first + row : 0));
        const size_t from = (size_t)line * k + (unsigned)(step * WG_GPU_K + piece * 8);
        wg_copy_async16(to + (term * TILES * 8 + row) * LINE + piece * 8, (const uint16_t *)p.act + from, valid);
    }
    wg_copy_commit();
}

/* The sums of slices 1.. that other warps hold, ascending, onto those of slice 0. All threads of the block call. */
template <int COUNT> WG_DEVICE void gather_slices(int stripes, float *sum, float *room)
{
    const int lane = (int)threadIdx.x % WG_WARP, warp = (int)threadIdx.x / WG_WARP;
    __syncthreads();
    WG_UNROLL_FOR(int i = 0; i < COUNT; i++) room[(warp * COUNT + i) * WG_WARP + lane] = sum[i];
    __syncthreads();
    for (int slice = 1; slice < SLICES && warp < stripes; slice++)
        WG_UNROLL_FOR(int i = 0; i < COUNT; i++) sum[i] += room[((slice * stripes + warp) * COUNT + i) * WG_WARP + lane];
    __syncthreads();
}

#endif
