/* SPDX-License-Identifier: MIT
 * Products of quantised weights on integer tensor cores, with the bits of kernels/ref. One mma.m16n8k32 is one block of 32
 * inputs of 16 outputs and 8 rows, in exact whole numbers; what follows is the reference's chain, a step a block:
 *     acc = fma(i * da, scale, acc), then with minima acc = fma(das, min, acc)
 * so an output's bits depend on neither the rows nor the stripes beside it. Sums start at the bits of 1.5 * 2^23, less what the
 * codes' zero makes of the inputs: read as a float, that is 1.5 * 2^23 + i, and i * da is one exact fma away (layout.h).
 *
 * A record is taken whole, without a branch (but for 64 rows, where the loads of all tiles at once spill on 8.0 and 10.0 and
 * cost a multiprocessor its second block): blocks past the last input are zeros, codes and scales of the weights as well as
 * those of the inputs, so i is 0 and acc + 0 is what it was. It never is -0, which would become 0: it begins as 0, all its
 * addends are multiples of 2^-149 (a step is no smaller than 1e-30 or 0, a scale a multiple of 2^-24), and no sum of these
 * rounds to -0. Only mxfp4 has smaller scales: a sum that is -0 because all of it was below 2^-150 may become 0.
 *
 * A warp owns a stripe of 16 outputs and all of K. Records of weights (stripe.h) and steps of inputs come through a ring of
 * STAGES stages by cp.async, so that a block of few warps keeps enough bytes under way; how many warps share a step of inputs
 * is chosen by the launch and shows in no bit. Lines of 144 bytes keep the eight rows of a matrix in different banks.
 *
 * Bytes: the weights once for every 64 rows. */
#include "kernels/cuda/fused.h"
#include "kernels/cuda/read_weight.h"

enum {
    STEP_K = WG_STEP * WG_QUANT_BLOCK,
    LINE = STEP_K + 16,
    MOST_WARPS = 8,
    ENOUGH = 128 /* blocks of a grid, for any card */,
    BOUND = 384 /* leaves a thread 168 registers */
};

/* What is read of a row's scales: da; then what minima or the codes' zero need: das or the sum; the sum of the low half. */
WG_HD static inline int arrays_of(int type) { return wg_block_sums(type) == 2 ? 3 : wg_code_zero(type) == 128 ? 1 : 2; }
WG_HD static inline bool takes_das(int type) { return wg_has_min(type) && wg_block_sums(type) == 1; }

/* Under 99 KB of shared memory with the most warps that the launch takes. */
WG_HD static constexpr int stages_of(int type, int tiles) { return tiles == 8 ? 3 : tiles == 4 ? 6 : type == WG_Q8_0 ? 8 : 10; }

template <int TYPE, int TILES> WG_HD static inline int stage_bytes(int warps)
{
    return warps * wg_step_bytes(TYPE) + TILES * 8 * (LINE + arrays_of(TYPE) * WG_STEP * 4);
}

/* Step `step` of this warp's weights into a stage. */
template <int TYPE> WG_DEVICE void fetch_weights(const wg_product &p, const wg_unit &u, uint8_t *stage, int step)
{
    const int t = (int)threadIdx.x, bytes = wg_step_bytes(TYPE);
    const uint8_t *record = (const uint8_t *)u.data + (size_t)u.index * wg_stripe_bytes(TYPE, p.k) + (size_t)step * bytes;
    for (int i = t % WG_WARP * 16; i < bytes && step < wg_steps(p.k) && u.mine; i += WG_WARP * 16)
        wg_copy_async16(stage + t / WG_WARP * bytes + i, record + i, true);
}

