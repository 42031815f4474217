/* SPDX-License-Identifier: MIT
 * Products y = x W^T of f8_e4m3 weights on tensor cores: the plan of matmul_mma.cu (slices of K, a ring of stages, four warps a
 * stripe for few rows) with half the bytes. A code becomes a half by shifts: the same bits are value * 2^-8 there, exactly, and
 * subnormal codes are subnormal halves. Inputs are those of f16 weights, two halves each, so they keep 21 bits; bf16 would keep
 * 16 and want a multiplication a weight.
 *
 * An output's sum: a block of 128 inputs is one accumulator, for each 16 inputs first the product with the rounded inputs, then
 * that with what rounding left; sum = fma(scale, its end, sum), blocks ascending in a slice. A slice is a run of whole blocks,
 * by K alone, and the slices are added ascending.
 *
 * Bytes: the weights once for every 64 rows. */
#include "kernels/cuda/slice_ring.h"

enum {
    RECORD = WG_GPU_F8_RECORD,
    CODES = 16 * WG_GPU_K /* bytes of a record */,
    STEPS = WG_F8_RUN / WG_GPU_K /* of a block */
};

/* The step that slice i of `blocks` begins with. */
WG_DEVICE int slice_at(int blocks, int i) { return blocks * i / SLICES * STEPS; }

/* Four codes, bytes 1 and 3, 0 and 2, as two pairs of halves. */
WG_DEVICE void halves_of(uint32_t codes, uint32_t *pair)
{
    pair[0] = (codes >> 1 & 0x3F803F80u) | (codes & 0x80008000u);
    pair[1] = (codes << 7 & 0x3F803F80u) | (codes << 8 & 0x80008000u);
}

/* Of a block: the scale of the lane's lower output, which comes first, and the sums so far. */
template <int TILES> struct block_sums {
    float low, acc[TILES][4];
};

/* Step `step` of a slice, whose sums the block's go to when it is done. x: the lane's row of the first tile, of its term and
 * its half of 16 inputs. */
template <int TILES>
WG_DEVICE void add_step(const uint8_t *record, int step, const uint16_t *x, int lane, block_sums<TILES> *b, float sum[TILES][4])
{
    const float scale = ((const float *)(record + CODES))[lane / 4];
    if (step % STEPS == 0) b->low = scale;
    WG_UNROLL_BY(TILES == 8 ? 1 : 4)
    for (int s = 0; s < WG_GPU_K / 16; s++) { /* fewer: 8 tiles need the registers */
        const uint2 two = ((const uint2 *)record)[s * WG_WARP + lane];
        uint32_t w[4];
        halves_of(two.x, w);
        halves_of(two.y, w + 2);
        WG_UNROLL_FOR(int i = 0; i < TILES; i++) {
            /* Matrices of a load: k 0..7 and 8..15 of the step, of the first term, then of the second. */
            uint32_t v[4];
            wg_ldmatrix_x4(v, x + i * 8 * LINE + s * 16);
            wg_mma_f16(b->acc[i], w, v);
            wg_mma_f16(b->acc[i], w, v + 2);
        }
    }
    if (step % STEPS < STEPS - 1) return;
    WG_UNROLL_FOR(int i = 0; i < TILES * 4; i++) {
        float *acc = &b->acc[i / 4][i % 4];
        sum[i / 4][i % 4] = fmaf(i % 4 < 2 ? b->low : scale, *acc, sum[i / 4][i % 4]);
        *acc = 0;
    }
}

