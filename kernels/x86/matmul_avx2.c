/* SPDX-License-Identifier: MIT
 * Products with f32, f16, bf16 and f8_e4m3 weights on 8-lane registers: the plan of matmul_avx512.c with 4 vectors a panel and
 * tiles of at most 3 rows (12 sums). One row takes two panels at a time, so that 8 chains of fmas hide their latency. */
#include "kernels/x86/avx2.h"

#include "kernels/layout.h"
#include "kernels/variants.h"
#include "kernels/x86/matmul_x86.h"

enum {
    TALL = 3,
    VECTORS = WG_PANEL / 8,
    CHUNK_BYTES = 16384, /* of a panel, when several tiles alternate */
    PREFETCH_ROWS = 2,   /* one row loads so often that the hardware prefetcher keeps up */
    NEAR = 4096,         /* distances of prefetches, into L1 and into L2 */
    FAR = 32768,
    PANEL_BLOCK_BYTES = 1 << 18, /* panels that stay in L2 while all groups of rows pass */
};

INLINE void add_products(const int type, const int P, const int T, const wg_tile_inputs *in, __m256 sum[TALL][2 * VECTORS])
{
    const char *w = in->w;
    const float *x = in->x;
    const size_t panel = in->panel, ldx = in->ldx;
    const int k = in->k;
    const int size = wg_float_size(type), lines = (size + 1) / 2; /* of 32 elements; f8_e4m3 prefetches its half line twice */
    for (int j = 0; j < k; j++, w += WG_PANEL * size) {
        __m256 b[TALL];
        if (T >= PREFETCH_ROWS)
            UNROLL_FOR(int l = 0; l < lines; l++) {
                _mm_prefetch(w + NEAR + 64 * l, _MM_HINT_T0);
                _mm_prefetch(w + FAR + 64 * l, _MM_HINT_T1);
            }
        UNROLL_FOR(int m = 0; m < T; m++) b[m] = _mm256_set1_ps(x[(size_t)m * ldx + (size_t)j]);
        UNROLL_FOR(int i = 0; i < P * VECTORS; i++) {
            const __m256 v = v_load(type, w + (size_t)(i / VECTORS) * panel + i % VECTORS * 8 * size);
            UNROLL_FOR(int m = 0; m < T; m++) sum[m][i] = _mm256_fmadd_ps(v, b[m], sum[m][i]);
        }
    }
}

/* P panels x T rows into s (T rows, 32 P floats apart): the sums so far, updated. */
INLINE void float_tile(const int type, const int P, const int T, const wg_tile_inputs *in, float *s)
{
    __m256 sum[TALL][2 * VECTORS];
    UNROLL_FOR(int m = 0; m < T; m++)
        UNROLL_FOR(int i = 0; i < P * VECTORS; i++) sum[m][i] = _mm256_load_ps(s + WG_PANEL * P * m + 8 * i);
    add_products(type, P, T, in, sum);
    UNROLL_FOR(int m = 0; m < T; m++)
        UNROLL_FOR(int i = 0; i < P * VECTORS; i++) _mm256_store_ps(s + WG_PANEL * P * m + 8 * i, sum[m][i]);
}

/* As float_tile, for f8_e4m3: the sums of a block start at 0 and are added to s times its scale. */
INLINE void f8_tile(const int P, const int T, const wg_tile_inputs *in, float *s)
{
    const char *w = in->w;
    for (int b = 0; b < in->k; b += WG_F8_RUN, w += wg_float_at(WG_F8_E4M3, WG_F8_RUN)) {
        const wg_tile_inputs block = {
            .w = w + WG_F8_HEAD, .panel = in->panel, .x = in->x + b, .ldx = in->ldx, .k = WG_F8_RUN
        };
        __m256 sum[TALL][2 * VECTORS];
        UNROLL_FOR(int m = 0; m < T; m++)
            UNROLL_FOR(int i = 0; i < P * VECTORS; i++) sum[m][i] = _mm256_setzero_ps();
        add_products(WG_F8_E4M3, P, T, &block, sum);
        UNROLL_FOR(int i = 0; i < P * VECTORS; i++) {
            const __m256 scale = _mm256_loadu_ps((const float *)(w + (size_t)(i / VECTORS) * in->panel) + i % VECTORS * 8);
            UNROLL_FOR(int m = 0; m < T; m++) {
                float *to = s + WG_PANEL * P * m + 8 * i;
                _mm256_store_ps(to, _mm256_fmadd_ps(scale, sum[m][i], _mm256_load_ps(to)));
            }
        }
    }
}

