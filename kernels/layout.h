/* SPDX-License-Identifier: MIT
 * Bytes of packed weights and prepared activations, for all levels; docs/kernels.md draws them. Private to kernels/. */
#ifndef WG_KERNELS_LAYOUT_H
#define WG_KERNELS_LAYOUT_H

#include "kernels/quant_blocks.h"
#include "kernels/ops.h"
#include "kernels/q8.h"

enum {
    WG_QUANT_BLOCK = 32, /* inputs (k) of a block of a quantised type */
    WG_ACT_BLOCKS = 8,   /* blocks of an activation chunk: 256 inputs */
    WG_GROUP_ROWS = 64,  /* activation rows that are stored together, chunk by chunk */
};

/* The bits of 1.5 * 2^23. An int32 sum that starts here is, read as a float, exactly 1.5 * 2^23 + sum while |sum| < 2^22. */
#define WG_MAGIC_BITS 0x4B400000
#define WG_MAGIC 12582912.0f

/* A panel of a quantised type is a line of chunks of 8 blocks; a chunk has a head (K types), then its blocks. The last chunk
 * may have fewer blocks. All parts are whole cache lines:
 *   head    K types: f16 d[32]; with minima: f16 dmin[32]
 *   block   scales:  f16 d[32] (mxfp4: bf16; with minima f16 m[32] too), or s8 scale[parts][32], u8 min[parts][32] (K types;
 *                    parts: 2 where runs have 16 elements)
 *           high:    5 bits: u64 bit[8][2], bit 4 r + i of bit[j][h] is row 16 h + r, k = 4 j + i
 *                    6 bits: u8 two[2][32][4], bits 2 (j % 4).. of two[j / 4][r][i] are row r, k = 4 j + i
 *                    q8_2of4: u8 place[32][4], as in a file (types.h)
 *           codes:   8 bits: u8 q[8][32][4], q[j][r][i] is row r, k = 4 j + i
 *                    q8_2of4: s8 q[4][32][4], q[s][r][i] is code 4 s + i of row r
 *                    else:   u8 q[4][32][4], low half k = 4 j + i, high half k = 16 + 4 j + i */
WG_HD static inline int wg_head_bytes(int type) { return !wg_is_k(type) ? 0 : wg_has_min(type) ? 128 : 64; }
WG_HD static inline int wg_block_sums(int type) { return wg_run_of(type) < WG_QUANT_BLOCK ? 2 : 1; } /* parts of a block */
WG_HD static inline int wg_high_at(int type)
{
    return wg_has_min(type) && (!wg_is_k(type) || wg_block_sums(type) == 2) ? 128 : 64;
}
WG_HD static inline int wg_min_at(int type, int part) { return 32 * (wg_block_sums(type) + part); } /* of K types */
WG_HD static inline int wg_codes_at(int type)
{
    if (wg_is_sparse(type)) return wg_high_at(type) + 128;
    return wg_high_at(type) + (wg_code_bits(type) == 8 ? 0 : 128 * (wg_code_bits(type) - 4));
}
WG_HD static inline int wg_block_bytes(int type)
{
    return wg_codes_at(type) + (wg_code_bits(type) == 8 && !wg_is_sparse(type) ? 1024 : 512);
}

/* A panel of a float type is [k][32 outputs]; of f8_e4m3 a line of blocks of WG_F8_RUN inputs: f32 scale[32], then u8
 * code[WG_F8_RUN][32]. The bytes of its first k inputs (f8_e4m3: whole blocks). */
enum { WG_F8_HEAD = 4 * WG_PANEL };
WG_HD static inline int wg_float_size(int type) { return type == WG_F32 ? 4 : type == WG_F8_E4M3 ? 1 : 2; }
WG_HD static inline size_t wg_float_at(int type, int k)
{
    return (size_t)k * WG_PANEL * (size_t)wg_float_size(type) + (type == WG_F8_E4M3 ? (size_t)(k / WG_F8_RUN) * WG_F8_HEAD : 0);
}