/* EARLY: weights are known before wg_depend(). */
template <int TILES, int STAGES, bool EARLY> WG_DEVICE void sum_codes(const wg_product &p, int stripes, uint8_t *ring)
{
    const bool alone = warps_of(TILES) == 1;
    const int lane = (int)threadIdx.x % WG_WARP, warp = (int)threadIdx.x / WG_WARP, first = (int)blockIdx.y * TILES * 8;
    const int size = stage_bytes<TILES, RECORD>(stripes), blocks = p.k / WG_F8_RUN;
    const wg_unit u = wg_unit_of(p, (int)blockIdx.x * stripes + warp % stripes);
    /* Alone, a warp goes through all slices; else through its own, as often as the longest slice is long. */
    const int from = alone ? 0 : slice_at(blocks, warp / stripes);
    const int to = alone ? blocks * STEPS : slice_at(blocks, warp / stripes + 1);
    const int inputs = stripes * warps_of(TILES) * RECORD + (alone ? 0 : warp / stripes * inputs_bytes<TILES>()) +
                       ((lane / 16 * TILES * 8 + lane % 8) * LINE + lane / 8 % 2 * 8) * 2;
    float part[TILES][4], sum[TILES][4];
    block_sums<TILES> block = {};
    int at = 0;
    for (int s = 0; s < STAGES - 1; s++) fetch_weights<RECORD>(p, u, ring + s * size, from + s < to ? from + s : -1);
    if (EARLY) wg_depend();
    for (int s = 0; s < STAGES - 1; s++)
        fetch_inputs<TILES, RECORD>(p, stripes, ring + s * size, first, from + s < to ? from + s : -1);
    for (int slice = 0; slice < SLICES / warps_of(TILES); slice++) {
        const int begin = alone ? slice_at(blocks, slice) : from;
        const int end = alone ? slice_at(blocks, slice + 1) : from + (blocks + SLICES - 1) / SLICES * STEPS;
        WG_UNROLL_FOR(int i = 0; i < TILES; i++) part[i][0] = part[i][1] = part[i][2] = part[i][3] = 0;
        for (int step = begin; step < end; step++) {
            wg_copy_wait(STAGES - 2);
            __syncthreads(); /* stage `at` is there; the one before it has been used */
            const int next = step + STAGES - 1 < to ? step + STAGES - 1 : -1;
            uint8_t *const used = ring + (at ? at - 1 : STAGES - 1) * size;
            fetch_weights<RECORD>(p, u, used, next);
            fetch_inputs<TILES, RECORD>(p, stripes, used, first, next);
            const uint8_t *stage = ring + at * size;
            if (u.mine && step < to)
                add_step<TILES>(stage + warp * RECORD, step, (const uint16_t *)(stage + inputs), lane, &block, part);
            at = at + 1 < STAGES ? at + 1 : 0;
        }
        WG_UNROLL_FOR(int i = 0; i < TILES; i++)
            WG_UNROLL_FOR(int e = 0; e < 4; e++) sum[i][e] = slice == 0 ? part[i][e] : sum[i][e] + part[i][e];
    }
    __syncthreads();
    if (!alone) gather_slices<TILES * 4>(stripes, sum[0], (float *)ring);
    const float *scale = (const float *)((const uint16_t *)p.act + TERMS * (size_t)p.rows * p.k);
    WG_UNROLL_FOR(int i = 0; i < TILES * 4; i++) {
        const int row = first + i / 4 * 8 + lane % 4 * 2 + i % 2;
        sum[i / 4][i % 4] *= row < p.rows ? scale[row] : 0.0f;
    }
    if (!wg_take_pairs<TILES * 4>(p, sum[0], (float *)ring) || !u.mine || warp >= stripes) return;
    WG_UNROLL_FOR(int i = 0; i < TILES * 4; i++)
        wg_store_sum(p, u, first + i / 4 * 8 + lane % 4 * 2 + i % 2, u.index * 16 + lane / 4 + i / 2 % 2 * 8,
                     sum[i / 4][i % 4]);
}

template <int TILES, int STAGES> WG_KERNEL WG_LAUNCH_BOUNDS(BOUND, 1) matmul_codes(wg_product p, int stripes)
{
    WG_SHARED_DYNAMIC(uint8_t, ring);
    sum_codes<TILES, STAGES, true>(p, stripes, ring);
}

enum { EXPERT_STAGES = 5, EXPERT_STRIPES = 2 };

WG_KERNEL WG_LAUNCH_BOUNDS(BOUND, 1) expert_codes(wg_product p, wg_expert_runs of)
{
    WG_SHARED_DYNAMIC(uint8_t, ring);
    wg_depend();
    if (wg_take_expert(of, &p)) sum_codes<WG_GPU_RUN / 8, EXPERT_STAGES, false>(p, EXPERT_STRIPES, ring);
}

extern "C" void WG_GPU(experts_f8)(wg_gpu *g, const wg_product *p, const wg_expert_runs *of)
{
    const size_t bytes = (size_t)EXPERT_STAGES * (size_t)stage_bytes<1, RECORD>(EXPERT_STRIPES);
    const dim3 grid(wg_blocks_for((size_t)p->units, EXPERT_STRIPES), (unsigned)(p->rows / WG_GPU_RUN));
    WG_LAUNCH(expert_codes, grid, EXPERT_STRIPES * warps_of(1) * WG_WARP, bytes, g->stream, *p, *of);
}

template <int TILES, int STAGES> static void launch(wg_gpu *g, const wg_product *p, int stripes)
{
    const size_t bytes = (size_t)STAGES * (size_t)stage_bytes<TILES, RECORD>(stripes);
    const dim3 grid(wg_blocks_for((size_t)p->units, (unsigned)stripes), wg_blocks_for((size_t)p->rows, TILES * 8));
    void (*kernel)(wg_product, int) = matmul_codes<TILES, STAGES>;
    WG_LAUNCH(kernel, grid, stripes * warps_of(TILES) * WG_WARP, bytes, g->stream, *p, stripes);
}

