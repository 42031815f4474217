/* SPDX-License-Identifier: MIT
 * Preparing activations for a product; a row's prepared form reads that row only.
 *   for quantised weights: 8 bits per element in blocks of 32, as kernels/ref/quant.c does it, bit for bit; one warp a block
 *   of 32 for tensor cores: every element as hi + lo, hi its nearest 16-bit number, lo that of x - hi (exact in f32): 16 bits
 *   of x are kept for bf16, 21 for f16. f16 has few exponents: a row is first divided by a power of two that brings its
 *   largest element to 2^14..2^15. Infinities and NaN stay what they are. */
#include "kernels/cuda/launch.h"
#include "kernels/layout.h"

enum { THREADS = 128 };

struct act_block { float da, das; int sum, low; };

WG_KERNEL WG_LAUNCH_BOUNDS(THREADS, 1) quantise_rows(const float *x, int8_t *q, act_block *blocks, size_t n_blocks)
{
    const size_t b = (size_t)blockIdx.x * (THREADS / WG_WARP) + threadIdx.x / WG_WARP;
    const int lane = (int)threadIdx.x % WG_WARP;
    const bool inside = b < n_blocks; /* all lanes of a warp agree */
    const float given = inside ? x[b * WG_BLOCK + lane] : 0.0f, low = given > -WG_ACT_CLAMP ? given : -WG_ACT_CLAMP;
    const float v = low < WG_ACT_CLAMP ? low : WG_ACT_CLAMP;
    const float max = wg_warp_max(fabsf(v));
    const float up = __uint_as_float((__float_as_uint(max / 127.0f) + 0xffu) & ~0xffu), da = up < 1e-30f ? 0.0f : up;
    const int i = (int)rintf(v * (da > 0 ? 1.0f / da : 0.0f));
    int sum = i, half = lane < WG_BLOCK / 2 ? i : 0;
    for (int with = 16; with; with >>= 1) {
        sum += __shfl_xor_sync(0xffffffffu, sum, with);
        half += __shfl_xor_sync(0xffffffffu, half, with);
    }
    if (!inside) return;
    q[b * WG_BLOCK + lane] = (int8_t)i;
    if (lane == 0) blocks[b] = act_block{ da, da * (float)sum, sum, half };
}

template <int TYPE>
WG_KERNEL WG_LAUNCH_BOUNDS(THREADS, 1) halve_rows(const float *x, int k, int padded, int rows, uint16_t *act, float *scale)
{
    WG_SHARED(float, most, THREADS / WG_WARP);
    const int t = (int)threadIdx.x, r = (int)blockIdx.x;
    const float *from = x + (size_t)r * k;
    uint16_t *hi = act + (size_t)r * padded, *lo = hi + (size_t)rows * padded;
    float max = 0;
    for (int i = t; i < k; i += THREADS) max = fabsf(from[i]) > max ? fabsf(from[i]) : max;
    max = wg_warp_max(max);
    if (t % WG_WARP == 0) most[t / WG_WARP] = max;
    __syncthreads();
    for (int w = 0; w < THREADS / WG_WARP; w++) max = most[w] > max ? most[w] : max;
    /* The exponents of max and 2^14 apart, within what a normal f32 can be divided and multiplied by. */
    int e = (int)(__float_as_uint(max) >> 23) - 127 - 14;
    e = TYPE == WG_BF16 || max == 0 || e > 113 ? 0 : e < -100 ? -100 : e; /* 114: infinity or NaN */
    const float down = __uint_as_float((unsigned)(127 - e) << 23);
    for (int i = t; i < padded; i += THREADS) {
        const float v = i < k ? from[i] * down : 0.0f;
        const uint16_t h = TYPE == WG_F16 ? wg_f16_of(v) : wg_bf16_of(v);
        const float back = TYPE == WG_F16 ? wg_f16_value(h) : wg_bf16_value(h), rest = v - back;
        hi[i] = h;
        lo[i] = fabsf(back) > 3e38f ? 0 : TYPE == WG_F16 ? wg_f16_of(rest) : wg_bf16_of(rest);
    }
    if (t == 0) scale[r] = __uint_as_float((unsigned)(127 + e) << 23);
}

extern "C" void WG_GPU(prepare)(wg_gpu *g, int type, int fragments, const float *x, int rows, int k, void *act)
{
    if (!wg_is_quantised(type) && !fragments) return; /* the rows themselves */
    if (type == WG_F32) return;
    const size_t r = (size_t)rows;
    if (wg_gpu_is_half(type)) {
        const size_t padded = wg_gpu_k_padded(k);
        uint16_t *halves = (uint16_t *)act;
        float *scale = (float *)(halves + 2 * r * padded);
        void (*kernel)(const float *, int, int, int, uint16_t *, float *) = type == WG_F16 ? halve_rows<WG_F16>
                                                                                           : halve_rows<WG_BF16>;
        WG_LAUNCH(kernel, rows, THREADS, 0, g->stream, x, k, (int)padded, rows, halves, scale);
        return;
    }
    const size_t blocks = r * (size_t)(k / WG_BLOCK);
    int8_t *q = (int8_t *)act;
    WG_LAUNCH(quantise_rows, wg_blocks_for(blocks, THREADS / WG_WARP), THREADS, 0, g->stream, x, q,
              (act_block *)(q + r * (size_t)k), blocks);
}