/* And of the inputs, all warps together; rows and inputs past the last are zeros. Closes a group: an empty one counts too. */
template <int TYPE, int TILES> WG_DEVICE void fetch_inputs(const wg_product &p, uint8_t *stage, int first, int step)
{
    const int t = (int)threadIdx.x, threads = (int)blockDim.x;
    if (step < wg_steps(p.k)) {
        uint8_t *q = stage + threads / WG_WARP * wg_step_bytes(TYPE), *scales = q + TILES * 8 * LINE;
        for (int i = t; i < TILES * 8 * (STEP_K / 16); i += threads) {
            const int row = i / (STEP_K / 16), k = step * STEP_K + i % (STEP_K / 16) * 16;
            const bool valid = first + row < p.rows && k < p.k;
            wg_copy_async16(q + row * LINE + i % (STEP_K / 16) * 16,
                            (const int8_t *)p.act + (valid ? (size_t)(first + row) * p.k + k : 0), valid);
        }
        const float *from = (const float *)((const int8_t *)p.act + (size_t)p.rows * p.k);
        for (int i = t; i < arrays_of(TYPE) * TILES * 8; i += threads) {
            const int row = i % (TILES * 8), which = i / (TILES * 8);
            const int array = which == 0 ? 0 : which == 2 ? 3 : takes_das(TYPE) ? 1 : 2; /* da; low; das or sum */
            const bool valid = first + row < p.rows;
            const size_t at = ((size_t)array * p.rows + (valid ? first + row : 0)) * (wg_steps(p.k) * WG_STEP) + step * WG_STEP;
            wg_copy_async16(scales + i * 16, from + at, valid);
        }
    }
    wg_copy_commit(); /* an empty group counts too */
}

/* The weights of a record that one lane multiplies with, for both of its outputs. */
template <int TYPE> struct weights {
    uint32_t a[WG_STEP][4];
    float scale[WG_STEP][2][2], min[WG_STEP][2][2]; /* (block, output, part) */
};

template <int TYPE> WG_DEVICE void take_weights(const uint8_t *record, int lane, weights<TYPE> *w)
{
    WG_UNROLL_FOR(int b = 0; b < WG_STEP; b++) {
        wg_step_words<TYPE>(record, lane, b, w->a[b]);
        WG_UNROLL_FOR(int h = 0; h < 2; h++) wg_step_scales<TYPE>(record, lane / 4, h, b, w->scale[b][h], w->min[b][h]);
    }
}

/* The sum of a column's inputs of a part. */
template <int TYPE> WG_DEVICE int part_sum(const float (*scales)[2], int part, int column)
{
    const int sum = (int)__float_as_uint(scales[1][column]);
    if (wg_block_sums(TYPE) == 1) return sum;
    const int low = (int)__float_as_uint(scales[2][column]);
    return part ? sum - low : low;
}

/* One block of one tile: x two words of inputs, scales of the columns 2 t and 2 t + 1. */
template <int TYPE>
WG_DEVICE void add_block(const weights<TYPE> &w, int b, const uint32_t *x, const float (*scales)[2], float *acc)
{
    const int parts = wg_block_sums(TYPE), zero = wg_step_zero<TYPE>();
    WG_UNROLL_FOR(int part = 0; part < parts; part++) {
        int start[4], i[4];
        WG_UNROLL_FOR(int e = 0; e < 4; e++) start[e] = WG_MAGIC_BITS - (zero ? zero * part_sum<TYPE>(scales, part, e % 2) : 0);
        if (parts == 1) wg_mma_s8(i, w.a[b], x, start);
        else wg_mma_s8_half(i, w.a[b] + 2 * part, x + part, start);
        WG_UNROLL_FOR(int e = 0; e < 4; e++) {
            const float da = scales[0][e % 2], exact = fmaf(__uint_as_float((unsigned)i[e]), da, -WG_MAGIC * da);
            acc[e] = fmaf(exact, w.scale[b][e / 2][part], acc[e]);
        }
    }
    if (wg_has_min(TYPE))
        WG_UNROLL_FOR(int i = 0; i < parts * 4; i++) {
            const int part = i / 4, e = i % 4;
            const float das =
                takes_das(TYPE) ? scales[1][e % 2] : scales[0][e % 2] * (float)part_sum<TYPE>(scales, part, e % 2);
            acc[e] = fmaf(das, w.min[b][e / 2][part], acc[e]);
        }
}

/* The first `blocks` of a record's blocks, of one tile. x: the lane's row and its half of a block (lanes from 16 on: of the
 * next), blocks APART bytes apart; scales: (array, column, block). */
template <int TYPE, int APART>
WG_DEVICE void add_tile(const weights<TYPE> &w, const uint8_t *x, const float (*scales)[2][WG_STEP], int blocks, float *acc)
{
    WG_UNROLL_FOR(int b = 0; b < WG_STEP; b += 2) {
        uint32_t two[4]; /* inputs 0..15 and 16..31 of block b, then of the next */
        wg_ldmatrix_x4(two, x + b * APART);
        WG_UNROLL_FOR(int i = 0; i < 2; i++) {
            if (b + i >= blocks) break; /* all lanes agree */
            float of_block[3][2];
            WG_UNROLL_FOR(int c = 0; c < arrays_of(TYPE) * 2; c++) of_block[c / 2][c % 2] = scales[c / 2][c % 2][b + i];
            add_block<TYPE>(w, b + i, two + 2 * i, of_block, acc);
        }
    }
}

