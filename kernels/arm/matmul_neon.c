/* SPDX-License-Identifier: MIT
 * Products with f32, f16 and bf16 weights on 4-lane registers: the plan of x86/matmul_avx512.c with 8 vectors a panel and tiles
 * of at most 3 rows (24 of the 32 registers are sums). One row has the 8 chains of fmas that hide their latency. */
#include "kernels/arm/neon.h"

#include "kernels/arm/matmul.h"
#include "kernels/layout.h"
#include "kernels/tiles.h"
#include "kernels/variants.h"

enum {
    TALL = 3,
    VECTORS = WG_PANEL / 4,
    CHUNK_BYTES = 16384,         /* of a panel, when tiles take turns */
    NEAR = 4096,                 /* asked for ahead */
    PANEL_BLOCK_BYTES = 1 << 18, /* panels that stay in L2 while all groups of rows pass */
};

/* A panel x T rows into s (T, 32): the sums so far, updated. */
INLINE void float_tile(const int type, const int T, const char *w, const float *x, size_t ldx, int k, float *s)
{
    const int size = type == WG_F32 ? 4 : 2;
    float32x4_t sum[TALL][VECTORS];
    UNROLL for (int m = 0; m < T; m++)
        UNROLL for (int i = 0; i < VECTORS; i++) sum[m][i] = vld1q_f32(s + WG_PANEL * m + 4 * i);
    for (int j = 0; j < k; j++, w += WG_PANEL * size) {
        UNROLL for (int l = 0; l < size / 2; l++) __builtin_prefetch(w + NEAR + 64 * l);
        float b[TALL];
        UNROLL for (int m = 0; m < T; m++) b[m] = x[(size_t)m * ldx + (size_t)j];
        UNROLL for (int i = 0; i < VECTORS; i++) {
            const float32x4_t v = load4(type, w + 4 * i * size);
            UNROLL for (int m = 0; m < T; m++) sum[m][i] = vfmaq_n_f32(sum[m][i], v, b[m]);
        }
    }
    UNROLL for (int m = 0; m < T; m++)
        UNROLL for (int i = 0; i < VECTORS; i++) vst1q_f32(s + WG_PANEL * m + 4 * i, sum[m][i]);
}

typedef void tile_fn(const char *w, const float *x, size_t ldx, int k, float *s);

#define TILE(name, type, T)                                                                                                 \
    static void name##_##T(const char *w, const float *x, size_t ldx, int k, float *s)                                      \
    {                                                                                                                       \
        float_tile(type, T, w, x, ldx, k, s);                                                                               \
    }
#define TILES(name, type)                                                                                                   \
    TILE(name, type, 1) TILE(name, type, 2) TILE(name, type, 3)                                                             \
    static tile_fn *const name[TALL + 1] = { 0, name##_1, name##_2, name##_3 };
TILES(f32, WG_F32)
TILES(f16, WG_F16)
TILES(bf16, WG_BF16)

/* Panels [p0,p1) x one group of rows of x. */
static void group(const wg_matrix *w, tile_fn *const *tile, int size, const float *x, int rows, float *y, size_t ldy, int p0,
                  int p1)
{
    _Alignas(64) float acc[WG_GROUP_ROWS * WG_PANEL];
    const int tiles = wg_tiles(rows, TALL), K = w->k, step = tiles > 1 ? CHUNK_BYTES / (WG_PANEL * size) : K;
    for (int p = p0; p < p1; p++) {
        const char *panel = (const char *)w->data + (size_t)p * (size_t)K * WG_PANEL * (size_t)size;
        memset(acc, 0, (size_t)rows * WG_PANEL * sizeof *acc);
        for (int k = 0; k < K; k += step)
            for (int m = 0, t = 0, T; m < rows; m += T, t++) {
                T = wg_tile_rows(rows - m, tiles - t);
                tile[T](panel + (size_t)k * WG_PANEL * (size_t)size, x + (size_t)m * (size_t)K + k, (size_t)K,
                        K - k < step ? K - k : step, acc + WG_PANEL * m);
            }
        const int n0 = p * WG_PANEL, n = w->n - n0 < WG_PANEL ? w->n - n0 : WG_PANEL;
        for (int m = 0; m < rows; m++) memcpy(y + (size_t)m * ldy + n0, acc + WG_PANEL * m, (size_t)n * sizeof *y);
    }
}

void wg_matmul_float_neon(const wg_matrix *w, const void *act, int rows, float *y, size_t ldy, int p0, int p1)
{
    const int size = w->type == WG_F32 ? 4 : 2;
    tile_fn *const *tile = w->type == WG_F32 ? f32 : w->type == WG_F16 ? f16 : bf16;
    const int fit = (int)(PANEL_BLOCK_BYTES / ((size_t)w->k * WG_PANEL * (size_t)size)) + 1;
    const int step = rows > WG_GROUP_ROWS ? fit : p1 - p0;
    for (int p = p0; p < p1; p += step)
        for (int m = 0; m < rows; m += WG_GROUP_ROWS)
            group(w, tile, size, (const float *)act + (size_t)m * (size_t)w->k, wg_group_rows(rows, m), y + (size_t)m * ldy,
                  ldy, p, p + step < p1 ? p + step : p1);
}
