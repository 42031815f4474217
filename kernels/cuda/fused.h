/* SPDX-License-Identifier: MIT
 * Products of few rows in one kernel, from the rows as they are to where the sums go (wg_gpu_fits says how few). A block puts
 * the first records of its weights on their way, norms and prepares all rows into its shared memory, then goes through its
 * units one after the other without the ring of weights running dry between them. Every block prepares the same rows: that
 * reads them from the L2 as often as there are blocks (so there are no more of these than run at once), and saves a launch and
 * a wait for its end. The bits are those of norm_prepare (quant.cu), the product and rope_store (rope.cu).
 *
 * A row is a line of wg_gpu_line_bytes: first its f32 numbers as they are; then, in their place,
 *   f16, bf16, f8_e4m3  for each WG_GPU_K inputs 128 bytes of hi, 128 bytes of lo
 *   quantised    for each 32 inputs WG_LINE_BLOCK bytes: 32 codes; f32 da, das, s32 sum, low (layout.h); padding
 * and behind them WG_LINE_END words: what its results are multiplied with, its norm's factor, its largest number. Lines are an
 * odd number of 16 bytes apart, so that the eight rows of an ldmatrix lie in different banks. Private to kernels/cuda. */
#ifndef WG_KERNELS_CUDA_FUSED_H
#define WG_KERNELS_CUDA_FUSED_H

#include "kernels/cuda/norm.h"
#include "kernels/cuda/page.h"
#include "kernels/cuda/prepare.h"
#include "kernels/cuda/product.h"

enum { WG_LINE_BLOCK = 128, WG_LINE_END = 4, WG_SUMS = 4 /* of a lane: of a 16 x 8 tile */ };
enum wg_line_word { WG_LINE_SCALE, WG_LINE_FACTOR, WG_LINE_LARGEST };

struct wg_fusion {
    wg_gpu_input in;
    wg_gpu_rotary rotary; /* of WG_GPU_ROTARY */
    int head, apart;      /* stripes of a head, and between the halves of one; head 0: pairs lie within a stripe */
    wg_gpu_best *best;    /* or NULL */
};

/* Blocks for so many turns of `bytes` of shared memory: as many as run at once, each with as many turns. */
static inline unsigned wg_fused_blocks(const wg_gpu *g, const wg_fusion *f, unsigned turns, size_t bytes)
{
    unsigned at_once = (unsigned)g->sms * (unsigned)((g->shared + 1024) / (bytes + 1024)); /* 1024: the system's */
    if (f->best && at_once > WG_GPU_BESTS) at_once = WG_GPU_BESTS;
    return wg_blocks_for(turns, wg_blocks_for(turns, at_once));
}

/* ---- lines */

WG_DEVICE uint8_t *wg_line(uint8_t *lines, int row, int k) { return lines + row * wg_gpu_line_bytes(k); }
WG_DEVICE float *wg_line_end(uint8_t *lines, int row, int k) { return (float *)wg_line(lines, row + 1, k) - WG_LINE_END; }

/* All rows as they are; zeros behind. */
WG_DEVICE void wg_lines_take(const float *x, int rows, int k, uint8_t *lines)
{
    const int pieces = wg_gpu_line_bytes(k) / 16;
    for (int row = 0; row < rows; row++) {
        const float4 *from = (const float4 *)(x + (size_t)row * k), zeros = { 0, 0, 0, 0 };
        float4 *to = (float4 *)wg_line(lines, row, k);
        WG_UNROLL_BY(8)
        for (int i = (int)threadIdx.x; i < pieces; i += (int)blockDim.x) to[i] = i < k / 4 ? from[i] : zeros;
    }
    __syncthreads();
}

/* RMSNorm in place: norm.h's sums, half a warp a row. */
WG_DEVICE void wg_lines_norm(const wg_gpu_input &in, int rows, int k, uint8_t *lines)
{
    const int t = (int)threadIdx.x, threads = (int)blockDim.x;
    for (int first = 0; first < rows; first += threads / 16) {
        const int row = first + t / 16, n = row < rows ? k : 0;
        const float *x = (const float *)wg_line(lines, row, k);
        float sum = 0;
        WG_UNROLL_BY(8)
        for (int i = t % 16; i < n; i += 16) sum = fmaf(x[i], x[i], sum);
        sum = wg_warp_fold16(sum);
        if (n > 0 && t % 16 == 0) wg_line_end(lines, row, k)[WG_LINE_FACTOR] = wg_norm_of(sum, k, in.eps);
    }
    __syncthreads();
    for (int row = 0; row < rows; row++) {
        const float4 *weight = (const float4 *)in.weight;
        float4 *x = (float4 *)wg_line(lines, row, k);
        const float r = wg_line_end(lines, row, k)[WG_LINE_FACTOR];
        WG_UNROLL_BY(4)
        for (int i = t; i < k / 4; i += threads) {
            const float4 v = x[i], w = weight[i];
            x[i] = float4{ v.x * r * w.x, v.y * r * w.y, v.z * r * w.z, v.w * r * w.w };
        }
    }
    __syncthreads();
}

