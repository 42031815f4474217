/* SPDX-License-Identifier: MIT
 * Reading packed weights on a device: panels of every type (kernels/layout.h; the types as template arguments, so that all
 * offsets are constants) and fragments. Values are exact, as wg_weights_read of kernels/ref gives them. Private to
 * kernels/cuda. */
#ifndef WG_KERNELS_CUDA_WEIGHT_H
#define WG_KERNELS_CUDA_WEIGHT_H

#include "kernels/cuda/launch.h"
#include "kernels/layout.h"

#define WG_GPU_QUANTISED(X) \
    X(WG_Q8_0) X(WG_Q4_0) X(WG_Q4_1) X(WG_Q5_0) X(WG_Q5_1) X(WG_IQ4_NL) X(WG_Q4_K) X(WG_Q5_K) X(WG_Q6_K)

/* iq4_nl's values, four to a word. */
WG_DEVICE int wg_iq4_value(int code)
{
    const uint32_t word = code < 8 ? (code < 4 ? 0xBFAD9881u : 0xF6EADDCFu) : (code < 12 ? 0x26190D01u : 0x71594535u);
    return (int)(int8_t)(word >> 8 * (code & 3));
}

/* Scales of output r of a panel's block: of each part, and the minimum. */
template <int TYPE>
WG_DEVICE void wg_block_scales(const uint8_t *head, const uint8_t *block, int r, float *scale, float *min)
{
    const uint16_t *wide = (const uint16_t *)(wg_is_k(TYPE) ? head : block);
    scale[0] = scale[1] = wg_f16_value(wide[r]);
    *min = wg_has_min(TYPE) ? wg_f16_value(wide[32 + r]) : 0.0f;
    if (wg_is_k(TYPE)) {
        for (int part = 0; part < wg_parts(TYPE); part++) scale[part] *= (float)(int8_t)block[32 * part + r];
        if (wg_has_min(TYPE)) *min *= -(float)block[32 + r];
    }
}

/* The values of four inputs 4 j .. 4 j + 3, j < 8, of output r: signed bytes, low first, that exceed the values by
 * wg_four_zero. */
template <int TYPE>
WG_DEVICE uint32_t wg_four_values(const uint8_t *block, int r, int j)
{
    const uint32_t *codes = (const uint32_t *)(block + wg_codes_at(TYPE));
    if (wg_code_bits(TYPE) == 8) return codes[32 * j + r] ^ 0x80808080u;
    const uint32_t low = codes[32 * (j & 3) + r] >> (j < 4 ? 0 : 4) & 0x0F0F0F0Fu;
    if (TYPE == WG_IQ4_NL) {
        uint32_t v = 0;
        for (int i = 0; i < 4; i++) v |= (uint32_t)(wg_iq4_value((int)(low >> 8 * i & 15)) & 255) << 8 * i;
        return v;
    }
    if (wg_code_bits(TYPE) == 4) return low;
    const uint8_t *high = block + wg_high_at(TYPE);
    if (wg_code_bits(TYPE) == 6) {
        const uint32_t two = ((const uint32_t *)high)[32 * (j >> 2) + r] >> 2 * (j & 3) & 0x03030303u;
        return low | two << 4;
    }
    const uint32_t bits = high[16 * j + r / 2] >> 4 * (r & 1) & 15u; /* of the four inputs */
    return low | (bits & 1) << 4 | (bits & 2) << 11 | (bits & 4) << 18 | (bits & 8) << 25;
}

template <int TYPE> WG_DEVICE int wg_four_zero() { return TYPE == WG_Q8_0 || TYPE == WG_IQ4_NL ? 0 : wg_code_zero(TYPE); }

/* Element (n, k) of a panel matrix, as wg_row_to_f32 of the file's row gives it. */
template <int TYPE> WG_DEVICE float wg_panel_element(const void *data, int inputs, int n, int k)
{
    const size_t at = ((size_t)(n / WG_PANEL) * (size_t)inputs + (size_t)k) * WG_PANEL + (size_t)(n % WG_PANEL);
    if (TYPE == WG_F32) return ((const float *)data)[at];
    if (TYPE == WG_F16) return wg_f16_value(((const uint16_t *)data)[at]);
    if (TYPE == WG_BF16) return wg_bf16_value(((const uint16_t *)data)[at]);
    const int r = n % WG_PANEL, b = k / WG_BLOCK, i = k % WG_BLOCK;
    const uint8_t *panel = (const uint8_t *)data + (size_t)(n / WG_PANEL) * wg_panel_bytes(TYPE, inputs);
    const uint8_t *block = panel + wg_block_of(TYPE, b);
    float scale[2], min;
    wg_block_scales<TYPE>(panel + wg_head_of(TYPE, b), block, r, scale, &min);
    const int value = (int)(int8_t)(wg_four_values<TYPE>(block, r, i / 4) >> 8 * (i & 3)) - wg_four_zero<TYPE>();
    const float x = (float)value * (wg_parts(TYPE) == 2 && i >= WG_BLOCK / 2 ? scale[1] : scale[0]);
    return wg_has_min(TYPE) ? x + min : x;
}

/* Element (n, k) of a matrix in fragment order. */
template <int TYPE> WG_DEVICE float wg_fragment_element(const void *data, int inputs, int n, int k)
{
    const size_t tile = (size_t)(n / 16) * (wg_gpu_k_padded(inputs) / 16) + (size_t)(k / 16);
    const int r = n % 16, c = k % 16, lane = (r & 7) * 4 + (c & 7) / 2;
    const uint16_t h = ((const uint16_t *)data)[tile * 256 + (size_t)(lane * 8 + (r / 8 + c / 8 * 2) * 2 + (c & 1))];
    return TYPE == WG_F16 ? wg_f16_value(h) : wg_bf16_value(h);
}

#endif