template <int TYPE, int TILES>
WG_DEVICE void add_step(const uint8_t *record, const uint8_t *inputs, int blocks, int lane, float acc[TILES][4])
{
    weights<TYPE> w;
    take_weights<TYPE>(record, lane, &w);
    WG_UNROLL_FOR(int tile = 0; tile < TILES; tile++) {
        float scales[3][2][WG_STEP];
        WG_UNROLL_FOR(int c = 0; c < arrays_of(TYPE) * 2; c++) {
            const uint8_t *array = inputs + TILES * 8 * (LINE + c / 2 * 16);
            const float4 four = *(const float4 *)(array + (tile * 8 + lane % 4 * 2 + c % 2) * 16);
            float *to = scales[c / 2][c % 2];
            to[0] = four.x, to[1] = four.y, to[2] = four.z, to[3] = four.w;
        }
        add_tile<TYPE, WG_QUANT_BLOCK>(w, inputs + (tile * 8 + lane % 8) * LINE + lane / 8 * 16, scales,
                                       TILES == 8 ? blocks : (int)WG_STEP, acc[tile]);
    }
}

/* EARLY: weights are known before wg_depend(). */
template <int TYPE, int TILES, bool EARLY> WG_DEVICE void sum_stripes(const wg_product &p, uint8_t *ring)
{
    const int lane = (int)threadIdx.x % WG_WARP, warp = (int)threadIdx.x / WG_WARP, warps = (int)blockDim.x / WG_WARP;
    const int stages = stages_of(TYPE, TILES), size = stage_bytes<TYPE, TILES>(warps), steps = wg_steps(p.k);
    const int first = (int)blockIdx.y * TILES * 8;
    const wg_unit u = wg_unit_of(p, (int)blockIdx.x * warps + warp);
    float acc[TILES][4];
    WG_UNROLL_FOR(int i = 0; i < TILES; i++) acc[i][0] = acc[i][1] = acc[i][2] = acc[i][3] = 0;
    for (int s = 0; s < stages - 1; s++) fetch_weights<TYPE>(p, u, ring + s * size, s);
    if (EARLY) wg_depend();
    for (int s = 0; s < stages - 1; s++) fetch_inputs<TYPE, TILES>(p, ring + s * size, first, s);
    for (int s = 0, at = 0; s < steps; s++) {
        wg_copy_wait(stages_of(TYPE, TILES) - 2);
        __syncthreads(); /* stage `at` is there; the one before it has been used */
        uint8_t *const used = ring + (at ? at - 1 : stages - 1) * size;
        fetch_weights<TYPE>(p, u, used, s + stages - 1);
        fetch_inputs<TYPE, TILES>(p, used, first, s + stages - 1);
        const uint8_t *stage = ring + at * size;
        if (u.mine)
            add_step<TYPE, TILES>(stage + warp * wg_step_bytes(TYPE), stage + warps * wg_step_bytes(TYPE),
                                  p.k / WG_QUANT_BLOCK - s * WG_STEP, lane, acc);
        at = at + 1 < stages ? at + 1 : 0;
    }
    __syncthreads();
    if (!wg_take_pairs<TILES * 4>(p, acc[0], (float *)ring) || !u.mine) return;
    WG_UNROLL_FOR(int i = 0; i < TILES * 4; i++)
        wg_store_sum(p, u, first + i / 4 * 8 + lane % 4 * 2 + i % 2, u.index * WG_STRIPE + lane / 4 + i / 2 % 2 * 8,
                     acc[i / 4][i % 4]);
}

template <int TYPE, int TILES> WG_KERNEL WG_LAUNCH_BOUNDS(BOUND, 1) matmul_stripes(wg_product p)
{
    WG_SHARED_DYNAMIC(uint8_t, ring);
    sum_stripes<TYPE, TILES, true>(p, ring);
}