/* The largest number of each row; as whole numbers these have no order. */
WG_DEVICE void wg_lines_largest(int rows, int k, uint8_t *lines)
{
    for (int row = 0; row < rows; row++) {
        const float *x = (const float *)wg_line(lines, row, k);
        float max = 0;
        WG_UNROLL_BY(4)
        for (int i = (int)threadIdx.x; i < k; i += (int)blockDim.x) max = fabsf(x[i]) > max ? fabsf(x[i]) : max;
        max = wg_warp_max(max);
        if (threadIdx.x % WG_WARP == 0)
            atomicMax((int *)wg_line_end(lines, row, k) + WG_LINE_LARGEST, (int)__float_as_uint(max));
    }
    __syncthreads();
}

/* For fragments: a warp takes WG_GPU_K inputs, a lane two. */
template <int TYPE> WG_DEVICE void wg_lines_halve(int rows, int k, uint8_t *lines)
{
    const int t = (int)threadIdx.x, lane = t % WG_WARP;
    if (TYPE == WG_F16) wg_lines_largest(rows, k, lines);
    for (int row = 0; row < rows; row++) {
        float *end = wg_line_end(lines, row, k);
        const int e = wg_halves_exponent<TYPE>(__uint_as_float(((const unsigned *)end)[WG_LINE_LARGEST]));
        const float down = wg_power_of_two(-e);
        for (int i = t * 2; i < (int)wg_gpu_k_padded(k); i += (int)blockDim.x * 2) {
            uint8_t *place = wg_line(lines, row, k) + i / WG_GPU_K * (WG_GPU_K * 4);
            const float2 v = ((const float2 *)place)[lane];
            const wg_halves a = wg_halves_of<TYPE>(v.x * down), b = wg_halves_of<TYPE>(v.y * down);
            __syncwarp(); /* all lanes have read */
            ((uint32_t *)place)[lane] = a.hi | (uint32_t)b.hi << 16;
            ((uint32_t *)place)[lane + WG_WARP] = a.lo | (uint32_t)b.lo << 16;
        }
        if (t == 0) end[WG_LINE_SCALE] = wg_power_of_two(e);
    }
    __syncthreads();
}

/* Quantised: a thread takes a block, in fours that begin at another one in each of eight neighbours: different banks. */
WG_DEVICE void wg_quantise_place(uint8_t *place)
{
    const int turn = (int)threadIdx.x % 8;
    float v[WG_QUANT_BLOCK], max = 0;
    WG_UNROLL_FOR(int j = 0; j < 8; j++) {
        const float4 x = ((const float4 *)place)[(j + turn) % 8];
        v[4 * j] = x.x, v[4 * j + 1] = x.y, v[4 * j + 2] = x.z, v[4 * j + 3] = x.w;
    }
    WG_UNROLL_FOR(int i = 0; i < WG_QUANT_BLOCK; i++) {
        v[i] = wg_act_clamped(v[i]);
        max = fabsf(v[i]) > max ? fabsf(v[i]) : max;
    }
    const float da = wg_act_step(max), per = wg_act_per(da);
    int sum = 0, low = 0;
    WG_UNROLL_FOR(int j = 0; j < 8; j++) {
        const int four = (j + turn) % 8;
        uint32_t word = 0;
        int of_word = 0;
        WG_UNROLL_FOR(int i = 0; i < 4; i++) {
            const int code = wg_act_code(v[4 * j + i], per);
            word |= ((uint32_t)code & 255u) << 8 * i;
            of_word += code;
        }
        ((uint32_t *)place)[four] = word;
        sum += of_word;
        low += four < 4 ? of_word : 0;
    }
    const uint4 scales = { __float_as_uint(da), __float_as_uint(da * (float)sum), (unsigned)sum, (unsigned)low };
    ((uint4 *)place)[2] = scales;
}

