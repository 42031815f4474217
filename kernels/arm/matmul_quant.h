/* SPDX-License-Identifier: MIT
 * Products with quantised weights, one text for both levels: the file that includes it has defined
 *     int32x4_t dot_codes(bits, steps, code, q, sum)    sum += the dots of 4 outputs' codes with `steps` times 4 inputs at q
 * code[j]: 4 outputs x 4 inputs as signed bytes. A vector of a packed step is that already, so every weight is loaded once and
 * unpacked once for a tile of up to 4 rows. Integer sums stay in registers, float sums of the tile in L1.
 * Codes are taken without their zero where they have one: sums start at -zero times the sum of the inputs (q8_0's bytes and
 * tables are made signed instead, and start at 0). Integer sums are exact, so all of it is the reference's integer. */
#ifndef WG_KERNELS_ARM_MATMUL_QUANT_H
#define WG_KERNELS_ARM_MATMUL_QUANT_H

#include "kernels/arm/matmul_arm.h"
#include "kernels/layout.h"
#include "kernels/tiles.h"

enum {
    TALL = 4,
    VECTORS = WG_PANEL / 4,
    STEPS = WG_QUANT_BLOCK / 4,
    PANEL_BLOCK = 8, /* panels that stay in L2 while all groups of 64 rows pass */
    NEAR = 4352,     /* distance of prefetches, bytes */
};

/* Those of a sparse block: code i of a four goes to the byte of its place. */
INLINE void sparse_codes(const uint8_t *place, const uint8_t *q, int8x16_t code[STEPS])
{
    static const uint8_t spread[4][16] = {
        { 0, 0, 0, 0, 4, 4, 4, 4, 8, 8, 8, 8, 12, 12, 12, 12 },
        { 1, 1, 1, 1, 5, 5, 5, 5, 9, 9, 9, 9, 13, 13, 13, 13 },
        { 2, 2, 2, 2, 6, 6, 6, 6, 10, 10, 10, 10, 14, 14, 14, 14 },
        { 3, 3, 3, 3, 7, 7, 7, 7, 11, 11, 11, 11, 15, 15, 15, 15 },
    };
    const uint8x16_t here = vreinterpretq_u8_u32(vdupq_n_u32(0x03020100u)), places = vld1q_u8(place);
    UNROLL_FOR(int j = 0; j < STEPS; j++) {
        const uint8x16_t both = vld1q_u8(q + 128 * (j / 2)),
                         two = vandq_u8(vshlq_u8(places, vdupq_n_s8(-(j & 6))), vdupq_n_u8(3));
        uint8x16_t v = vdupq_n_u8(0);
        UNROLL_FOR(int i = 2 * (j % 2); i < 2 * (j % 2) + 2; i++) {
            const uint8x16_t to = vld1q_u8(spread[i]);
            v = vorrq_u8(v, vandq_u8(vceqq_u8(vqtbl1q_u8(two, to), here), vqtbl1q_u8(both, to)));
        }
        code[j] = vreinterpretq_s8_u8(v);
    }
}

/* Codes of a block of 4 outputs from row r on: code[j] are inputs 4 j .. 4 j + 3. */
INLINE void codes(const int type, const uint8_t *block, int r, int8x16_t code[STEPS])
{
    const int bits = wg_code_bits(type);
    const uint8_t *at = block + wg_codes_at(type) + 4 * r, *high = block + wg_high_at(type);
    if (wg_is_sparse(type)) {
        sparse_codes(high + 4 * r, at, code);
        return;
    }
    uint8x16_t v[STEPS];
    UNROLL_FOR(int j = 0; j < STEPS; j += bits == 8 ? 1 : 2) {
        if (bits == 8) {
            v[j] = veorq_u8(vld1q_u8(at + 128 * j), vdupq_n_u8(0x80));
        } else {
            const uint8x16_t two = vld1q_u8(at + 128 * (j / 2));
            v[j / 2] = vandq_u8(two, vdupq_n_u8(15));
            v[j / 2 + STEPS / 2] = vshrq_n_u8(two, 4);
        }
    }
    if (wg_has_table(type)) {
        const uint8x16_t table = veorq_u8(vld1q_u8(wg_table_of(type)), vdupq_n_u8(0x80));
        UNROLL_FOR(int j = 0; j < STEPS; j++) v[j] = vqtbl1q_u8(table, v[j]);
    }
    if (bits == 5) { /* byte i of the vector tests bit i of 16 */
        const uint8x16_t bit = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201ull));
        UNROLL_FOR(int j = 0; j < STEPS; j++) {
            const uint8_t *from = high + 16 * j + r / 2;
            const uint8x16_t word = vcombine_u8(vld1_dup_u8(from), vld1_dup_u8(from + 1));
            v[j] = vorrq_u8(v[j], vandq_u8(vtstq_u8(word, bit), vdupq_n_u8(16)));
        }
    }
    if (bits == 6)
        UNROLL_FOR(int j = 0; j < STEPS; j++) {
            const uint8x16_t pairs = vld1q_u8(high + 128 * (j / 4) + 4 * r);
            const uint8x16_t moved = j % 4 == 0   ? vshlq_n_u8(pairs, 4)
                                     : j % 4 == 1 ? vshlq_n_u8(pairs, 2)
                                     : j % 4 == 2 ? pairs
                                                  : vshrq_n_u8(pairs, 2);
            v[j] = vorrq_u8(v[j], vandq_u8(moved, vdupq_n_u8(0x30)));
        }
    UNROLL_FOR(int j = 0; j < STEPS; j++) code[j] = vreinterpretq_s8_u8(v[j]);
}

