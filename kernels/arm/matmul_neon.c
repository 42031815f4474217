/* SPDX-License-Identifier: MIT
 * Products with f32, f16, bf16 and f8_e4m3 weights on 4-lane registers: the plan of kernels/x86/matmul_avx512.c with 8
 * vectors a panel and tiles of at most 3 rows (24 of the 32 registers are sums). One row has the 8 chains of fmas that hide
 * their latency. */
#include "kernels/arm/neon.h"

#include "kernels/arm/matmul_arm.h"
#include "kernels/layout.h"
#include "kernels/tiles.h"
#include "kernels/variants.h"

enum {
    TALL = 3,
    VECTORS = WG_PANEL / 4,
    CHUNK_BYTES = 16384,         /* of a panel, when tiles take turns */
    NEAR = 4096,                 /* distance of prefetches, bytes */
    PANEL_BLOCK_BYTES = 1 << 18, /* panels that stay in L2 while all groups of rows pass */
};

INLINE void add_products(const int type, const int T, const char *w, const float *x, size_t ldx, int k,
                         float32x4_t sum[TALL][VECTORS])
{
    const int size = wg_float_size(type), lines = (size + 1) / 2; /* of 32 elements; f8_e4m3 prefetches its half line twice */
    for (int j = 0; j < k; j++, w += WG_PANEL * size) {
        UNROLL_FOR(int l = 0; l < lines; l++) __builtin_prefetch(w + NEAR + 64 * l);
        float b[TALL];
        UNROLL_FOR(int m = 0; m < T; m++) b[m] = x[(size_t)m * ldx + (size_t)j];
        UNROLL_FOR(int i = 0; i < VECTORS; i++) {
            const float32x4_t v = v_load(type, w + 4 * i * size);
            UNROLL_FOR(int m = 0; m < T; m++) sum[m][i] = vfmaq_n_f32(sum[m][i], v, b[m]);
        }
    }
}

/* A panel x T rows into s (T, 32): the sums so far, updated. */
INLINE void float_tile(const int type, const int T, const char *w, const float *x, size_t ldx, int k, float *s)
{
    float32x4_t sum[TALL][VECTORS];
    UNROLL_FOR(int m = 0; m < T; m++)
        UNROLL_FOR(int i = 0; i < VECTORS; i++) sum[m][i] = vld1q_f32(s + WG_PANEL * m + 4 * i);
    add_products(type, T, w, x, ldx, k, sum);
    UNROLL_FOR(int m = 0; m < T; m++)
        UNROLL_FOR(int i = 0; i < VECTORS; i++) vst1q_f32(s + WG_PANEL * m + 4 * i, sum[m][i]);
}

/* As float_tile, for f8_e4m3: the sums of a block start at 0 and are added to s times its scale. */
INLINE void f8_tile(const int T, const char *w, const float *x, size_t ldx, int k, float *s)
{
    for (int b = 0; b < k; b += WG_F8_RUN, w += wg_float_at(WG_F8_E4M3, WG_F8_RUN)) {
        float32x4_t sum[TALL][VECTORS];
        UNROLL_FOR(int m = 0; m < T; m++)
            UNROLL_FOR(int i = 0; i < VECTORS; i++) sum[m][i] = vdupq_n_f32(0);
        add_products(WG_F8_E4M3, T, w + WG_F8_HEAD, x + b, ldx, WG_F8_RUN, sum);
        UNROLL_FOR(int i = 0; i < VECTORS; i++) {
            const float32x4_t scale = v_load(WG_F32, w + 16 * i);
            UNROLL_FOR(int m = 0; m < T; m++) {
                float *to = s + WG_PANEL * m + 4 * i;
                vst1q_f32(to, vfmaq_f32(vld1q_f32(to), scale, sum[m][i]));
            }
        }
    }
}

typedef void tile_fn(const char *w, const float *x, size_t ldx, int k, float *s);

#define TILE(name, type, T)                                                                                                    \
    static void name##_##T(const char *w, const float *x, size_t ldx, int k, float *s)                                         \
    {                                                                                                                          \
        if (type == WG_F8_E4M3) f8_tile(T, w, x, ldx, k, s);                                                                   \
        else float_tile(type, T, w, x, ldx, k, s);                                                                             \
    }
#define TILE_TABLE(name, type)                                                                                                 \
    TILE(name, type, 1)                                                                                                        \
    TILE(name, type, 2)                                                                                                        \
    TILE(name, type, 3)                                                                                                        \
    static tile_fn *const name[TALL + 1] = { 0, name##_1, name##_2, name##_3 };
TILE_TABLE(f32, WG_F32)
TILE_TABLE(f16, WG_F16)
TILE_TABLE(bf16, WG_BF16)
TILE_TABLE(f8, WG_F8_E4M3)

/* Panels [p0,p1) x one group of rows of x. */
static void group(const wg_matrix *w, tile_fn *const *tile, const float *x, int rows, float *y, size_t ldy, int p0, int p1)
{
    _Alignas(64) float acc[WG_GROUP_ROWS * WG_PANEL];
    const int tiles = wg_tiles(rows, TALL), K = w->k;
    const int step = tiles > 1 ? CHUNK_BYTES / (WG_PANEL * wg_float_size(w->type)) : K; /* whole blocks of f8_e4m3 */
    for (int p = p0; p < p1; p++) {
        const char *panel = (const char *)w->data + (size_t)p * wg_float_at(w->type, K);
        memset(acc, 0, (size_t)rows * WG_PANEL * sizeof *acc);
        for (int k = 0; k < K; k += step)
            for (int m = 0, t = 0, T; m < rows; m += T, t++) {
                T = wg_tile_rows(rows - m, tiles - t);
                tile[T](panel + wg_float_at(w->type, k), x + (size_t)m * (size_t)K + k, (size_t)K, K - k < step ? K - k : step,
                        acc + WG_PANEL * m);
            }
        const int n0 = p * WG_PANEL, n = w->n - n0 < WG_PANEL ? w->n - n0 : WG_PANEL;
        for (int m = 0; m < rows; m++) memcpy(y + (size_t)m * ldy + n0, acc + WG_PANEL * m, (size_t)n * sizeof *y);
    }
}

void wg_matmul_float_neon(const wg_matrix *w, const void *act, int rows, float *y, size_t ldy, int p0, int p1)
{
    tile_fn *const *tile = w->type == WG_F32 ? f32 : w->type == WG_F16 ? f16 : w->type == WG_BF16 ? bf16 : f8;
    const int fit = (int)(PANEL_BLOCK_BYTES / wg_float_at(w->type, w->k)) + 1;
    const int step = rows > WG_GROUP_ROWS ? fit : p1 - p0;
    for (int p = p0; p < p1; p += step)
        for (int m = 0; m < rows; m += WG_GROUP_ROWS)
            group(w, tile, (const float *)act + (size_t)m * (size_t)w->k, wg_group_rows(rows, m), y + (size_t)m * ldy, ldy, p,
                  p + step < p1 ? p + step : p1);
}
