/* SPDX-License-Identifier: MIT
 * Quantised blocks of a file, decoded to integers and scales. All quantised types have one form: element k = value(code[k])
 * * scale + min, with one scale (and min) for each run of `run` elements, value(code) = code - zero, or that of a table.
 * Scales and minima are an f16 (mxfp4: a power of two, which a bf16 holds) or products of an f16 and a small integer: exact
 * in f32, and so is value * scale; a type with minima therefore rounds once, in the addition. For kernels/ and quantisers. */
#ifndef WG_KERNELS_QUANT_BLOCKS_H
#define WG_KERNELS_QUANT_BLOCKS_H

#include <string.h>

#include "kernels/hd.h"
#include "kernels/types.h"

enum { WG_BLOCK_MOST = 256 };

typedef struct wg_block {
    int n, run;                  /* elements; elements that share a scale */
    uint8_t code[WG_BLOCK_MOST]; /* 0..15, 0..31, 0..63; q8_0, q8_2of4: value + 128 */
    uint16_t d, m;               /* f16 (d of mxfp4: bf16): scale and minimum of the block, or the factors of the runs' */
    int8_t scale[16];            /* of each run; types with blocks of 256 only */
    uint8_t min[16];
} wg_block;

/* Little-endian numbers at any alignment. */
static inline uint16_t wg_load16(const uint8_t *p)
{
    uint16_t h;
    memcpy(&h, p, sizeof h);
    return h;
}
static inline uint32_t wg_load32(const uint8_t *p)
{
    uint32_t w;
    memcpy(&w, p, sizeof w);
    return w;
}

WG_HD static inline int wg_is_quantised(int type) { return !wg_type_is_float(type); }

/* One column of the list of types (type_list.h) for a type of it; `other` for the rest. */
#define WG_TYPE_COLUMN(type, TYPE, other)                                                                                      \
    switch (type) {                                                                                                            \
        WG_QUANT_TYPES(TYPE)                                                                                                   \
    default: return other;                                                                                                     \
    }
/* clang-format off */
#define WG_IS_K(id, name, number, block, ...) case WG_##id: return (block) == WG_BLOCK_MOST;
#define WG_BITS(id, name, number, block, bytes, written, bits, ...) case WG_##id: return bits;
#define WG_ZERO(id, name, number, block, bytes, written, bits, zero, ...) case WG_##id: return zero;
#define WG_RUN(id, name, number, block, bytes, written, bits, zero, run, ...) case WG_##id: return run;
#define WG_MINIMUM(id, name, number, block, bytes, written, bits, zero, run, minimum, ...) case WG_##id: return minimum;
WG_HD static inline int wg_is_k(int type) { WG_TYPE_COLUMN(type, WG_IS_K, 0) }
WG_HD static inline int wg_has_min(int type) { WG_TYPE_COLUMN(type, WG_MINIMUM, 0) }
WG_HD static inline int wg_code_bits(int type) { WG_TYPE_COLUMN(type, WG_BITS, 4) }
WG_HD static inline int wg_run_of(int type) { WG_TYPE_COLUMN(type, WG_RUN, 32) } /* clang-format on */

/* Code of the value 0. */
WG_HD static inline int wg_code_zero(int type){ WG_TYPE_COLUMN(type, WG_ZERO, 0) }

/* Types whose 4-bit codes are indices of a table of bytes: values + 128. iq4_nl and iq4_xs have one (ggml, "non-linear" 4
 * bits), mxfp4 twice the values of OCP FP4 E2M1, iq1_s and iq1_m eight times theirs, iq2 and iq3_s the values of their code
 * books, iq3_xxs half of them. */
WG_HD static inline int wg_has_table(int type)
{
    return wg_code_bits(type) == 4 && wg_code_zero(type) == 128;
}
extern const uint8_t wg_iq4_table[16], wg_mxfp4_table[16], wg_iq1_table[16], wg_iq2_table[16], wg_iq3_xxs_table[16],
    wg_iq3_s_table[16];
