/* SPDX-License-Identifier: MIT
 * Preparing activations for a product; a row's prepared form reads that row only.
 *   for quantised weights: 8 bits per element in blocks of 32, as kernels/ref/quant.c does it, bit for bit; one warp a block
 *   of 32 for tensor cores: every element as hi + lo, hi its nearest 16-bit number, lo that of x - hi (exact in f32): 16 bits
 *   of x are kept for bf16, 21 for f16. f16 has few exponents: a row is first divided by a power of two that brings its
 *   largest element to 2^14..2^15. Infinities and NaN stay what they are.
 *   for a library: every element as its nearest 16-bit number.
 * Rows may be normed on the way (RMSNorm, norm.h): the bits of norming them first. */
#include "kernels/cuda/norm.h"
#include "kernels/cuda/prepare.h"

enum { THREADS = 128, WARPS = THREADS / WG_WARP, MOST_THREADS = 512 };

struct act_job {
    const float *x, *weight; /* (rows, k); (k) of the norm, or NULL */
    float eps;
    int k, rows, padded; /* padded: k (halves) or blocks of 32 (quantised) of a prepared row */
    void *act;
    float *scales; /* behind the elements */
};

/* A warp quantises block `block` of row `row`: a lane its element `given`. Blocks past the last are zeros and have no codes. */
WG_DEVICE void quantise_block(const act_job &j, size_t row, int block, float given)
{
    const int lane = (int)threadIdx.x % WG_WARP;
    const float v = wg_act_clamped(given), da = wg_act_step(wg_warp_max(fabsf(v)));
    const int i = wg_act_code(v, wg_act_per(da));
    int sum = i, half = lane < WG_QUANT_BLOCK / 2 ? i : 0;
    for (int with = 16; with; with >>= 1) {
        sum += __shfl_xor_sync(0xffffffffu, sum, with);
        half += __shfl_xor_sync(0xffffffffu, half, with);
    }
    if (block * WG_QUANT_BLOCK < j.k) ((int8_t *)j.act)[row * j.k + block * WG_QUANT_BLOCK + lane] = (int8_t)i;
    if (lane) return;
    const size_t all = (size_t)j.rows * j.padded;
    float *scales = j.scales + row * j.padded + block;
    scales[0] = da;
    scales[all] = da * (float)sum;
    ((int *)scales)[2 * all] = sum;
    ((int *)scales)[3 * all] = half;
}

WG_KERNEL WG_LAUNCH_BOUNDS(THREADS, 1) quantise_rows(act_job j)
{
    wg_depend();
    const size_t at = (size_t)blockIdx.x * WARPS + threadIdx.x / WG_WARP, row = at / (size_t)j.padded;
    const int block = (int)(at % (size_t)j.padded), i = block * WG_QUANT_BLOCK + (int)threadIdx.x % WG_WARP;
    if (row >= (size_t)j.rows) return; /* the whole warp */
    quantise_block(j, row, block, i < j.k ? j.x[row * j.k + i] : 0.0f);
}

WG_KERNEL WG_LAUNCH_BOUNDS(MOST_THREADS, 1) norm_quantise_row(act_job j)
{
    wg_depend();
    WG_SHARED(float, tile, WG_NORM_TILE);
    const float *from = j.x + (size_t)blockIdx.x * j.k, r = wg_norm_factor(from, j.k, j.eps, tile);
    for (int block = (int)threadIdx.x / WG_WARP; block < j.padded; block += (int)blockDim.x / WG_WARP) {
        const int i = block * WG_QUANT_BLOCK + (int)threadIdx.x % WG_WARP;
        quantise_block(j, blockIdx.x, block, i < j.k ? from[i] * r * j.weight[i] : 0.0f);
    }
}