typedef void tile_fn(const wg_tile_inputs *in, float *s);

#define TILE(name, type, P, T)                                                                                                 \
    static void name##_##P##_##T(const wg_tile_inputs *in, float *s)                                                           \
    {                                                                                                                          \
        if (type == WG_F8_E4M3) f8_tile(P, T, in, s);                                                                          \
        else float_tile(type, P, T, in, s);                                                                                    \
    }
#define TILE_TABLE(name, type)                                                                                                 \
    TILE(name, type, 2, 1)                                                                                                     \
    TILE(name, type, 1, 1)                                                                                                     \
    TILE(name, type, 1, 2)                                                                                                     \
    TILE(name, type, 1, 3)                                                                                                     \
    static tile_fn *const name[TALL + 1] = { name##_2_1, name##_1_1, name##_1_2, name##_1_3 }; /* 0: two panels, one row */
TILE_TABLE(f32, WG_F32)
TILE_TABLE(f16, WG_F16)
TILE_TABLE(bf16, WG_BF16)
TILE_TABLE(f8, WG_F8_E4M3)

/* Panels [p0,p1) x one group of rows of x. */
static void group(const wg_matrix *w, tile_fn *const *table, const float *x, int rows, float *y, size_t ldy, int p0, int p1)
{
    _Alignas(64) float acc[WG_GROUP_ROWS * WG_PANEL];
    const int tiles = wg_tiles(rows, TALL), K = w->k;
    const int step = tiles > 1 ? CHUNK_BYTES / (WG_PANEL * wg_float_size(w->type)) : K; /* whole blocks of f8_e4m3 */
    const size_t panel = wg_float_at(w->type, K);
    for (int p = p0, wd; p < p1; p += wd) {
        const char *from = (const char *)w->data + (size_t)p * panel;
        wd = rows == 1 && p1 - p >= 2 ? 2 : 1;
        memset(acc, 0, (size_t)rows * WG_PANEL * (size_t)wd * sizeof *acc);
        for (int k = 0; k < K; k += step)
            for (int m = 0, t = 0, T; m < rows; m += T, t++) {
                T = wg_tile_rows(rows - m, tiles - t);
                const wg_tile_inputs in = { .w = from + wg_float_at(w->type, k),
                                            .panel = panel,
                                            .x = x + (size_t)m * (size_t)K + k,
                                            .ldx = (size_t)K,
                                            .k = K - k < step ? K - k : step };
                table[wd == 2 ? 0 : T](&in, acc + WG_PANEL * m);
            }
        const int n0 = p * WG_PANEL, n = w->n - n0 < WG_PANEL * wd ? w->n - n0 : WG_PANEL * wd;
        for (int m = 0; m < rows; m++) memcpy(y + (size_t)m * ldy + n0, acc + WG_PANEL * m, (size_t)n * sizeof *y);
    }
}

void wg_matmul_avx2(const wg_matrix *w, const void *act, int rows, float *y, size_t ldy, int p0, int p1)
{
    if (wg_is_quantised(w->type)) {
        wg_matmul_quant_avx2(w, act, rows, y, ldy, p0, p1);
        return;
    }
    tile_fn *const *table = w->type == WG_F32 ? f32 : w->type == WG_F16 ? f16 : w->type == WG_BF16 ? bf16 : f8;
    const int fit = (int)(PANEL_BLOCK_BYTES / wg_float_at(w->type, w->k)) + 1, step = rows > WG_GROUP_ROWS ? fit : p1 - p0;
    for (int p = p0; p < p1; p += step)
        for (int m = 0; m < rows; m += WG_GROUP_ROWS)
            group(w, table, (const float *)act + (size_t)m * (size_t)w->k, wg_group_rows(rows, m), y + (size_t)m * ldy, ldy, p,
                  p + step < p1 ? p + step : p1);
}