template <int TYPE> WG_KERNEL WG_LAUNCH_BOUNDS(BOUND, 1) expert_stripes(wg_product p, wg_expert_runs of)
{
    WG_SHARED_DYNAMIC(uint8_t, ring);
    wg_depend();
    if (wg_take_expert(of, &p)) sum_stripes<TYPE, WG_GPU_RUN / 8, false>(p, ring);
}

template <int TYPE> static void launch_experts(wg_gpu *g, const wg_product *p, const wg_expert_runs *of)
{
    enum { EACH = 2 };
    const size_t bytes = (size_t)stages_of(TYPE, 1) * (size_t)stage_bytes<TYPE, 1>(EACH);
    const dim3 grid(wg_blocks_for((size_t)p->units, EACH), (unsigned)(p->rows / WG_GPU_RUN));
    void (*kernel)(wg_product, wg_expert_runs) = expert_stripes<TYPE>;
    WG_LAUNCH(kernel, grid, EACH * WG_WARP, bytes, g->stream, *p, *of);
}

extern "C" void WG_GPU(experts_blocks)(wg_gpu *g, int type, const wg_product *p, const wg_expert_runs *of)
{
    switch (wg_stripe_type(type)) {
#define X(type)                                                                                                                \
    case type: launch_experts<type>(g, p, of); break;
        WG_GPU_QUANTISED(X)
#undef X
    default: break;
    }
}

template <int TYPE, int TILES> static void launch(wg_gpu *g, const wg_product *p)
{
    const int most = TILES == 8 ? MOST_WARPS : 4;
    int warps = 2;
    while (warps < most && p->units >= 2 * warps * ENOUGH) warps *= 2;
    const size_t bytes = (size_t)stages_of(TYPE, TILES) * (size_t)stage_bytes<TYPE, TILES>(warps);
    const dim3 grid(wg_blocks_for((size_t)p->units, (unsigned)warps), wg_blocks_for((size_t)p->rows, TILES * 8));
    void (*kernel)(wg_product) = matmul_stripes<TYPE, TILES>;
    WG_LAUNCH(kernel, grid, warps * WG_WARP, bytes, g->stream, *p);
}

template <int TYPE> static void launch_for(wg_gpu *g, const wg_product *p)
{
    const int tiles = (p->rows + 7) / 8;
    if (tiles == 1) launch<TYPE, 1>(g, p);
    else if (tiles == 2) launch<TYPE, 2>(g, p);
    else if (tiles <= 4) launch<TYPE, TYPE == WG_Q2_K ? 2 : 4>(g, p); /* with four its halves and minima spill */
    else launch<TYPE, 8>(g, p);
}

extern "C" void WG_GPU(matmul_blocks)(wg_gpu *g, int type, const wg_product *p)
{
    switch (wg_stripe_type(type)) {
#define X(type)                                                                                                                \
    case type: launch_for<type>(g, p); break;
        WG_GPU_QUANTISED(X)
#undef X
    default: break;
    }
}

/* ---- rows as they are (fused.h). A warp has a ring of its own: only weights go through it. */

enum { FUSED_WARPS = 4 };

/* So that the rings are within WG_GPU_FUSED_RING. */
WG_HD static constexpr int fused_stages(int type) { return type == WG_Q8_0 ? 5 : type == WG_Q6_K ? 7 : 8; }

/* A record with a step of a lane's own row: x as add_tile has it, scales behind the codes of the columns 2 t and 2 t + 1. */
template <int TYPE>
WG_DEVICE void add_line(const uint8_t *record, const uint8_t *x, const uint8_t *const *column, int lane, float *acc)
{
    weights<TYPE> w;
    float scales[3][2][WG_STEP];
    take_weights<TYPE>(record, lane, &w);
    WG_UNROLL_FOR(int i = 0; i < 2 * WG_STEP; i++) {
        const float4 four = *(const float4 *)(column[i / WG_STEP] + i % WG_STEP * WG_LINE_BLOCK);
        scales[0][i / WG_STEP][i % WG_STEP] = four.x;
        scales[1][i / WG_STEP][i % WG_STEP] = takes_das(TYPE) ? four.y : four.z;
        scales[2][i / WG_STEP][i % WG_STEP] = four.w;
    }
    add_tile<TYPE, WG_LINE_BLOCK>(w, x, scales, WG_STEP, acc);
}

