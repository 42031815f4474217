/* SPDX-License-Identifier: MIT
 * The parts of the matmul ops. Private to kernels/x86. */
#ifndef WG_KERNELS_X86_MATMUL_X86_H
#define WG_KERNELS_X86_MATMUL_X86_H

#include "kernels/layout.h"
#include "kernels/tiles.h"

/* What a tile of float weights multiplies. w: chunk of the first panel; panel: bytes between panels; x: (rows, ldx); k:
 * products of a sum. */
typedef struct wg_tile_inputs {
    const char *w;
    size_t panel;
    const float *x;
    size_t ldx;
    int k;
} wg_tile_inputs;

/* Bytes and lines of a quantised block with its share of the chunk's head. */
INLINE int share_bytes(const int type) { return wg_block_bytes(type) + wg_head_bytes(type) / WG_ACT_BLOCKS; }
INLINE int share_lines(const int type) { return (share_bytes(type) + 63) / 64; }

void wg_matmul_quant_avx512(const wg_matrix *w, const void *act, int rows, float *y, size_t ldy, int p0, int p1);
void wg_matmul_many_avx512(const wg_matrix *w, const wg_q8_act *act, int rows, float *y, size_t ldy, int p0, int p1);
void wg_matmul_quant_avx2(const wg_matrix *w, const void *act, int rows, float *y, size_t ldy, int p0, int p1);

#endif
