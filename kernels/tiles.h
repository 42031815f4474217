/* SPDX-License-Identifier: MIT
 * The division of products into tiles of rows. Private to kernels/. */
#ifndef WG_KERNELS_TILES_H
#define WG_KERNELS_TILES_H

/* Tiles of at most `tall` rows that cover `rows`; the next of `tiles` tiles that cover `left` rows: nearly equal heights. */
static inline int wg_tiles(int rows, int tall) { return (rows + tall - 1) / tall; }
static inline int wg_tile_rows(int left, int tiles) { return (left + tiles - 1) / tiles; }

#endif