/* The start of the integer sum of a part. */
INLINE int32_t start(const int type, const wg_q8_act *a, int b, const int part)
{
    return wg_code_zero(type) == 128 ? 0 : -wg_code_zero(type) * wg_act_sum(type, a, b, part);
}

INLINE float32x4_t halves(const uint8_t *p) { return v_load(WG_F16, p); }
INLINE float32x4_t bytes(const uint8_t *p)
{
    int32_t four;
    memcpy(&four, p, 4);
    return vcvtq_f32_s32(vmovl_s16(vget_low_s16(vmovl_s8(vreinterpret_s8_s32(vdup_n_s32(four))))));
}

/* Scales and minima of a part (minima of K types as they are stored: they are subtracted), of 4 outputs from row r on. */
INLINE float32x4_t scales(const int type, const uint8_t *head, const uint8_t *block, const int part, int r)
{
    if (wg_scale_is_bf16(type)) return v_load(WG_BF16, block + 2 * r);
    if (!wg_is_k(type)) return halves(block + 2 * r);
    const float32x4_t wide = vmulq_f32(halves(head + 2 * r), bytes(block + 32 * part + r));
    return wg_scale_unit(type) == 1 ? wide : vmulq_n_f32(wide, wg_scale_unit(type));
}
INLINE float32x4_t minima(const int type, const uint8_t *head, const uint8_t *block, const int part, int r)
{
    if (!wg_is_k(type)) return halves(block + 64 + 2 * r);
    return vmulq_f32(halves(head + 64 + 2 * r), bytes(block + wg_min_at(type, part) + r));
}

/* T rows x a panel x `blocks` blocks. acc: (T, 32). */
INLINE void quant_tile(const int type, const int T, const uint8_t *chunk, const wg_q8_act *a, int blocks, float *acc)
{
    const int parts = wg_block_sums(type), steps = STEPS / parts, bits = wg_code_zero(type) == 128 ? 8 : wg_code_bits(type);
    for (int b = 0; b < blocks; b++) {
        const uint8_t *w = chunk + wg_head_bytes(type) + (size_t)b * (size_t)wg_block_bytes(type);
        for (int l = 0; l < wg_block_bytes(type); l += 64) __builtin_prefetch(w + NEAR + l);
        for (int i = 0; i < VECTORS; i++) {
            int8x16_t code[STEPS];
            float32x4_t sum[TALL];
            codes(type, w, 4 * i, code);
            UNROLL_FOR(int m = 0; m < T; m++) sum[m] = vld1q_f32(acc + WG_PANEL * m + 4 * i);
            UNROLL_FOR(int part = 0; part < parts; part++) {
                const float32x4_t d = scales(type, chunk, w, part, 4 * i);
                UNROLL_FOR(int m = 0; m < T; m++) {
                    const int8_t *inputs = a[m].q + WG_QUANT_BLOCK * b + 4 * steps * part;
                    const int32x4_t first = vdupq_n_s32(start(type, a + m, b, part));
                    const int32x4_t dot = dot_codes(bits, steps, code + steps * part, inputs, first);
                    sum[m] = vfmaq_f32(sum[m], vmulq_n_f32(vcvtq_f32_s32(dot), a[m].da[b]), d);
                }
            }
            if (wg_has_min(type))
                UNROLL_FOR(int part = 0; part < parts; part++) {
                    const float32x4_t least = minima(type, chunk, w, part, 4 * i);
                    UNROLL_FOR(int m = 0; m < T; m++) {
                        const float das = wg_act_das(type, a + m, b, part);
                        sum[m] = wg_is_k(type) ? vfmsq_n_f32(sum[m], least, das) : vfmaq_n_f32(sum[m], least, das);
                    }
                }
            UNROLL_FOR(int m = 0; m < T; m++) vst1q_f32(acc + WG_PANEL * m + 4 * i, sum[m]);
        }
    }
}

