/* SPDX-License-Identifier: MIT
 * Products y = x W^T of f16 and bf16 weights on tensor cores. The weights are the 16-row operand and lie in fragment order, so
 * a lane takes its four registers of a 16 x 16 tile with one 16-byte load and a warp streams whole lines; the rows of x are the
 * 8-wide side, so few rows waste little.
 *
 * An output's sum: K is cut into SLICES runs of steps of WG_GPU_K inputs, by K alone. A slice is one accumulator, ascending,
 * for each 16 inputs first the product with the rounded inputs, then that with what rounding left (quant.cu); the slices are
 * added ascending. Up to 8 rows, four warps take a slice each, so that a matrix of few outputs keeps the card busy, and meet in
 * shared memory; with more rows one warp takes all four. Columns of an mma do not interact. So a row's bits depend on neither
 * the rows beside it nor how the warps share the work (held to it by tests here; a probe asks the same of a device).
 *
 * Weights and inputs come through a ring of STAGES stages by cp.async: bytes under way are what a card's memory needs.
 * Inputs reach their registers by ldmatrix; lines of 144 bytes keep the eight rows of a matrix in different banks.
 *
 * Bytes: the weights once for every 64 rows. */
#include "kernels/cuda/slice_ring.h"

enum { RECORD = WG_GPU_K / 16 * 512 };

/* Where slice i of `steps` begins. */
WG_DEVICE int slice_at(int steps, int i) { return steps * i / SLICES; }

/* x: the lane's row of the first tile, of its term and its half of 16 inputs. */
template <int TYPE, int TILES> WG_DEVICE void add_step(const uint8_t *record, const uint16_t *x, int lane, float acc[TILES][4])
{
    WG_UNROLL_BY(TILES == 8 ? 1 : 4)
    for (int s = 0; s < WG_GPU_K / 16; s++) { /* fewer: 8 tiles need the registers */
        const uint4 four = ((const uint4 *)record)[s * WG_WARP + lane];
        const uint32_t w[4] = { four.x, four.y, four.z, four.w };
        WG_UNROLL_FOR(int i = 0; i < TILES; i++) {
            /* Matrices of a load: k 0..7 and 8..15 of the step, of the first term, then of the second. */
            uint32_t b[4];
            wg_ldmatrix_x4(b, x + i * 8 * LINE + s * 16);
            if (TYPE == WG_F16) {
                wg_mma_f16(acc[i], w, b);
                wg_mma_f16(acc[i], w, b + 2);
            } else {
                wg_mma_bf16(acc[i], w, b);
                wg_mma_bf16(acc[i], w, b + 2);
            }
        }
    }
}

