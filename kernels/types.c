/* SPDX-License-Identifier: MIT
 * Element types. The table is GGUF's, f8_e4m3 and q8_2of4; the conversions are exact, or round to nearest even where a
 * narrower float receives. */
#include "kernels/types.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "kernels/four.h"
#include "kernels/quant_blocks.h"
#include "kernels/quantize_k.h"
#include "kernels/unroll.h"

typedef struct type_row {
    int id;
    wg_type_info info; /* block 0: known by name only; such files are refused */
} type_row;

static const type_row type_rows[] = {
#define TYPE(id, name, number, block, bytes, written, bits, zero, run, minimum, d)                                             \
    { number,                                                                                                                  \
      { #name, block, bytes, 1, written, (bits) && (number) != WG_MXFP4 && (number) != WG_IQ1_M ? 1 + (minimum) : 0, d } },
    WG_WEIGHT_TYPES(TYPE)
#undef TYPE
    /* read, without kernels */
    { WG_I8, { "i8", 1, 1, 0, 0, 0, 0 } },
    { WG_I16, { "i16", 1, 2, 0, 0, 0, 0 } },
    { WG_I32, { "i32", 1, 4, 0, 0, 0, 0 } },
    { WG_I64, { "i64", 1, 8, 0, 0, 0, 0 } },
    { WG_F64, { "f64", 1, 8, 0, 0, 0, 0 } },
    /* names only */
    { 4, { .name = "q4_2" } },
    { 5, { .name = "q4_3" } },
    { 9, { .name = "q8_1" } },
    { 15, { .name = "q8_k" } },
    { 31, { .name = "q4_0_4_4" } },
    { 32, { .name = "q4_0_4_8" } },
    { 33, { .name = "q4_0_8_8" } },
    { 40, { .name = "nvfp4" } },
    { 41, { .name = "q1_0" } },
    { 42, { .name = "q2_0" } },
};

enum { TYPE_ROWS = (int)(sizeof type_rows / sizeof type_rows[0]) };

static const type_row *row_of(int id)
{
    for (int i = 0; i < TYPE_ROWS; i++)
        if (type_rows[i].id == id) return &type_rows[i];
    return NULL;
}

const wg_type_info *wg_type_get(int id)
{
    const type_row *r = row_of(id);
    return r && r->info.block ? &r->info : NULL;
}

const char *wg_type_name(int id)
{
    const type_row *r = row_of(id);
    return r ? r->info.name : "unknown type";
}

int wg_type_parse(const char *name)
{
    for (int i = 0; i < TYPE_ROWS; i++)
        if (type_rows[i].info.block && strcmp(type_rows[i].info.name, name) == 0) return type_rows[i].id;
    return -1;
}

/* ---- single values ----------------------------------------------------------------------------------------------- */

static uint32_t bits_of(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static float float_of(uint32_t u)
{
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

float wg_f16_to_f32(uint16_t h)
{
    const uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = h >> 10 & 31, mantissa = h & 0x3FF;
    if (exponent == 31) return float_of(sign | 0x7F800000 | mantissa << 13 | (mantissa ? 0x400000 : 0));
    if (exponent == 0) return float_of(sign | bits_of((float)mantissa * 0x1p-24f));
    return float_of(sign | (exponent + 112) << 23 | mantissa << 13);
}

uint16_t wg_f32_to_f16(float x)
{
    const uint32_t u = bits_of(x), sign = u >> 16 & 0x8000, a = u & 0x7FFFFFFF;
    if (a > 0x7F800000) return (uint16_t)(sign | 0x7E00 | (a >> 13 & 0x3FF));
    if (a >= 0x477FF000) return (uint16_t)(sign | 0x7C00); /* 65520 and above round to infinity */
    if (a < 0x38800000) { /* below 2^-14: adding 0.5 makes the addition itself round to a multiple of 2^-24 */
        return (uint16_t)(sign | (bits_of(float_of(a) + 0.5f) - bits_of(0.5f)));
    }
    const uint32_t even = a >> 13 & 1;
    return (uint16_t)(sign | (a - (112u << 23) + 0xFFF + even) >> 13);
}

uint16_t wg_f32_to_bf16(float x)
{
    const uint32_t u = bits_of(x);
    if ((u & 0x7FFFFFFF) > 0x7F800000) return (uint16_t)(u >> 16 | 0x40);
    return (uint16_t)((u + 0x7FFF + (u >> 16 & 1)) >> 16);
}

/* As a half the same bits have the bias 15 instead of 7, subnormal numbers included: the value * 2^-8. */
float wg_f8_to_f32(uint8_t code)
{
    if (wg_f8_is_nan(code)) return float_of((uint32_t)(code & 0x80) << 24 | 0x7FC00000);
    return wg_f16_to_f32((uint16_t)((code & 0x80) << 8 | (code & 0x7F) << 7)) * 0x1p8f;
}

uint8_t wg_f32_to_f8(float x)
{
    const uint32_t u = bits_of(x), sign = u >> 24 & 0x80, a = u & 0x7FFFFFFF;
    if (a > 0x7F800000) return (uint8_t)(sign | 0x7F);
    if (a >= 0x43E00000) return (uint8_t)(sign | 0x7E); /* 448 */
    if (a < 0x3C800000) { /* below 2^-6: adding 2^14 makes the addition itself round to a multiple of 2^-9 */
        return (uint8_t)(sign | (bits_of(float_of(a) + 0x1p14f) - bits_of(0x1p14f)));
    }
    return (uint8_t)(sign | (a - (120u << 23) + 0x7FFFF + (a >> 20 & 1)) >> 20);
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

enum { BLOCK = 32 }; /* elements of the written blocks: scales, then the integers */

static int blocks_to_f32(int type, const uint8_t *src, float *dst, size_t n)
{
    const wg_type_info *t = wg_type_get(type);
    if (!t || !wg_is_quantised(type) || !t->computable) return -1;
    for (size_t i = 0; i < n / (size_t)t->block; i++, src += t->bytes) {
        wg_block b;
        wg_block_read(type, src, &b);
        for (int k = 0; k < b.n; k++) {
            const float v = (float)wg_code_value(type, b.code[k]) * wg_block_scale(type, &b, k / b.run);
            *dst++ = wg_has_min(type) ? v + wg_block_min(type, &b, k / b.run) : v;
        }
    }
    return 0;
}

float wg_f8_scale(const void *block)
{
    const uint8_t *code = (const uint8_t *)block + 4;
    float scale;
    memcpy(&scale, block, sizeof scale);
    for (int j = 0; j < WG_F8_RUN; j++)
        if (wg_f8_is_nan(code[j])) return wg_f8_to_f32(code[j]);
    return scale;
}

static void f8_to_f32(const uint8_t *src, float *dst, size_t n)
{
    for (size_t b = 0; b < n / WG_F8_RUN; b++, src += 4 + WG_F8_RUN, dst += WG_F8_RUN) {
        float scale;
        memcpy(&scale, src, sizeof scale);
        for (int j = 0; j < WG_F8_RUN; j++) dst[j] = wg_f8_to_f32(src[4 + j]) * scale;
    }
}

static void f8_from_f32(const float *src, uint8_t *dst, size_t n)
{
    for (size_t b = 0; b < n / WG_F8_RUN; b++, src += WG_F8_RUN, dst += 4 + WG_F8_RUN) {
        float amax = 0;
        for (int j = 0; j < WG_F8_RUN; j++) amax = fabsf(src[j]) > amax ? fabsf(src[j]) : amax;
        const float scale = amax < 448 * 0x1p-126f ? 1 : amax / 448;
        memcpy(dst, &scale, sizeof scale);
        for (int j = 0; j < WG_F8_RUN; j++) dst[4 + j] = wg_f32_to_f8(src[j] / scale);
    }
}

/* x is within 127 up to rounding unless the block held NaN, infinity or only subnormal numbers. */
static int8_t round_i8(float x) { return x >= 127 ? 127 : x <= -127 ? -127 : x == x ? (int8_t)roundf(x) : 0; }

/* The largest magnitude of a block. *ordinary: all are finite, and so are 1 / it and what the types below divide it by. */
static float block_max(const float *src, int *ordinary)
{
    four most = four_all(0), zero = most;
    for (int j = 0; j < BLOCK; j += 4) {
        const four v = four_load(src + j);
        most = four_larger(four_abs(v), most); /* NaN is passed over */
        zero += v * four_all(0);
    }
    const float amax = four_max(most);
    *ordinary = four_sum(zero) == 0 && amax > 1e-30f && amax < 1e30f;
    return amax;
}

static float magnitude(float x) { return x == x ? fabsf(x) : INFINITY; }

static void q8_0_from_f32(const float *src, uint8_t *dst, size_t n)
{
    for (size_t b = 0; b < n / BLOCK; b++, src += BLOCK, dst += 2 + BLOCK) {
        int ordinary;
        float code[BLOCK];
        const float amax = block_max(src, &ordinary), d = amax / 127, inverse = d > 0 ? 1 / d : 0;
        const uint16_t h = wg_f32_to_f16(d);
        memcpy(dst, &h, sizeof h);
        for (int j = 0; j < BLOCK && !ordinary; j++) dst[2 + j] = (uint8_t)round_i8(src[j] * inverse);
        for (int j = 0; j < BLOCK && ordinary; j += 4) {
            const four x = four_load(src + j) * four_all(inverse), a = four_smaller(four_abs(x), four_all(127));
            four r = four_rounded(a, 0, 127);
            r += four_choose(a - r == four_all(0.5f), four_all(1), four_all(0)); /* halves away from zero */
            r = four_choose(x < four_all(0), -r, r);
            memcpy(code + j, &r, sizeof r);
        }
        for (int j = 0; j < BLOCK && ordinary; j++) dst[2 + j] = (uint8_t)(int8_t)code[j];
    }
}

/* Of every four the two largest stay. */
static void q8_2of4_from_f32(const float *src, uint8_t *dst, size_t n)
{
    const size_t bytes = (size_t)wg_type_get(WG_Q8_2OF4)->bytes;
    for (size_t b = 0; b < n / BLOCK; b++, src += BLOCK, dst += bytes) {
        float kept[BLOCK];
        uint8_t dense[2 + BLOCK];
        wg_block out;
        memcpy(kept, src, sizeof kept);
        for (int i = 0; i < BLOCK; i++) {
            int larger = 0;
            for (int j = i / 4 * 4; j < i / 4 * 4 + 4; j++) {
                const float a = magnitude(src[j]), m = magnitude(src[i]);
                larger += a > m || (a == m && j < i);
            }
            if (larger >= 2) kept[i] = 0;
        }
        q8_0_from_f32(kept, dense, BLOCK);
        wg_block_read(WG_Q8_0, dense, &out);
        wg_block_write(WG_Q8_2OF4, &out, dst);
    }
}

/* The first element of the largest magnitude. NaN is passed over. */
INLINE float block_first(const float *src)
{
    four high = four_all(0), low = high;
    int first = 0;
    for (int j = 0; j < BLOCK; j += 4) {
        const four v = four_load(src + j);
        high = four_larger(v, high);
        low = four_smaller(v, low);
    }
    const float up = four_max(high), down = four_max(-low);
    if (up != down) return up > down ? up : -down;
    if (up == 0) return 0;
    while (fabsf(src[first]) != up) first++;
    return src[first];
}

/* Least and greatest element, of zeros the first; NaN is passed over, but for the first element's. */
INLINE void block_range(const float *src, float *min, float *max)
{
    four low = four_all(src[0]), high = low;
    int first = 0;
    for (int j = 0; j < BLOCK; j += 4) {
        const four v = four_load(src + j);
        low = four_smaller(v, low);
        high = four_larger(v, high);
    }
    *min = -four_max(-low);
    *max = four_max(high);
    if (*min != 0) return;
    while (src[first] != 0) first++;
    *min = src[first];
}

/* trunc((x - low) * inverse + add) within 0..top; of NaN 0. */
INLINE void put_codes(const float *src, float low, float inverse, float add, int top, uint8_t *code)
{
    for (int half = 0; half < BLOCK; half += 16) {
        four v[4];
        for (int i = 0; i < 4; i++) {
            const four x = (four_load(src + half + 4 * i) - four_all(low)) * four_all(inverse) + four_all(add);
            v[i] = four_smaller(four_larger(x, four_all(0)), four_all((float)top));
        }
        four_to_bytes(v, code + half);
    }
}

/* q4_0, q5_0: d = the element of largest magnitude / -2^(bits-1), so that this element is exact but for d's rounding. */
INLINE void signed_from_f32(int type, const float *src, uint8_t *dst, size_t n)
{
    const int bits = wg_code_bits(type), zero = wg_code_zero(type);
    for (size_t b = 0; b < n / BLOCK; b++, src += BLOCK, dst += 2 + BLOCK * bits / 8) {
        wg_block out;
        const float d = block_first(src) / (float)-zero, inverse = d != 0 ? 1 / d : 0;
        out.d = wg_f32_to_f16(d);
        put_codes(src, 0, inverse, (float)zero + 0.5f, 2 * zero - 1, out.code);
        wg_block_write(type, &out, dst);
    }
}

/* q4_1, q5_1: min + code * (max - min) / (2^bits - 1). */
INLINE void ranged_from_f32(int type, const float *src, uint8_t *dst, size_t n)
{
    const int bits = wg_code_bits(type), top = (1 << bits) - 1;
    for (size_t b = 0; b < n / BLOCK; b++, src += BLOCK, dst += 4 + BLOCK * bits / 8) {
        wg_block out;
        float min, max;
        block_range(src, &min, &max);
        const float d = (max - min) / (float)top, inverse = d > 0 ? 1 / d : 0;
        out.d = wg_f32_to_f16(d), out.m = wg_f32_to_f16(min);
        put_codes(src, min, inverse, 0.5f, top, out.code);
        wg_block_write(type, &out, dst);
    }
}

int wg_row_to_f32(int type, const void *src, float *dst, size_t n)
{
    const uint8_t *p = src;
    switch (type) {
    case WG_F32: memcpy(dst, src, n * sizeof *dst); return 0;
    case WG_F16:
        for (size_t i = 0; i < n; i++) dst[i] = wg_f16_to_f32(wg_load16(p + 2 * i));
        return 0;
    case WG_BF16:
        for (size_t i = 0; i < n; i++) dst[i] = wg_bf16_to_f32(wg_load16(p + 2 * i));
        return 0;
    case WG_F8_E4M3: f8_to_f32(p, dst, n); return 0;
    default: return blocks_to_f32(type, src, dst, n);
    }
}

int wg_row_from_f32(int type, const float *src, void *dst, size_t n)
{
    uint16_t *h = dst;
    switch (type) {
    case WG_F32: memcpy(dst, src, n * sizeof *src); return 0;
    case WG_F16:
        for (size_t i = 0; i < n; i++) h[i] = wg_f32_to_f16(src[i]);
        return 0;
    case WG_BF16:
        for (size_t i = 0; i < n; i++) h[i] = wg_f32_to_bf16(src[i]);
        return 0;
    case WG_F8_E4M3: f8_from_f32(src, dst, n); return 0;
    case WG_Q8_2OF4: q8_2of4_from_f32(src, dst, n); return 0;
    case WG_Q8_0: q8_0_from_f32(src, dst, n); return 0;
    case WG_Q4_0: signed_from_f32(WG_Q4_0, src, dst, n); return 0;
    case WG_Q5_0: signed_from_f32(WG_Q5_0, src, dst, n); return 0;
    case WG_Q4_1: ranged_from_f32(WG_Q4_1, src, dst, n); return 0;
    case WG_Q5_1: ranged_from_f32(WG_Q5_1, src, dst, n); return 0;
    case WG_Q4_K: wg_q4_k_from_f32(src, dst, n); return 0;
    case WG_Q6_K: wg_q6_k_from_f32(src, dst, n); return 0;
    default: return -1;
    }
}
