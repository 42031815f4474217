/* SPDX-License-Identifier: MIT
 * How products are cut into tiles of rows, and the parts of the matmul ops. Private to kernels/x86. */
#ifndef WG_KERNELS_X86_MATMUL_H
#define WG_KERNELS_X86_MATMUL_H

#include "kernels/ops.h"

/* Tiles of at most `tall` rows that cover `rows`; the next of `tiles` tiles that cover `left` rows: nearly equal heights. */
static inline int wg_tiles(int rows, int tall) { return (rows + tall - 1) / tall; }
static inline int wg_tile_rows(int left, int tiles) { return (left + tiles - 1) / tiles; }

void wg_matmul_quant_avx512(const wg_matrix *w, const void *act, int rows, float *y, size_t ldy, int p0, int p1);
void wg_matmul_quant_avx2(const wg_matrix *w, const void *act, int rows, float *y, size_t ldy, int p0, int p1);

#endif
