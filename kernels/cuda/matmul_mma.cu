/* SPDX-License-Identifier: MIT
 * Products y = x W^T of f16, bf16 and f8_e4m3 weights on tensor cores. The weights are the 16-row operand and lie in fragment
 * order: of halves a lane takes its four registers of a 16 x 16 tile with one 16-byte load and a warp streams whole lines; the
 * rows of x are the 8-wide side, so few rows waste little. A code of f8_e4m3 becomes a half by shifts, which has its value by
 * 2^8 smaller, exactly; subnormal codes are subnormal halves. Its inputs are those of f16 weights, two halves each, so they
 * keep 21 bits; bf16 would keep 16 and want a multiplication a weight.
 *
 * An output's sum: K is cut into SLICES runs of steps of WG_GPU_K inputs (of f8_e4m3 runs of whole blocks), by K alone. A
 * slice is one accumulator, ascending, for each 16 inputs first the product with the rounded inputs, then that with what
 * rounding left (quant.cu); of f8_e4m3 a block of 128 inputs is one, and slice = fma(scale, its end, slice). The slices are
 * added ascending. Up to 8 rows, four warps take a slice each, so that a matrix of few outputs keeps the card busy, and meet in
 * shared memory; with more rows one warp takes all four. Columns of an mma do not interact. So a row's bits depend on neither
 * the rows beside it nor how the warps share the work (held to it by tests here; a probe asks the same of a device).
 *
 * Weights and inputs come through a ring of STAGES stages by cp.async: bytes under way are what a card's memory needs. A record
 * is a stripe's step of weights, RECORD bytes. A stage is a record for each warp, then for each slice a step of inputs:
 * [TERMS][TILES * 8] lines of LINE 16-bit numbers, 144 bytes, so that the eight rows of an ldmatrix lie in different banks.
 *
 * Bytes: the weights once for every 64 rows. */
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
    const size_t steps = wg_gpu_k_padded(p.k) / WG_GPU_K;
    const uint8_t *record = (const uint8_t *)u.data + ((size_t)u.index * steps + (size_t)(step < 0 ? 0 : step)) * RECORD;
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

/* ---- what the types differ in */

template <int TYPE> WG_HD static constexpr int record_of()
{
    return TYPE == WG_F8_E4M3 ? WG_GPU_F8_RECORD : WG_GPU_K / 16 * 512;
}

/* Steps that a slice has a multiple of. */
template <int TYPE> WG_HD static constexpr int steps_of_block() { return TYPE == WG_F8_E4M3 ? WG_F8_RUN / WG_GPU_K : 1; }

/* Inputs of a row, padded to whole steps; those of f8_e4m3 are whole blocks. */
template <int TYPE> WG_DEVICE int inputs_of(const wg_product &p)
{
    return TYPE == WG_F8_E4M3 ? p.k : (int)wg_gpu_k_padded(p.k);
}

/* The step that slice i of `blocks` begins with. */
template <int TYPE> WG_DEVICE int slice_at(int blocks, int i) { return blocks * i / SLICES * steps_of_block<TYPE>(); }

/* The registers of a lane's 16 x 16 tile, number s of a record. */
template <int TYPE> WG_DEVICE void take_tile(const uint8_t *record, int s, int lane, uint32_t w[4])
{
    if (TYPE != WG_F8_E4M3) {
        const uint4 four = ((const uint4 *)record)[s * WG_WARP + lane];
        w[0] = four.x, w[1] = four.y, w[2] = four.z, w[3] = four.w;
        return;
    }
    const uint2 two = ((const uint2 *)record)[s * WG_WARP + lane];
    WG_UNROLL_FOR(int i = 0; i < 2; i++) { /* four codes, bytes 1 and 3, 0 and 2, as two pairs of halves */
        const uint32_t codes = i ? two.y : two.x;
        w[2 * i] = (codes >> 1 & 0x3F803F80u) | (codes & 0x80008000u);
        w[2 * i + 1] = (codes << 7 & 0x3F803F80u) | (codes << 8 & 0x80008000u);
    }
}

