/* SPDX-License-Identifier: MIT
 * Bytes of packed weights and prepared activations, for all levels; docs/kernels.md draws them. Private to kernels/. */
#ifndef WG_KERNELS_LAYOUT_H
#define WG_KERNELS_LAYOUT_H

#include "kernels/ops.h"

enum {
    WG_BLOCK = 32,        /* inputs (k) of a q8_0 block */
    WG_ACT_BLOCKS = 8,    /* blocks of an activation chunk: 256 inputs */
    WG_GROUP_ROWS = 64,   /* activation rows that lie together, chunk by chunk */
};

/* The bits of 1.5 * 2^23. An int32 sum that starts here is, read as a float, exactly 1.5 * 2^23 + sum while |sum| < 2^22. */
#define WG_MAGIC_BITS 0x4B400000
#define WG_MAGIC 12582912.0f

#define WG_ACT_CLAMP 0x1p110f /* inputs of q8_0 products are clamped to it, so that WG_MAGIC * da is finite */

/* 32 output rows x 32 inputs of q8_0: 17 cache lines. A step j is two 64-byte vectors of 16 rows x 4 inputs. */
typedef struct wg_q8_panel {
    uint16_t d[WG_PANEL];                 /* f16 scale of each row */
    uint8_t q[WG_BLOCK / 4][WG_PANEL][4]; /* value + 128 of input 4j + i */
} wg_q8_panel;

/* One row x 256 inputs. The last chunk of a row may be partly used. */
typedef struct wg_q8_act {
    int8_t q[WG_ACT_BLOCKS * WG_BLOCK];
    int32_t ini[WG_ACT_BLOCKS]; /* WG_MAGIC_BITS - 128 * sum(q): where the unsigned-by-signed sum starts */
    float da[WG_ACT_BLOCKS];
    float mda[WG_ACT_BLOCKS];   /* WG_MAGIC * da, exact because da has 16 significant bits */
} wg_q8_act;

static inline int wg_q8_blocks(int k) { return k / WG_BLOCK; }
static inline int wg_q8_chunks(int k) { return (wg_q8_blocks(k) + WG_ACT_BLOCKS - 1) / WG_ACT_BLOCKS; }
static inline int wg_panels(int n) { return (n + WG_PANEL - 1) / WG_PANEL; }

/* Rows of the group that row m lies in, of `rows` in all. */
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