template <int TYPE> WG_KERNEL WG_LAUNCH_BOUNDS(BOUND, 1) fused_stripes(wg_product p, WG_GRID_CONSTANT const wg_fusion f)
{
    WG_SHARED_DYNAMIC(uint8_t, lines);
    const int stages = fused_stages(TYPE), bytes = wg_step_bytes(TYPE);
    const int lane = (int)threadIdx.x % WG_WARP, warp = (int)threadIdx.x / WG_WARP, warps = (int)blockDim.x / WG_WARP;
    const int end = p.rows * wg_gpu_line_bytes(p.k), steps = wg_steps(p.k), beside = (int)gridDim.x * warps;
    const size_t stripe = wg_stripe_bytes(TYPE, p.k);
    uint8_t *const ring = lines + end + warp * stages * bytes;
    float *const room = (float *)(lines + end + warps * stages * bytes);
    int unit = (int)blockIdx.x * warps + warp, at = 0;
    wg_lane_best best = { { { 0, -1 }, { 0, -1 } } };
    wg_feed feed;
    wg_feed_unit(p, f, &feed, unit, stripe, 0, steps);
    for (int s = 0; s < stages - 1; s++) {
        if (feed.left == 0) wg_feed_unit(p, f, &feed, feed.unit + beside, stripe, 0, steps);
        wg_feed_copy(&feed, ring + s * bytes, bytes);
    }
    wg_depend();
    wg_lines_prepare<TYPE>(f.in, p.rows, p.k, lines);
    /* Rows past the last are anyone's: their sums go nowhere. */
    const uint8_t *x = wg_line(lines, lane % 8 < p.rows ? lane % 8 : 0, p.k) + lane / 16 * WG_LINE_BLOCK + lane / 8 % 2 * 16;
    const uint8_t *column[2];
    WG_UNROLL_FOR(int c = 0; c < 2; c++)
        column[c] = wg_line(lines, lane % 4 * 2 + c < p.rows ? lane % 4 * 2 + c : 0, p.k) + WG_QUANT_BLOCK;
    for (int turn = (int)blockIdx.x * warps; turn < p.units; turn += beside, unit += beside) {
        const wg_unit u = wg_fused_unit(p, f, unit);
        float acc[WG_SUMS] = {};
        for (int s = 0; s < steps; s++) {
            const int before = s * WG_STEP * WG_LINE_BLOCK;
            const uint8_t *const here[2] = { column[0] + before, column[1] + before };
            wg_copy_wait(fused_stages(TYPE) - 2);
            __syncwarp(); /* stage `at` is there; the one before it has been used */
            if (feed.left == 0) wg_feed_unit(p, f, &feed, feed.unit + beside, stripe, 0, steps);
            wg_feed_copy(&feed, ring + (at ? at - 1 : stages - 1) * bytes, bytes);
            if (u.mine) add_line<TYPE>(ring + at * bytes, x + before, here, lane, acc);
            at = at + 1 < stages ? at + 1 : 0;
        }
        __syncthreads(); /* the room has been used */
        wg_store_stripe(p, f, u, true, acc, room);
        if (f.best) wg_best_note(p, u, acc, &best);
    }
    if (f.best) wg_best_tell(f, p.rows, &best, (wg_gpu_best *)room);
}

template <int TYPE> static void launch_fused(wg_gpu *g, const wg_product *p, const wg_fusion *f)
{
    const int warps = p->units >= FUSED_WARPS * ENOUGH ? FUSED_WARPS : FUSED_WARPS / 2;
    const size_t each = (size_t)fused_stages(TYPE) * (size_t)wg_step_bytes(TYPE) + WG_SUMS * WG_WARP * 4;
    const size_t bytes = (size_t)p->rows * (size_t)wg_gpu_line_bytes(p->k) + (size_t)warps * each;
    void (*kernel)(wg_product, const wg_fusion) = fused_stripes<TYPE>;
    WG_LAUNCH(kernel, wg_fused_blocks(g, f, wg_blocks_for((size_t)p->units, (unsigned)warps), bytes), warps * WG_WARP, bytes,
              g->stream, *p, *f);
}

extern "C" void WG_GPU(fused_blocks)(wg_gpu *g, int type, const wg_product *p, const wg_fusion *f)
{
    switch (wg_stripe_type(type)) {
#define X(type)                                                                                                                \
    case type: launch_fused<type>(g, p, f); break;
        WG_GPU_QUANTISED(X)
#undef X
    default: break;
    }
}