template <int TYPE> WG_DEVICE void multiply(float acc[4], const uint32_t w[4], const uint32_t *x)
{
    if (TYPE == WG_BF16) wg_mma_bf16(acc, w, x);
    else wg_mma_f16(acc, w, x);
}

/* Of a block of f8_e4m3: the scale of the lane's lower output, which comes first, and the sums so far. */
template <int TILES> struct block_sums {
    float low, acc[TILES][4];
};

/* Step `step` of a slice with these sums. x: the lane's row of the first tile, of its term and its half of 16 inputs. Of
 * f8_e4m3 the sums of the block, which the slice's get when it is done. */
template <int TYPE, int TILES>
WG_DEVICE void add_step(const uint8_t *record, int step, const uint16_t *x, int lane, block_sums<TILES> *b, float sum[TILES][4])
{
    const bool blocks = TYPE == WG_F8_E4M3;
    const float scale = blocks ? ((const float *)(record + 16 * WG_GPU_K))[lane / 4] : 0; /* behind the codes */
    if (blocks && step % steps_of_block<TYPE>() == 0) b->low = scale;
    WG_UNROLL_BY(TILES == 8 ? 1 : 4)
    for (int s = 0; s < WG_GPU_K / 16; s++) { /* fewer: 8 tiles need the registers */
        uint32_t w[4];
        take_tile<TYPE>(record, s, lane, w);
        WG_UNROLL_FOR(int i = 0; i < TILES; i++) {
            /* Matrices of a load: k 0..7 and 8..15 of the step, of the first term, then of the second. */
            uint32_t v[4];
            wg_ldmatrix_x4(v, x + i * 8 * LINE + s * 16);
            multiply<TYPE>(blocks ? b->acc[i] : sum[i], w, v);
            multiply<TYPE>(blocks ? b->acc[i] : sum[i], w, v + 2);
        }
    }
    if (!blocks || step % steps_of_block<TYPE>() < steps_of_block<TYPE>() - 1) return;
    WG_UNROLL_FOR(int i = 0; i < TILES * 4; i++) {
        float *acc = &b->acc[i / 4][i % 4];
        sum[i / 4][i % 4] = fmaf(i % 4 < 2 ? b->low : scale, *acc, sum[i / 4][i % 4]);
        *acc = 0;
    }
}

/* ---- products */

/* EARLY: weights are known before wg_depend(). */
template <int TYPE, int TILES, int STAGES, bool EARLY>
WG_DEVICE void sum_fragments(const wg_product &p, int stripes, uint8_t *ring)
{
    constexpr int RECORD = record_of<TYPE>();
    const bool alone = warps_of(TILES) == 1;
    const int lane = (int)threadIdx.x % WG_WARP, warp = (int)threadIdx.x / WG_WARP, first = (int)blockIdx.y * TILES * 8;
    const int size = stage_bytes<TILES, RECORD>(stripes), blocks = inputs_of<TYPE>(p) / WG_GPU_K / steps_of_block<TYPE>();
    const wg_unit u = wg_unit_of(p, (int)blockIdx.x * stripes + warp % stripes);
    /* Alone, a warp goes through all slices; else through its own, as often as the longest slice is long. */
    const int from = alone ? 0 : slice_at<TYPE>(blocks, warp / stripes);
    const int to = alone ? blocks * steps_of_block<TYPE>() : slice_at<TYPE>(blocks, warp / stripes + 1);
    const int inputs = stripes * warps_of(TILES) * RECORD + (alone ? 0 : warp / stripes * inputs_bytes<TILES>()) +
                       ((lane / 16 * TILES * 8 + lane % 8) * LINE + lane / 8 % 2 * 8) * 2;
    float acc[TILES][4], sum[TILES][4];
    block_sums<TILES> block = {};
    int at = 0;
    for (int s = 0; s < STAGES - 1; s++) fetch_weights<RECORD>(p, u, ring + s * size, from + s < to ? from + s : -1);
    if (EARLY) wg_depend();
    for (int s = 0; s < STAGES - 1; s++)
        fetch_inputs<TILES, RECORD>(p, stripes, ring + s * size, first, from + s < to ? from + s : -1);
    for (int slice = 0; slice < SLICES / warps_of(TILES); slice++) {
        const int begin = alone ? slice_at<TYPE>(blocks, slice) : from;
        const int end =
            alone ? slice_at<TYPE>(blocks, slice + 1) : from + (blocks + SLICES - 1) / SLICES * steps_of_block<TYPE>();
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
                add_step<TYPE, TILES>(stage + warp * RECORD, step, (const uint16_t *)(stage + inputs), lane, &block, acc);
            at = at + 1 < STAGES ? at + 1 : 0;
        }
        WG_UNROLL_FOR(int i = 0; i < TILES; i++)
            WG_UNROLL_FOR(int e = 0; e < 4; e++) sum[i][e] = slice == 0 ? acc[i][e] : sum[i][e] + acc[i][e];
    }
    __syncthreads();
    if (!alone) gather_slices<TILES * 4>(stripes, sum[0], (float *)ring);
    const float *scale = (const float *)((const uint16_t *)p.act + TERMS * (size_t)p.rows * inputs_of<TYPE>(p));
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