/* One row x 256 inputs. The last chunk of a row may be partly used. */
typedef struct wg_q8_act {
    int8_t q[WG_ACT_BLOCKS * WG_QUANT_BLOCK];
    int32_t ini[WG_ACT_BLOCKS]; /* WG_MAGIC_BITS - 128 * sum: where the unsigned-by-signed sum of q8_0 starts */
    float da[WG_ACT_BLOCKS];
    float mda[WG_ACT_BLOCKS];                       /* WG_MAGIC * da, exact because da has 16 significant bits */
    float das[WG_ACT_BLOCKS];                       /* da * sum: what minima are multiplied with */
    int32_t sum[WG_ACT_BLOCKS], low[WG_ACT_BLOCKS]; /* of q, all 32 and the first 16 */
} wg_q8_act;

/* The sum of the inputs of a part of a block; da times it is what the part's minimum is multiplied with. */
static inline int32_t wg_act_sum(int type, const wg_q8_act *a, int b, int part)
{
    return wg_block_sums(type) == 1 ? a->sum[b] : part ? a->sum[b] - a->low[b] : a->low[b];
}
static inline float wg_act_das(int type, const wg_q8_act *a, int b, int part)
{
    return wg_block_sums(type) == 1 ? a->das[b] : a->da[b] * (float)wg_act_sum(type, a, b, part);
}

/* The start of the sum of part 0 or 1 of a block. */
static inline int32_t wg_act_start(int type, const wg_q8_act *a, int b, int part)
{
    if (wg_is_sparse(type)) return WG_MAGIC_BITS; /* its codes are signed */
    if (wg_code_zero(type) == 128 && wg_block_sums(type) == 1) return a->ini[b];
    return WG_MAGIC_BITS - wg_code_zero(type) * wg_act_sum(type, a, b, part);
}

WG_HD static inline int wg_blocks(int k) { return k / WG_QUANT_BLOCK; }
WG_HD static inline int wg_chunks(int k) { return (wg_blocks(k) + WG_ACT_BLOCKS - 1) / WG_ACT_BLOCKS; }
WG_HD static inline size_t wg_chunk_bytes(int type)
{
    return (size_t)wg_head_bytes(type) + (size_t)WG_ACT_BLOCKS * (size_t)wg_block_bytes(type);
}
WG_HD static inline size_t wg_panel_bytes(int type, int k)
{
    return (size_t)wg_chunks(k) * (size_t)wg_head_bytes(type) + (size_t)wg_blocks(k) * (size_t)wg_block_bytes(type);
}

/* The offset of block b of a panel, and of the head of its chunk. */
WG_HD static inline size_t wg_head_of(int type, int b) { return (size_t)(b / WG_ACT_BLOCKS) * wg_chunk_bytes(type); }
WG_HD static inline size_t wg_block_of(int type, int b)
{
    return wg_head_of(type, b) + (size_t)wg_head_bytes(type) + (size_t)(b % WG_ACT_BLOCKS) * (size_t)wg_block_bytes(type);
}

static inline int wg_panels(int n) { return (n + WG_PANEL - 1) / WG_PANEL; }

/* The rows of the group of row m, of `rows` in all. */
static inline int wg_group_rows(int rows, int m)
{
    const int left = rows - m / WG_GROUP_ROWS * WG_GROUP_ROWS;
    return left < WG_GROUP_ROWS ? left : WG_GROUP_ROWS;
}

/* Chunk 0 of row m: groups of 64 rows, in a group [chunk][row]. Chunk c follows c * wg_group_rows(rows, m) structs later. */
static inline size_t wg_q8_act_at(int m, int chunks)
{
    const int first = m / WG_GROUP_ROWS * WG_GROUP_ROWS;
    return (size_t)first * (size_t)chunks + (size_t)(m - first);
}

#endif