WG_DEVICE void wg_lines_quantise(int rows, int k, uint8_t *lines)
{
    const int blocks = k / WG_QUANT_BLOCK;
    for (int i = (int)threadIdx.x; i < rows * blocks; i += (int)blockDim.x)
        wg_quantise_place(wg_line(lines, i / blocks, k) + i % blocks * WG_LINE_BLOCK);
    __syncthreads();
}

template <int TYPE> WG_DEVICE void wg_lines_prepare(const wg_gpu_input &in, int rows, int k, uint8_t *lines)
{
    wg_lines_take(in.x, rows, k, lines);
    if (in.weight) wg_lines_norm(in, rows, k, lines);
    if (TYPE == WG_F16 || TYPE == WG_BF16) wg_lines_halve<TYPE>(rows, k, lines);
    else if (TYPE == WG_F8_E4M3) wg_lines_halve<WG_F16>(rows, k, lines);
    else wg_lines_quantise(rows, k, lines);
}

/* ---- units, of which the two of a pair are neighbours */

/* Of a head: its stripes, and one that is none where they are odd. */
WG_HD static inline int wg_fused_each(const wg_fusion &f) { return (f.head + 1) / 2 * 2; }

WG_DEVICE wg_unit wg_fused_unit(const wg_product &p, const wg_fusion &f, int unit)
{
    wg_unit u = wg_unit_of(p, unit);
    if (p.then != WG_GPU_ROTARY || f.head == 0) return u;
    const int each = wg_fused_each(f), i = u.index % each, stripe = i < 2 * f.apart ? i / 2 + i % 2 * f.apart : i;
    u.mine = u.mine && stripe < f.head;
    u.index = u.mine ? u.index / each * f.head + stripe : 0;
    return u;
}

/* The records of a warp's units on their way into its ring: `steps` of a unit, of `bytes` each, its first at `from`. */
struct wg_feed {
    const uint8_t *record;
    int unit, left;
};

WG_DEVICE void wg_feed_unit(const wg_product &p, const wg_fusion &f, wg_feed *feed, int unit, size_t stripe, size_t from,
                            int steps)
{
    const wg_unit u = wg_fused_unit(p, f, unit);
    feed->record = u.mine ? (const uint8_t *)u.data + (size_t)u.index * stripe + from : NULL;
    feed->unit = unit;
    feed->left = steps;
}

WG_DEVICE void wg_feed_copy(wg_feed *feed, uint8_t *stage, int bytes)
{
    if (feed->record && feed->left > 0) {
        for (int i = (int)threadIdx.x % WG_WARP * 16; i < bytes; i += WG_WARP * 16)
            wg_copy_async16(stage + i, feed->record + i, true);
        feed->record += bytes;
    }
    feed->left--;
    wg_copy_commit(); /* an empty group counts too */
}

/* ---- the sums: stored, added, gated or rotated */

WG_DEVICE void wg_page_put(int type, char *slot, int i, float x)
{
    if (type == WG_F32) wg_page_set<WG_F32>(slot, i, x);
    else if (type == WG_F16) wg_page_set<WG_F16>(slot, i, x);
    else wg_page_set<WG_BF16>(slot, i, x);
}

/* Output n of a row of queries, keys or values; other: of the same pair. */
WG_DEVICE void wg_store_rotary(const wg_product &p, const wg_gpu_rotary &r, const wg_unit &u, int row, int n, float sum,
                               float other)
{
    const int outputs = wg_unit_n(p, u);
    if (row >= p.rows || n >= outputs) return;
    const wg_gpu_row *d = &r.row[row];
    const int what = r.first + u.matrix, i = n % r.hd, half = r.n_rot / 2;
    if (d->slot >= 0 && what < 2 && i < r.n_rot) {
        const bool second = r.adjacent ? i % 2 : i >= half;
        const float *cs = r.cs + (size_t)d->position * r.n_rot + (r.adjacent ? i / 2 : second ? i - half : i) * 2;
        sum = second ? fmaf(other, cs[1], sum * cs[0]) : fmaf(sum, cs[0], -(other * cs[1]));
    }
    if (what == 0) wg_unit_y(p, u)[(size_t)row * outputs + n] = sum;
    else if (d->slot >= 0)
        wg_page_put(r.kv.type, wg_page_slot(&r.kv, d->table, d->slot) + (what == 1 ? 0 : r.kv.value_at), n, sum);
}