template <int TYPE, bool NORMED> WG_KERNEL WG_LAUNCH_BOUNDS(MOST_THREADS, 1) halve_row(act_job j)
{
    wg_depend();
    WG_SHARED(float, tile, WG_NORM_TILE);
    WG_SHARED(float, most, MOST_THREADS / WG_WARP);
    const int t = (int)threadIdx.x, threads = (int)blockDim.x, row = (int)blockIdx.x;
    const float *from = j.x + (size_t)row * j.k, r = NORMED ? wg_norm_factor(from, j.k, j.eps, tile) : 1.0f;
    uint16_t *hi = (uint16_t *)j.act + (size_t)row * j.padded, *lo = hi + (size_t)j.rows * j.padded;
    float max = 0;
    for (int i = t; i < j.k; i += threads) {
        const float v = fabsf(NORMED ? from[i] * r * j.weight[i] : from[i]);
        max = v > max ? v : max;
    }
    max = wg_warp_max(max);
    if (t % WG_WARP == 0) most[t / WG_WARP] = max;
    __syncthreads();
    for (int w = 0; w < threads / WG_WARP; w++) max = most[w] > max ? most[w] : max;
    const int e = wg_halves_exponent<TYPE>(max);
    const float down = wg_power_of_two(-e);
    for (int i = t; i < j.padded; i += threads) {
        const float given = i >= j.k ? 0.0f : NORMED ? from[i] * r * j.weight[i] : from[i];
        const wg_halves h = wg_halves_of<TYPE>(given * down);
        hi[i] = h.hi, lo[i] = h.lo;
    }
    if (t == 0) j.scales[row] = wg_power_of_two(e);
}

template <int TYPE, bool NORMED> WG_KERNEL WG_LAUNCH_BOUNDS(MOST_THREADS, 1) round_row(act_job j)
{
    wg_depend();
    WG_SHARED(float, tile, WG_NORM_TILE);
    const size_t row = blockIdx.x;
    const float *from = j.x + row * j.k, r = NORMED ? wg_norm_factor(from, j.k, j.eps, tile) : 1.0f;
    uint16_t *to = (uint16_t *)j.act + row * j.padded;
    for (int i = (int)threadIdx.x; i < j.padded; i += (int)blockDim.x) {
        const float v = i >= j.k ? 0.0f : NORMED ? from[i] * r * j.weight[i] : from[i];
        to[i] = TYPE == WG_F16 ? wg_f16_of(v) : wg_bf16_of(v);
    }
}

static void prepare_rows(wg_gpu *g, int type, int layout, const wg_gpu_input *in, int rows, int k, void *act)
{
    const size_t r = (size_t)rows;
    const int threads = k < 2048 ? THREADS : MOST_THREADS; /* of a row */
    const bool normed = in->weight != NULL;
    act_job j = act_job();
    j.x = in->x, j.weight = in->weight, j.eps = in->eps;
    j.k = k, j.rows = rows, j.act = act;
    if (wg_gpu_in_rows(type, layout)) {
        j.padded = (int)wg_gpu_k_padded(k);
        void (*kernel)(act_job) = type == WG_BF16 ? (normed ? round_row<WG_BF16, true> : round_row<WG_BF16, false>)
                                                  : (normed ? round_row<WG_F16, true> : round_row<WG_F16, false>);
        WG_LAUNCH(kernel, rows, threads, 0, g->stream, j);
    } else if (wg_gpu_has_fragments(type)) {
        j.padded = (int)wg_gpu_k_padded(k);
        j.scales = (float *)((uint16_t *)act + 2 * r * (size_t)j.padded);
        void (*kernel)(act_job) = type == WG_BF16 ? (normed ? halve_row<WG_BF16, true> : halve_row<WG_BF16, false>)
                                                  : (normed ? halve_row<WG_F16, true> : halve_row<WG_F16, false>);
        WG_LAUNCH(kernel, rows, threads, 0, g->stream, j);
    } else {
        j.padded = (int)wg_gpu_act_blocks(k);
        j.scales = (float *)((int8_t *)act + r * (size_t)k);
        if (normed) WG_LAUNCH(norm_quantise_row, rows, threads, 0, g->stream, j);
        else WG_LAUNCH(quantise_rows, wg_blocks_for(r * (size_t)j.padded, WARPS), THREADS, 0, g->stream, j);
    }
}

extern "C" void WG_GPU(prepare)(wg_gpu *g, int type, int layout, const float *x, int rows, int k, void *act)
{
    const wg_gpu_input in = { x, NULL, 0 };
    if (!wg_gpu_in_panels(type, layout)) prepare_rows(g, type, layout, &in, rows, k, act); /* else: rows as they are */
}

extern "C" void WG_GPU(norm_prepare)(wg_gpu *g, int type, int layout, const wg_gpu_input *in, int rows, int k, void *act)
{
    prepare_rows(g, type, layout, in, rows, k, act);
}