enum { EXPERT_STRIPES = 2 };

template <int TYPE> WG_HD static constexpr int expert_stages() { return TYPE == WG_F8_E4M3 ? 5 : 3; }

template <int TYPE> WG_KERNEL WG_LAUNCH_BOUNDS(BOUND, 1) expert_fragments(wg_product p, wg_expert_runs of)
{
    WG_SHARED_DYNAMIC(uint8_t, ring);
    wg_depend();
    if (wg_take_expert(of, &p)) sum_fragments<TYPE, WG_GPU_RUN / 8, expert_stages<TYPE>(), false>(p, EXPERT_STRIPES, ring);
}

template <int TYPE> static void launch_experts(wg_gpu *g, const wg_product *p, const wg_expert_runs *of)
{
    const size_t bytes = (size_t)expert_stages<TYPE>() * (size_t)stage_bytes<1, record_of<TYPE>()>(EXPERT_STRIPES);
    const dim3 grid(wg_blocks_for((size_t)p->units, EXPERT_STRIPES), (unsigned)(p->rows / WG_GPU_RUN));
    void (*kernel)(wg_product, wg_expert_runs) = expert_fragments<TYPE>;
    WG_LAUNCH(kernel, grid, EXPERT_STRIPES * warps_of(1) * WG_WARP, bytes, g->stream, *p, *of);
}

extern "C" void WG_GPU(experts_mma)(wg_gpu *g, int type, const wg_product *p, const wg_expert_runs *of)
{
    if (type == WG_F16) launch_experts<WG_F16>(g, p, of);
    else if (type == WG_BF16) launch_experts<WG_BF16>(g, p, of);
    else launch_experts<WG_F8_E4M3>(g, p, of);
}

template <int TYPE, int TILES, int STAGES> static void launch(wg_gpu *g, const wg_product *p, int stripes)
{
    const size_t bytes = (size_t)STAGES * (size_t)stage_bytes<TILES, record_of<TYPE>()>(stripes);
    const dim3 grid(wg_blocks_for((size_t)p->units, (unsigned)stripes), wg_blocks_for((size_t)p->rows, TILES * 8));
    void (*kernel)(wg_product, int) = matmul_fragments<TYPE, TILES, STAGES>;
    WG_LAUNCH(kernel, grid, stripes * warps_of(TILES) * WG_WARP, bytes, g->stream, *p, stripes);
}