/* EARLY: weights are known before wg_depend(). */
template <int TYPE, int TILES, int STAGES, bool EARLY>
WG_DEVICE void sum_fragments(const wg_product &p, int stripes, uint8_t *ring)
{
    const bool alone = warps_of(TILES) == 1;
    const int lane = (int)threadIdx.x % WG_WARP, warp = (int)threadIdx.x / WG_WARP, first = (int)blockIdx.y * TILES * 8;
    const int size = stage_bytes<TILES, RECORD>(stripes), steps = (int)wg_gpu_k_padded(p.k) / WG_GPU_K;
    const wg_unit u = wg_unit_of(p, (int)blockIdx.x * stripes + warp % stripes);
    /* Alone, a warp goes through all slices; else through its own, as often as the longest slice is long. */
    const int from = alone ? 0 : slice_at(steps, warp / stripes), to = alone ? steps : slice_at(steps, warp / stripes + 1);
    const int inputs = stripes * warps_of(TILES) * RECORD + (alone ? 0 : warp / stripes * inputs_bytes<TILES>()) +
                       ((lane / 16 * TILES * 8 + lane % 8) * LINE + lane / 8 % 2 * 8) * 2;
    float acc[TILES][4], sum[TILES][4];
    int at = 0;
    for (int s = 0; s < STAGES - 1; s++) fetch_weights<RECORD>(p, u, ring + s * size, from + s < to ? from + s : -1);
    if (EARLY) wg_depend();
    for (int s = 0; s < STAGES - 1; s++)
        fetch_inputs<TILES, RECORD>(p, stripes, ring + s * size, first, from + s < to ? from + s : -1);
    for (int slice = 0; slice < SLICES / warps_of(TILES); slice++) {
        const int begin = alone ? slice_at(steps, slice) : from;
        const int end = alone ? slice_at(steps, slice + 1) : from + (steps + SLICES - 1) / SLICES;
        WG_UNROLL_FOR(int i = 0; i < TILES; i++) acc[i][0] = acc[i][1] = acc[i][2] = acc[i][3] = 0;
        for (int step = begin; step < end; step++) {
            const int next = step + STAGES - 1 < to ? step + STAGES - 1 : -1;
            uint8_t *const used = ring + (at ? at - 1 : STAGES - 1) * size;
            wg_copy_wait(STAGES - 2);
            __syncthreads(); /* stage `at` is there; the one before it has been used */
            fetch_weights<RECORD>(p, u, used, next);
            fetch_inputs<TILES, RECORD>(p, stripes, used, first, next);
            const uint8_t *stage = ring + at * size;
            if (u.mine && step < to)
                add_step<TYPE, TILES>(stage + warp * RECORD, (const uint16_t *)(stage + inputs), lane, acc);
            at = at + 1 < STAGES ? at + 1 : 0;
        }
        WG_UNROLL_FOR(int i = 0; i < TILES; i++)
            WG_UNROLL_FOR(int e = 0; e < 4; e++) sum[i][e] = slice == 0 ? acc[i][e] : sum[i][e] + acc[i][e];
    }
    __syncthreads();
    if (!alone) gather_slices<TILES * 4>(stripes, sum[0], (float *)ring);
    const float *scale = (const float *)((const uint16_t *)p.act + TERMS * (size_t)p.rows * wg_gpu_k_padded(p.k));
    WG_UNROLL_FOR(int i = 0; i < TILES * 4; i++) {
        const int row = first + i / 4 * 8 + lane % 4 * 2 + i % 2;
        sum[i / 4][i % 4] *= row < p.rows ? scale[row] : 0.0f;
    }
    if (!wg_take_pairs<TILES * 4>(p, sum[0], (float *)ring) || !u.mine || warp >= stripes) return;
    WG_UNROLL_FOR(int i = 0; i < TILES * 4; i++)
        wg_store_sum(p, u, first + i / 4 * 8 + lane % 4 * 2 + i % 2, u.index * 16 + lane / 4 + i / 2 % 2 * 8,
                     sum[i / 4][i % 4]);
}

template <int TYPE, int TILES, int STAGES> WG_KERNEL WG_LAUNCH_BOUNDS(BOUND, 1) matmul_fragments(wg_product p, int stripes)
{
    WG_SHARED_DYNAMIC(uint8_t, ring);
    sum_fragments<TYPE, TILES, STAGES, true>(p, stripes, ring);
}

enum { EXPERT_STAGES = 3, EXPERT_STRIPES = 2 };

template <int TYPE> WG_KERNEL WG_LAUNCH_BOUNDS(BOUND, 1) expert_fragments(wg_product p, wg_expert_runs of)
{
    WG_SHARED_DYNAMIC(uint8_t, ring);
    wg_depend();
    if (wg_take_expert(of, &p)) sum_fragments<TYPE, WG_GPU_RUN / 8, EXPERT_STAGES, false>(p, EXPERT_STRIPES, ring);
}

extern "C" void WG_GPU(experts_mma)(wg_gpu *g, int type, const wg_product *p, const wg_expert_runs *of)
{
    const size_t bytes = (size_t)EXPERT_STAGES * (size_t)stage_bytes<1, RECORD>(EXPERT_STRIPES);
    const dim3 grid(wg_blocks_for((size_t)p->units, EXPERT_STRIPES), (unsigned)(p->rows / WG_GPU_RUN));
    void (*kernel)(wg_product, wg_expert_runs) = type == WG_F16 ? expert_fragments<WG_F16> : expert_fragments<WG_BF16>;
    WG_LAUNCH(kernel, grid, EXPERT_STRIPES * warps_of(1) * WG_WARP, bytes, g->stream, *p, *of);
}

template <int TYPE, int TILES, int STAGES> static void launch(wg_gpu *g, const wg_product *p, int stripes)
{
    const size_t bytes = (size_t)STAGES * (size_t)stage_bytes<TILES, RECORD>(stripes);
    const dim3 grid(wg_blocks_for((size_t)p->units, (unsigned)stripes), wg_blocks_for((size_t)p->rows, TILES * 8));
    void (*kernel)(wg_product, int) = matmul_fragments<TYPE, TILES, STAGES>;
    WG_LAUNCH(kernel, grid, stripes * warps_of(TILES) * WG_WARP, bytes, g->stream, *p, stripes);
}