/* The sums of a warp's stripe. All threads of the block call, `holds` those whose sums count; room: WG_SUMS * 32 floats a warp,
 * shared, done with at the last barrier. */
WG_DEVICE void wg_store_stripe(const wg_product &p, const wg_fusion &f, const wg_unit &u, bool holds, float *sum, float *room)
{
    const int lane = (int)threadIdx.x % WG_WARP, warp = (int)threadIdx.x / WG_WARP;
    float other[WG_SUMS];
    if (p.then == WG_GPU_ROTARY && f.head) { /* the neighbour's */
        WG_UNROLL_FOR(int e = 0; e < WG_SUMS; e++) room[(warp * WG_SUMS + e) * WG_WARP + lane] = sum[e];
        __syncthreads();
        WG_UNROLL_FOR(int e = 0; e < WG_SUMS; e++) other[e] = room[((warp ^ 1) * WG_SUMS + e) * WG_WARP + lane];
    } else if (p.then == WG_GPU_ROTARY) { /* outputs n and n ^ 1, or n and n + 8 */
        WG_UNROLL_FOR(int e = 0; e < WG_SUMS; e++) {
            const float beside = __shfl_xor_sync(0xffffffffu, sum[e], 4);
            other[e] = f.rotary.adjacent ? beside : sum[e ^ 2];
        }
    } else holds = wg_take_pairs<WG_SUMS>(p, sum, room) && holds;
    if (!holds || !u.mine) return;
    WG_UNROLL_FOR(int e = 0; e < WG_SUMS; e++) {
        const int row = lane % 4 * 2 + e % 2, n = u.index * WG_STRIPE + lane / 4 + e / 2 * 8;
        if (p.then == WG_GPU_ROTARY) wg_store_rotary(p, f.rotary, u, row, n, sum[e], other[e]);
        else wg_store_sum(p, u, row, n, sum[e]);
    }
}

/* ---- the largest outputs, a piece a block */

WG_DEVICE bool wg_is_best(const wg_gpu_best &a, const wg_gpu_best &b)
{
    if (a.at < 0 || b.at < 0) return a.at >= 0;
    return a.value > b.value || (a.value == b.value && a.at < b.at);
}

/* Of the lane's two rows so far. */
struct wg_lane_best {
    wg_gpu_best row[2];
};

WG_DEVICE void wg_best_note(const wg_product &p, const wg_unit &u, const float *sum, wg_lane_best *best)
{
    const int lane = (int)threadIdx.x % WG_WARP;
    WG_UNROLL_FOR(int e = 0; e < WG_SUMS && u.mine; e++) {
        const wg_gpu_best here = { sum[e], u.index * WG_STRIPE + lane / 4 + e / 2 * 8 };
        if (here.at < wg_unit_n(p, u) && sum[e] == sum[e] && wg_is_best(here, best->row[e % 2])) best->row[e % 2] = here;
    }
}

/* All threads of the block call; room: as of wg_store_stripe. */
WG_DEVICE void wg_best_tell(const wg_fusion &f, int rows, wg_lane_best *best, wg_gpu_best *room)
{
    const int t = (int)threadIdx.x, lane = t % WG_WARP, warps = (int)blockDim.x / WG_WARP;
    WG_UNROLL_FOR(int c = 0; c < 2; c++)
        for (int with = 4; with < WG_WARP; with *= 2) {
            const wg_gpu_best other = { __shfl_xor_sync(0xffffffffu, best->row[c].value, with),
                                        __shfl_xor_sync(0xffffffffu, best->row[c].at, with) };
            if (wg_is_best(other, best->row[c])) best->row[c] = other;
        }
    __syncthreads(); /* the room has been used */
    if (lane < 4)
        WG_UNROLL_FOR(int c = 0; c < 2; c++) room[t / WG_WARP * WG_GPU_FUSED_ROWS + lane * 2 + c] = best->row[c];
    __syncthreads();
    if (t >= rows) return;
    wg_gpu_best all = room[t], *const to = f.best + (size_t)t * WG_GPU_BESTS;
    for (int w = 1; w < warps; w++)
        if (wg_is_best(room[w * WG_GPU_FUSED_ROWS + t], all)) all = room[w * WG_GPU_FUSED_ROWS + t];
    for (int i = (int)blockIdx.x; i < WG_GPU_BESTS; i += (int)gridDim.x) {
        to[i] = all;
        all.at = -1; /* pieces that no block has */
    }
}

#endif