typedef void tile_fn(const uint8_t *chunk, const wg_q8_act *a, int blocks, float *acc);

#define TILE(name, type, T)                                                                                                    \
    static void name##_##T(const uint8_t *chunk, const wg_q8_act *a, int blocks, float *acc)                                   \
    {                                                                                                                          \
        quant_tile(type, T, chunk, a, blocks, acc);                                                                            \
    }
#define TILE_TABLE(name, type)                                                                                                 \
    TILE(name, type, 1)                                                                                                        \
    TILE(name, type, 2)                                                                                                        \
    TILE(name, type, 3)                                                                                                        \
    TILE(name, type, 4)                                                                                                        \
    static tile_fn *const name[TALL + 1] = { 0, name##_1, name##_2, name##_3, name##_4 };
#define TYPE(id, name, ...) TILE_TABLE(name, WG_##id)
WG_QUANT_TYPES(TYPE)
#undef TYPE

static tile_fn *const *tiles_of(int type)
{
    switch (type) {
#define TYPE(id, name, ...)                                                                                                    \
    case WG_##id: return name;
        WG_QUANT_TYPES(TYPE)
#undef TYPE
    default: return NULL;
    }
}

/* Panels [p0,p1) x one group of rows. */
static void group(const wg_matrix *w, const wg_q8_act *act, int rows, float *y, size_t ldy, int p0, int p1)
{
    _Alignas(64) float acc[WG_GROUP_ROWS * WG_PANEL];
    tile_fn *const *tile = tiles_of(w->type);
    const int blocks = wg_blocks(w->k), tiles = wg_tiles(rows, TALL);
    for (int p = p0; p < p1; p++) {
        const uint8_t *panel = (const uint8_t *)w->data + (size_t)p * wg_panel_bytes(w->type, w->k);
        memset(acc, 0, (size_t)rows * WG_PANEL * sizeof *acc);
        for (int b = 0, n; b < blocks; b += n) { /* a chunk stays in L1 while all tiles use it */
            const wg_q8_act *a = act + (size_t)(b / WG_ACT_BLOCKS) * (size_t)rows;
            n = blocks - b < WG_ACT_BLOCKS ? blocks - b : WG_ACT_BLOCKS;
            for (int m = 0, t = 0, T; m < rows; m += T, t++) {
                T = wg_tile_rows(rows - m, tiles - t);
                tile[T](panel + wg_head_of(w->type, b), a + m, n, acc + WG_PANEL * m);
            }
        }
        const int n0 = p * WG_PANEL, n = w->n - n0 < WG_PANEL ? w->n - n0 : WG_PANEL;
        for (int m = 0; m < rows; m++) memcpy(y + (size_t)m * ldy + n0, acc + WG_PANEL * m, (size_t)n * sizeof *y);
    }
}

/* The op of both levels. */
INLINE void matmul(const wg_matrix *w, const void *act, int rows, float *y, size_t ldy, int p0, int p1)
{
    if (!wg_is_quantised(w->type)) {
        wg_matmul_float_neon(w, act, rows, y, ldy, p0, p1);
        return;
    }
    const int step = rows > WG_GROUP_ROWS ? PANEL_BLOCK : p1 - p0, chunks = wg_chunks(w->k);
    for (int p = p0; p < p1; p += step)
        for (int m = 0; m < rows; m += WG_GROUP_ROWS)
            group(w, (const wg_q8_act *)act + wg_q8_act_at(m, chunks), wg_group_rows(rows, m), y + (size_t)m * ldy, ldy, p,
                  p + step < p1 ? p + step : p1);
}

#endif
