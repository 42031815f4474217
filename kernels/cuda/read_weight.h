/* SPDX-License-Identifier: MIT
 * Reading packed weights on a device: panels of float types (kernels/layout.h), fragments (gpu.h), stripes of quantised
 * types (stripe.h); the types as template arguments, so that all offsets are constants. Values are exact, as
 * wg_weights_read of kernels/ref gives them. Private to kernels/cuda. */
#ifndef WG_KERNELS_CUDA_READ_WEIGHT_H
#define WG_KERNELS_CUDA_READ_WEIGHT_H

#include "kernels/cuda/launch.h"
#include "kernels/cuda/stripe.h"

/* Of a file's types all but q8_2of4, for which wg_stripe_type stands in. */
#define WG_GPU_QUANTISED(X)                                                                                                    \
    X(WG_Q8_0)                                                                                                                 \
    X(WG_Q4_0)                                                                                                                 \
    X(WG_Q4_1)                                                                                                                 \
    X(WG_Q5_0)                                                                                                                 \
    X(WG_Q5_1) X(WG_IQ4_NL) X(WG_IQ4_XS) X(WG_MXFP4) X(WG_Q2_K) X(WG_Q3_K) X(WG_Q4_K) X(WG_Q5_K) X(WG_Q6_K)

/* A table's values (quant_blocks.h) of four codes, a byte each. */
template <int TYPE> WG_DEVICE uint32_t wg_table_values(uint32_t codes)
{
    const bool mx = TYPE == WG_MXFP4;
    const uint32_t three = codes & 0x07070707u, packed = three | three >> 4;
    const uint32_t which = (packed & 0xFFu) | (packed >> 8 & 0xFF00u), upper = (codes >> 3 & 0x01010101u) * 255u;
    const uint32_t low = __byte_perm(mx ? 0x03020100u : 0xBFAD9881u, mx ? 0x0C080604u : 0xF6EADDCFu, which);
    const uint32_t high = __byte_perm(mx ? 0xFDFEFF00u : 0x26190D01u, mx ? 0xF4F8FAFCu : 0x71594535u, which);
    return (low & ~upper) | (high & upper);
}

/* What wg_step_words' bytes exceed the values by. */
template <int TYPE> WG_DEVICE int wg_step_zero() { return wg_code_zero(TYPE) == 128 ? 0 : wg_code_zero(TYPE); }

/* The four words of a lane for block b of a record (stripe.h): the A operand of mma.m16n8k32, signed bytes. */
template <int TYPE> WG_DEVICE void wg_step_words(const uint8_t *record, int lane, int b, uint32_t *a)
{
    if (wg_code_bits(TYPE) == 8) {
        const uint4 v = *(const uint4 *)(record + (b * WG_WARP + lane) * 16);
        a[0] = v.x, a[1] = v.y, a[2] = v.z, a[3] = v.w;
        return;
    }
    const uint2 v = *(const uint2 *)(record + (b / 2 * WG_WARP + lane) * 16 + b % 2 * 8);
    a[0] = v.x & 0x0F0F0F0Fu, a[1] = v.y & 0x0F0F0F0Fu, a[2] = v.x >> 4 & 0x0F0F0F0Fu, a[3] = v.y >> 4 & 0x0F0F0F0Fu;
    const uint8_t *high = record + wg_step_high_at(TYPE);
    WG_UNROLL_FOR(int j = 0; j < 4; j++) {
        if (wg_has_table(TYPE)) a[j] = wg_table_values<TYPE>(a[j]);
        if (wg_code_bits(TYPE) == 5)
            a[j] |= (*(const uint32_t *)(high + lane * 8 + b / 2 * 4) >> (4 * (b % 2) + j) & 0x01010101u) << 4;
        if (wg_code_bits(TYPE) == 6) a[j] |= (*(const uint32_t *)(high + lane * 16 + b * 4) >> 2 * j & 0x03030303u) << 4;
    }
}