/* The number of stages keeps a block under 99 KB of shared memory. */
extern "C" void WG_GPU(matmul_f8)(wg_gpu *g, const wg_product *p)
{
    const int tiles = (p->rows + 7) / 8, many = p->units >= 8 * ENOUGH;
    if (tiles == 1 && p->units < 4 * ENOUGH && p->then != WG_GPU_SWIGLU) launch<1, 7>(g, p, 1);
    else if (tiles == 1) launch<1, 5>(g, p, 2);
    else if (tiles == 2) launch<2, 8>(g, p, many ? 4 : 2);
    else if (tiles <= 4) launch<4, 6>(g, p, 4);
    else if (!many) launch<8, 4>(g, p, 4);
    else launch<8, 3>(g, p, 8);
}

/* ---- rows as they are (fused.h), as in matmul_mma.cu */

template <int STAGES>
WG_KERNEL WG_LAUNCH_BOUNDS(BOUND, 1) fused_codes(wg_product p, WG_GRID_CONSTANT const wg_fusion f, int stripes)
{
    WG_SHARED_DYNAMIC(uint8_t, lines);
    const int lane = (int)threadIdx.x % WG_WARP, warp = (int)threadIdx.x / WG_WARP, end = p.rows * wg_gpu_line_bytes(p.k);
    const int blocks = p.k / WG_F8_RUN, slice = warp / stripes, beside = (int)gridDim.x * stripes;
    const int from = slice_at(blocks, slice), count = slice_at(blocks, slice + 1) - from;
    const size_t stripe = wg_gpu_f8_stripe(p.k);
    uint8_t *const ring = lines + end + warp * STAGES * RECORD;
    float *const room = (float *)(lines + end + stripes * SLICES * STAGES * RECORD);
    int unit = (int)blockIdx.x * stripes + warp % stripes, at = 0;
    wg_lane_best best = { { { 0, -1 }, { 0, -1 } } };
    wg_feed feed;
    wg_feed_unit(p, f, &feed, unit, stripe, (size_t)from * RECORD, count);
    for (int s = 0; s < STAGES - 1; s++) {
        if (feed.left <= 0) wg_feed_unit(p, f, &feed, feed.unit + beside, stripe, (size_t)from * RECORD, count);
        wg_feed_copy(&feed, ring + s * RECORD, RECORD);
    }
    wg_depend();
    wg_lines_prepare<WG_F8_E4M3>(f.in, p.rows, p.k, lines);
    /* The lane's row, its term and its half of 16 inputs; rows past the last are anyone's: their sums go nowhere. */
    const uint8_t *x = wg_line(lines, lane % 8 < p.rows ? lane % 8 : 0, p.k) + lane / 16 * (WG_GPU_K * 2) + lane / 8 % 2 * 16;
    for (int turn = (int)blockIdx.x * stripes; turn < p.units; turn += beside, unit += beside) {
        const wg_unit u = wg_fused_unit(p, f, unit);
        float sum[1][WG_SUMS] = {};
        block_sums<1> block = {};
        for (int step = from; step < from + count; step++) {
            wg_copy_wait(STAGES - 2);
            __syncwarp(); /* stage `at` is there; the one before it has been used */
            if (feed.left <= 0) wg_feed_unit(p, f, &feed, feed.unit + beside, stripe, (size_t)from * RECORD, count);
            wg_feed_copy(&feed, ring + (at ? at - 1 : STAGES - 1) * RECORD, RECORD);
            if (u.mine) add_step<1>(ring + at * RECORD, step, (const uint16_t *)(x + step * (WG_GPU_K * 4)), lane, &block, sum);
            at = at + 1 < STAGES ? at + 1 : 0;
        }
        gather_slices<WG_SUMS>(stripes, sum[0], room);
        WG_UNROLL_FOR(int e = 0; e < WG_SUMS; e++) {
            const int row = lane % 4 * 2 + e % 2;
            sum[0][e] *= row < p.rows ? wg_line_end(lines, row, p.k)[WG_LINE_SCALE] : 0.0f;
        }
        wg_store_stripe(p, f, u, warp < stripes, sum[0], room);
        if (f.best && warp < stripes) wg_best_note(p, u, sum[0], &best);
    }
    if (f.best) wg_best_tell(f, p.rows, &best, (wg_gpu_best *)room);
}

template <int STAGES> static void launch_fused(wg_gpu *g, const wg_product *p, const wg_fusion *f, int stripes)
{
    const size_t bytes = fused_bytes<RECORD>(p->rows, p->k, stripes, STAGES);
    void (*kernel)(wg_product, const wg_fusion, int) = fused_codes<STAGES>;
    WG_LAUNCH(kernel, wg_fused_blocks(g, f, wg_blocks_for((size_t)p->units, (unsigned)stripes), bytes),
              stripes * SLICES * WG_WARP, bytes, g->stream, *p, *f, stripes);
}

extern "C" void WG_GPU(fused_f8)(wg_gpu *g, const wg_product *p, const wg_fusion *f)
{
    if (p->units < 4 * ENOUGH && p->then != WG_GPU_SWIGLU && !f->head) launch_fused<9>(g, p, f, 1);
    else launch_fused<5>(g, p, f, 2);
}