/* The number of stages keeps a block under 99 KB of shared memory; codes take half of it. */
template <int TYPE> static void launch_for(wg_gpu *g, const wg_product *p)
{
    constexpr bool half = TYPE == WG_F8_E4M3;
    const int tiles = (p->rows + 7) / 8, many = p->units >= 8 * ENOUGH;
    if (tiles == 1 && p->units < 4 * ENOUGH && p->then != WG_GPU_SWIGLU) launch<TYPE, 1, half ? 7 : 5>(g, p, 1);
    else if (tiles == 1) launch<TYPE, 1, half ? 5 : 3>(g, p, 2);
    else if (tiles == 2) launch<TYPE, 2, half ? 8 : 7>(g, p, many ? 4 : 2);
    else if (tiles <= 4) launch<TYPE, 4, half ? 6 : 5>(g, p, 4);
    else if (!many) launch<TYPE, 8, half ? 4 : 3>(g, p, 4);
    else launch<TYPE, 8, half ? 3 : 2>(g, p, 8);
}

extern "C" void WG_GPU(matmul_mma)(wg_gpu *g, int type, const wg_product *p)
{
    if (type == WG_F16) launch_for<WG_F16>(g, p);
    else if (type == WG_BF16) launch_for<WG_BF16>(g, p);
    else launch_for<WG_F8_E4M3>(g, p);
}

/* ---- rows as they are (fused.h), SLICES warps a stripe. A warp has a ring of its own: only weights go through it. */

template <int TYPE, int STAGES>
WG_KERNEL WG_LAUNCH_BOUNDS(BOUND, 1) fused_fragments(wg_product p, WG_GRID_CONSTANT const wg_fusion f, int stripes)
{
    WG_SHARED_DYNAMIC(uint8_t, lines);
    constexpr int RECORD = record_of<TYPE>();
    const int lane = (int)threadIdx.x % WG_WARP, warp = (int)threadIdx.x / WG_WARP, end = p.rows * wg_gpu_line_bytes(p.k);
    const int steps = inputs_of<TYPE>(p) / WG_GPU_K, blocks = steps / steps_of_block<TYPE>();
    const int slice = warp / stripes, beside = (int)gridDim.x * stripes;
    const int from = slice_at<TYPE>(blocks, slice), count = slice_at<TYPE>(blocks, slice + 1) - from;
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
        block_sums<1> block = {};
        for (int step = from; step < from + count; step++) {
            wg_copy_wait(STAGES - 2);
            __syncwarp(); /* stage `at` is there; the one before it has been used */
            if (feed.left <= 0) wg_feed_unit(p, f, &feed, feed.unit + beside, stripe, (size_t)from * RECORD, count);
            wg_feed_copy(&feed, ring + (at ? at - 1 : STAGES - 1) * RECORD, RECORD);
            if (u.mine)
                add_step<TYPE, 1>(ring + at * RECORD, step, (const uint16_t *)(x + step * (WG_GPU_K * 4)), lane, &block, sum);
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
    const size_t bytes = fused_bytes<record_of<TYPE>()>(p->rows, p->k, stripes, STAGES);
    void (*kernel)(wg_product, const wg_fusion, int) = fused_fragments<TYPE, STAGES>;
    WG_LAUNCH(kernel, wg_fused_blocks(g, f, wg_blocks_for((size_t)p->units, (unsigned)stripes), bytes),
              stripes * SLICES * WG_WARP, bytes, g->stream, *p, *f, stripes);
}

template <int TYPE> static void launch_fused_for(wg_gpu *g, const wg_product *p, const wg_fusion *f)
{
    constexpr bool half = TYPE == WG_F8_E4M3;
    if (p->units < 4 * ENOUGH && p->then != WG_GPU_SWIGLU && !f->head) launch_fused<TYPE, half ? 9 : 5>(g, p, f, 1);
    else launch_fused<TYPE, half ? 5 : 3>(g, p, f, 2);
}

extern "C" void WG_GPU(fused_mma)(wg_gpu *g, int type, const wg_product *p, const wg_fusion *f)
{
    if (type == WG_F16) launch_fused_for<WG_F16>(g, p, f);
    else if (type == WG_BF16) launch_fused_for<WG_BF16>(g, p, f);
    else launch_fused_for<WG_F8_E4M3>(g, p, f);
}