/* Scales and minima of output g + 8 h of block b of a record, of each part. */
template <int TYPE> WG_DEVICE void wg_step_scales(const uint8_t *record, int g, int h, int b, float *scale, float *min)
{
    const uint8_t *at = record + wg_step_scales_at(TYPE) + 16 * g;
    const int i = WG_STEP * h + b;
    if (!wg_is_k(TYPE)) {
        const uint16_t d = ((const uint16_t *)at)[i];
        scale[0] = scale[1] = wg_scale_is_bf16(TYPE) ? wg_bf16_value(d) : wg_f16_value(d);
        min[0] = wg_has_min(TYPE) ? wg_f16_value(((const uint16_t *)(record + wg_step_minima_at(TYPE) + 16 * g))[i]) : 0.0f;
        min[1] = min[0];
        return;
    }
    const uint16_t *wide = (const uint16_t *)(record + wg_step_wide_at(TYPE)) + (wg_has_min(TYPE) ? 4 : 2) * g;
    const float d = wg_f16_value(wide[h]);
    if (!wg_has_min(TYPE)) {
        scale[0] = d * (float)(int8_t)at[2 * i];
        scale[1] = d * (float)(int8_t)at[2 * i + 1];
        min[0] = min[1] = 0;
        return;
    }
    const float dmin = wg_f16_value(wide[2 + h]);
    WG_UNROLL_FOR(int part = 0; part < 2; part++) {
        const bool halves = wg_block_sums(TYPE) == 2;
        const int both = at[halves ? 2 * i + part : i];
        scale[part] = d * (float)(halves ? both & 15 : both);
        min[part] = dmin * -(float)(halves ? both >> 4 : at[2 * WG_STEP + i]);
    }
}

/* Element (n, k) of a panel matrix, as wg_row_to_f32 of the file's row gives it; so are the two below. */
template <int TYPE> WG_DEVICE float wg_panel_element(const void *data, int inputs, int n, int k)
{
    if (TYPE == WG_F8_E4M3) {
        const uint8_t *block = (const uint8_t *)data + (size_t)(n / WG_PANEL) * wg_float_at(TYPE, inputs) +
                               wg_float_at(TYPE, k / WG_F8_RUN * WG_F8_RUN);
        const uint8_t code = block[WG_F8_HEAD + k % WG_F8_RUN * WG_PANEL + n % WG_PANEL];
        return wg_f8_value(code) * ((const float *)block)[n % WG_PANEL];
    }
    const size_t at = ((size_t)(n / WG_PANEL) * (size_t)inputs + (size_t)k) * WG_PANEL + (size_t)(n % WG_PANEL);
    if (TYPE == WG_F32) return ((const float *)data)[at];
    return TYPE == WG_F16 ? wg_f16_value(((const uint16_t *)data)[at]) : wg_bf16_value(((const uint16_t *)data)[at]);
}

/* Of a quantised one. */
template <int TYPE> WG_DEVICE float wg_stripe_element(const void *data, int inputs, int n, int k)
{
    const int r = n % WG_STRIPE, b = k / WG_QUANT_BLOCK, p = k % WG_QUANT_BLOCK / 16;
    const uint8_t *record = (const uint8_t *)data + (size_t)(n / WG_STRIPE) * wg_stripe_bytes(TYPE, inputs) +
                            (size_t)(b / WG_STEP) * wg_step_bytes(TYPE);
    uint32_t a[4];
    float scale[2], min[2];
    wg_step_words<TYPE>(record, r % 8 * 4 + k % 16 / 4, b % WG_STEP, a);
    wg_step_scales<TYPE>(record, r % 8, r / 8, b % WG_STEP, scale, min);
    const uint32_t word = p ? (r < 8 ? a[2] : a[3]) : (r < 8 ? a[0] : a[1]);
    const int value = (int)(int8_t)(word >> 8 * (k % 4)) - wg_step_zero<TYPE>();
    const int part = wg_block_sums(TYPE) == 2 ? p : 0;
    const float x = (float)value * scale[part];
    return wg_has_min(TYPE) ? x + min[part] : x;
}

/* Of one in fragment order. */
template <int TYPE> WG_DEVICE float wg_fragment_element(const void *data, int inputs, int n, int k)
{
    if (TYPE == WG_F8_E4M3) {
        const uint8_t *stripe = (const uint8_t *)data + (size_t)(n / 16) * wg_gpu_f8_stripe(inputs);
        const float scale = *(const float *)(stripe + wg_gpu_f8_scale_at(n % 16, k / WG_F8_RUN));
        return wg_f8_value(stripe[wg_gpu_f8_at(n % 16, k)]) * 0x1p-8f * scale;
    }
    const size_t tile = (size_t)(n / 16) * (wg_gpu_k_padded(inputs) / 16) + (size_t)(k / 16);
    const int r = n % 16, c = k % 16, lane = (r & 7) * 4 + (c & 7) / 2;
    const uint16_t h = ((const uint16_t *)data)[tile * 256 + (size_t)(lane * 8 + (r / 8 + c / 8 * 2) * 2 + (c & 1))];
    return TYPE == WG_F16 ? wg_f16_value(h) : wg_bf16_value(h);
}

/* Of one in rows. */
template <int TYPE> WG_DEVICE float wg_row_element(const void *data, int inputs, int n, int k)
{
    const uint16_t h = ((const uint16_t *)data)[(size_t)n * wg_gpu_k_padded(inputs) + (size_t)k];
    return TYPE == WG_F16 ? wg_f16_value(h) : wg_bf16_value(h);
}

#endif