static inline const uint8_t *wg_table_of(int type)
{
    return type == WG_MXFP4                                              ? wg_mxfp4_table
           : type == WG_IQ1_S || type == WG_IQ1_M                        ? wg_iq1_table
           : type == WG_IQ2_XXS || type == WG_IQ2_XS || type == WG_IQ2_S ? wg_iq2_table
           : type == WG_IQ3_XXS                                          ? wg_iq3_xxs_table
           : type == WG_IQ3_S                                            ? wg_iq3_s_table
                                                                         : wg_iq4_table;
}

static inline int wg_code_value(int type, int code)
{
    return (wg_has_table(type) ? wg_table_of(type)[code] : code) - wg_code_zero(type);
}

/* Types that store two elements of every four, in blocks as types.h describes them. */
enum { WG_SPARSE_STEPS = 4 }; /* of eight elements and four codes */
WG_HD static inline int wg_is_sparse(int type) { return type == WG_Q8_2OF4; }

/* The 16 bits of a scale of a block, as a number. */
WG_HD static inline int wg_scale_is_bf16(int type) { return type == WG_MXFP4; }

/* The power of two that a block's f16 is multiplied with: code books are stored as whole numbers. */
WG_HD static inline float wg_scale_unit(int type)
{
    const int eighths = type == WG_IQ1_S || type == WG_IQ1_M || type == WG_IQ2_XXS || type == WG_IQ2_XS || type == WG_IQ2_S;
    return eighths ? 0.125f : type == WG_IQ3_XXS ? 0.5f : 1;
}
static inline float wg_wide_scale(int type, uint16_t d)
{
    return wg_scale_is_bf16(type) ? wg_bf16_to_f32(d) : wg_f16_to_f32(d) * wg_scale_unit(type);
}

/* Decodes the block at src. Returns 0, or -1 for a type without quantised blocks that this program reads. */
int wg_block_read(int type, const void *src, wg_block *out);

/* The fifth bits of eight codes, the first one's lowest: multiplying moves bit 0 of byte j to bit 56 + j. */
static inline uint32_t wg_fifth_bits(const uint8_t *code)
{
    uint64_t w = 0;
    for (int j = 0; j < 8; j++) w |= (uint64_t)code[j] << 8 * j;
    return (uint32_t)((w >> 4 & 0x0101010101010101u) * 0x0102040810204080u >> 56);
}

/* The 32 codes of a block (0x80: zero) of which at most two of every four are not zero, as a sparse block stores them: signed
 * codes and their places. */
void wg_sparse_codes(const uint8_t *code, uint8_t q[16], uint8_t place[4]);

/* Element j in the low half of byte j, element j + 16 in the high half; fifth bits, if any, in one word before them. */
static inline void wg_put_nibbles(const uint8_t *code, int bits, uint8_t *dst)
{
    if (bits == 5) {
        uint32_t high = 0;
        for (int j = 0; j < 32; j += 8) high |= wg_fifth_bits(code + j) << j;
        memcpy(dst, &high, sizeof high);
        dst += sizeof high;
    }
    uint8_t low[16]; /* apart from dst, so that compilers see that nothing overlaps */
    for (int j = 0; j < 16; j++) low[j] = (uint8_t)((code[j] & 15) | code[j + 16] << 4);
    memcpy(dst, low, sizeof low);
}

/* Writes a block of a type of 32 elements without a table, from code, d and m: what wg_block_read reads. */
static inline void wg_block_write(int type, const wg_block *b, uint8_t *p)
{
    memcpy(p, &b->d, 2), p += 2;
    if (wg_has_min(type)) memcpy(p, &b->m, 2), p += 2;
    if (wg_is_sparse(type)) {
        wg_sparse_codes(b->code, p + 4, p);
        return;
    }
    if (wg_code_bits(type) != 8) {
        wg_put_nibbles(b->code, wg_code_bits(type), p);
        return;
    }
    for (int j = 0; j < 32; j++) p[j] = b->code[j] ^ 0x80;
}

/* Scale and minimum of run s. */
static inline float wg_block_scale(int type, const wg_block *b, int s)
{
    const float d = wg_wide_scale(type, b->d);
    return wg_is_k(type) ? d * (float)b->scale[s] : d;
}
static inline float wg_block_min(int type, const wg_block *b, int s)
{
    if (!wg_has_min(type)) return 0;
    const float m = wg_f16_to_f32(b->m);
    return wg_is_k(type) ? -(m * (float)b->min[s]) : m;
}

#endif
