/* SPDX-License-Identifier: MIT
 * Element types of tensors: ids, block sizes and the exact value of every element. Ids are those of GGUF, and two of this
 * project that GGUF has no name for; other readers refuse them as unknown types:
 *   f8_e4m3  0xF8E43 (1019459). A block is an f32 scale, then 128 codes of OCP FP8 E4M3FN (4 bits of exponent, bias 7, 3 of
 *            mantissa, no infinity, NaN 0x7f and 0xff); element = value of the code * scale, rounded once.
 *   q8_2of4  0x80204 (524804). q8_0 that is 2:4 sparse: of every four elements two are stored, the others are 0. A block of
 *            32 is an f16 d, u8 place[4], s8 q[16]: codes 4 s + i, i = 0..3, belong to elements 8 s .. 8 s + 7, codes i = 0, 1
 *            to the first four of these and 2, 3 to the others; bits 2 s, 2 s + 1 of place[i] say to which of the four. The
 *            element is d * q, as in q8_0. Places ascend within a four; where a file has the same twice, the later code
 *            stands. */
#ifndef WG_KERNELS_TYPES_H
#define WG_KERNELS_TYPES_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/hd.h"
#include "kernels/type_list.h"

#ifdef __cplusplus
extern "C" {
#endif

/* clang-format off */
typedef enum wg_type {
#define TYPE(id, name, number, ...) WG_##id = number,
    WG_WEIGHT_TYPES(TYPE)
#undef TYPE
    WG_I8 = 24,
    WG_I16 = 25,
    WG_I32 = 26,
    WG_I64 = 27,
    WG_F64 = 28,
} wg_type;
/* clang-format on */

typedef struct wg_type_info {
    const char *name;     /* "q8_0" */
    int block;            /* elements per block */
    int bytes;            /* bytes per block */
    int computable;       /* the kernels multiply with it */
    int writable;         /* wg_row_from_f32 makes it */
    int scales, scale_at; /* f16 of a quantised block: 0 for other types and mxfp4, 1, or 2 with minima; bytes before them */
} wg_type_info;

/* For messages; a unit test compares them with the table. */
#define WG_AND_TYPE(id, name, ...) ", " #name
#define WG_OR_TYPE(id, name, ...) " or " #name
#define WG_COMPUTABLE_TYPES                                                                                                    \
    "f32" WG_HALF_TYPES(WG_AND_TYPE) WG_SCALED_FLOAT_TYPES(WG_AND_TYPE) WG_SPARSE_TYPES(WG_AND_TYPE)                           \
        WG_CODEBOOK_TYPES(WG_AND_TYPE) WG_QUANT_TYPES_BUT_LAST(WG_AND_TYPE) WG_LAST_QUANT_TYPE(WG_OR_TYPE)
#define WG_WRITABLE_TYPES "f32, f16, bf16, f8_e4m3, q8_2of4, q8_0, q4_0, q4_1, q5_0, q5_1, q4_k or q6_k"

/* NULL for an id that is not in the table (and for known ids without a reader; wg_type_name still names those). */
const wg_type_info *wg_type_get(int id);
const char *wg_type_name(int id);    /* "q8_0"; "unknown type" for an id without a name */
int wg_type_parse(const char *name); /* id, or -1 */

/* Float types are multiplied with f32 inputs; the others as integers. */
WG_HD static inline int wg_type_is_float(int type)
{
    switch (type) {
#define TYPE(id, ...) case WG_##id:
        WG_FLOAT_TYPES(TYPE) WG_SCALED_FLOAT_TYPES(TYPE) return 1;
#undef TYPE
    default: return 0;
    }
}

/* Bytes of n elements (n a multiple of the block). */
static inline size_t wg_type_size(const wg_type_info *t, size_t n) { return n / (size_t)t->block * (size_t)t->bytes; }

/* Exact conversions of one value; f32 -> f16/bf16 round to nearest even, NaN stays a quiet NaN. */
float wg_f16_to_f32(uint16_t h);
uint16_t wg_f32_to_f16(float x);
static inline float wg_bf16_to_f32(uint16_t h)
{
    union {
        uint32_t u;
        float f;
    } v = { (uint32_t)h << 16 };
    return v.f;
}
uint16_t wg_f32_to_bf16(float x);

/* E4M3FN: exact, and to nearest even; beyond 448, the largest value, it stays 448. NaN becomes NaN. */
enum { WG_F8_RUN = 128 }; /* elements of a scale */
float wg_f8_to_f32(uint8_t code);
uint8_t wg_f32_to_f8(float x);
static inline int wg_f8_is_nan(uint8_t code) { return (code & 0x7F) == 0x7F; }
float wg_f8_scale(const void *block); /* the scale of a block; NaN where one of its codes is, so that codes need no check */

/* One row of n elements (whole blocks) as f32, and back. 0, or -1 for a type without a converter.
 * To f32: WG_COMPUTABLE_TYPES; exact, but for one rounding of f8_e4m3 and where a minimum is added.
 * From f32: f32 f16 bf16 f8_e4m3 (scale = amax/448 of a block, x/scale to nearest even; a block below 448 * 2^-126 becomes
 * zeros of scale 1) and q8_0 q4_0 q4_1 q5_0 q5_1, rounding as ggml's reference does: q8_0 round-half-away of x/d with the
 * unrounded d = amax/127; q4_0 and q5_0 trunc(x/d + 8.5 or 16.5), d = -(element of largest magnitude)/8 or 16; q4_1 and q5_1
 * trunc((x-min)/d + 0.5), d = (max-min)/15 or 31. q8_2of4: of every four the two largest magnitudes (of equal ones the first;
 * NaN is the largest), coded as q8_0 codes the row whose other elements are 0. q4_k, q6_k: quantize_k.c, of finite numbers. */
int wg_row_to_f32(int type, const void *src, float *dst, size_t n);
int wg_row_from_f32(int type, const float *src, void *dst, size_t n);

#ifdef __cplusplus
}
#endif

#endif