/* The number of stages keeps a block under 99 KB of shared memory. */
template <int TYPE> static void launch_for(wg_gpu *g, const wg_product *p)
{
    const int tiles = (p->rows + 7) / 8, many = p->units >= 8 * ENOUGH;
    if (tiles == 1 && p->units < 4 * ENOUGH && p->then != WG_GPU_SWIGLU) launch<TYPE, 1, 5>(g, p, 1);
    else if (tiles == 1) launch<TYPE, 1, 3>(g, p, 2);
    else if (tiles == 2) launch<TYPE, 2, 7>(g, p, many ? 4 : 2);
    else if (tiles <= 4) launch<TYPE, 4, 5>(g, p, 4);
    else if (!many) launch<TYPE, 8, 3>(g, p, 4);
    else launch<TYPE, 8, 2>(g, p, 8);
}

extern "C" void WG_GPU(matmul_mma)(wg_gpu *g, int type, const wg_product *p)
{
    if (type == WG_F16) launch_for<WG_F16>(g, p);
    else launch_for<WG_BF16>(g, p);
}

/* ---- rows as they are (fused.h), SLICES warps a stripe. A warp has a ring of its own: only weights go through it. */

template <int TYPE, int STAGES>
WG_KERNEL WG_LAUNCH_BOUNDS(BOUND, 1) fused_fragments(wg_product p, WG_GRID_CONSTANT const wg_fusion f, int stripes)
{
    WG_SHARED_DYNAMIC(uint8_t, lines);
    const int lane = (int)threadIdx.x % WG_WARP, warp = (int)threadIdx.x / WG_WARP, end = p.rows * wg_gpu_line_bytes(p.k);
    const int steps = (int)wg_gpu_k_padded(p.k) / WG_GPU_K, slice = warp / stripes, beside = (int)gridDim.x * stripes;
    const int from = slice_at(steps, slice), count = slice_at(steps, slice + 1) - from;
    const size_t stripe = (size_t)steps * RECORD;
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
    wg_lines_prepare<TYPE>(f.in, p.rows, p.k, lines);
    /* The lane's row, its term and its half of 16 inputs; rows past the last are anyone's: their sums go nowhere. */
    const uint8_t *x = wg_line(lines, lane % 8 < p.rows ? lane % 8 : 0, p.k) + lane / 16 * (WG_GPU_K * 2) + lane / 8 % 2 * 16;
    for (int turn = (int)blockIdx.x * stripes; turn < p.units; turn += beside, unit += beside) {
        const wg_unit u = wg_fused_unit(p, f, unit);
        float sum[1][WG_SUMS] = {};
        for (int step = from; step < from + count; step++) {
            wg_copy_wait(STAGES - 2);
            __syncwarp(); /* stage `at` is there; the one before it has been used */
            if (feed.left <= 0) wg_feed_unit(p, f, &feed, feed.unit + beside, stripe, (size_t)from * RECORD, count);
            wg_feed_copy(&feed, ring + (at ? at - 1 : STAGES - 1) * RECORD, RECORD);
            if (u.mine) add_step<TYPE, 1>(ring + at * RECORD, (const uint16_t *)(x + step * (WG_GPU_K * 4)), lane, sum);
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

template <int TYPE, int STAGES> static void launch_fused(wg_gpu *g, const wg_product *p, const wg_fusion *f, int stripes)
{
    const size_t bytes = fused_bytes<RECORD>(p->rows, p->k, stripes, STAGES);
    void (*kernel)(wg_product, const wg_fusion, int) = fused_fragments<TYPE, STAGES>;
    WG_LAUNCH(kernel, wg_fused_blocks(g, f, wg_blocks_for((size_t)p->units, (unsigned)stripes), bytes),
              stripes * SLICES * WG_WARP, bytes, g->stream, *p, *f, stripes);
}

extern "C" void WG_GPU(fused_mma)(wg_gpu *g, int type, const wg_product *p, const wg_fusion *f)
{
    const bool pairs = p->then == WG_GPU_SWIGLU || f->head;
    if (p->units < 4 * ENOUGH && !pairs)
        type == WG_F16 ? launch_fused<WG_F16, 5>(g, p, f, 1) : launch_fused<WG_BF16, 5>(g, p, f, 1);
    else type == WG_F16 ? launch_fused<WG_F16, 3>(g, p, f, 2) : launch_fused<WG_BF16, 3>(g, p, f, 2);
}
