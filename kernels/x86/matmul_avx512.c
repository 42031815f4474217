/* SPDX-License-Identifier: MIT
 * Products with f32, f16, bf16 and f8_e4m3 weights: weights of 32 outputs times a broadcast input, one fma a product, k
 * ascending.
 *
 * A tile is P panels x T rows, so that even one row has 2P independent chains of fmas. When several tiles share a panel,
 * they alternate by chunks of k that stay in L1; the sums are kept in y meanwhile, which changes no bit. Blocks of f8_e4m3
 * are chains of their own, which are added to y times their scales. */
#include "kernels/x86/avx512.h"

#include "kernels/layout.h"
#include "kernels/variants.h"
#include "kernels/x86/matmul_x86.h"

enum {
    TALL = 12,           /* rows of the tallest tile */
    WIDE = 4,            /* panels of the widest */
    CHUNK_BYTES = 16384, /* of a panel, when several tiles alternate */
    PREFETCH_ROWS = 7,   /* with lower tiles the hardware prefetcher keeps up */
    NEAR = 4096,         /* distances of prefetches, into L1 and into L2 */
    FAR = 32768,
    PANEL_BLOCK_BYTES = 1 << 19, /* panels that stay in L2 while all groups of rows pass */
};

/* Where a tile's sums go. y: (T, ldy) at the first panel's first output. mask[i]: which of the outputs 16i.. exist. first: the
 * sums start at 0, otherwise at y. */
typedef struct tile_sums {
    float *y;
    size_t ldy;
    const __mmask16 *mask;
    int first;
} tile_sums;

typedef void tile_fn(const wg_tile_inputs *in, const tile_sums *to);

INLINE void add_products(const int type, const int P, const int T, const wg_tile_inputs *in, __m512 sum[TALL][2 * WIDE])
{
    const char *w = in->w;
    const float *x = in->x;
    const size_t panel = in->panel, ldx = in->ldx;
    const int k = in->k;
    const int size = wg_float_size(type), lines = (size + 1) / 2; /* of 32 elements; f8_e4m3 prefetches its half line twice */
    for (int j = 0; j < k; j++, w += WG_PANEL * size) {
        __m512 v[2 * WIDE];
        if (T >= PREFETCH_ROWS)
            UNROLL_FOR(int i = 0; i < P * lines; i++) {
                const char *at = w + (size_t)(i / lines) * panel + i % lines * 64;
                _mm_prefetch(at + NEAR, _MM_HINT_T0);
                _mm_prefetch(at + FAR, _MM_HINT_T1);
            }
        UNROLL_FOR(int i = 0; i < 2 * P; i++) v[i] = v_load(type, w + (size_t)(i / 2) * panel + i % 2 * 16 * size);
        UNROLL_FOR(int m = 0; m < T; m++) {
            const __m512 b = _mm512_set1_ps(x[(size_t)m * ldx + (size_t)j]);
            UNROLL_FOR(int i = 0; i < 2 * P; i++) sum[m][i] = _mm512_fmadd_ps(v[i], b, sum[m][i]);
        }
    }
}

INLINE void float_tile(const int type, const int P, const int T, const wg_tile_inputs *in, const tile_sums *to)
{
    float *y = to->y;
    const size_t ldy = to->ldy;
    const __mmask16 *mask = to->mask;
    __m512 sum[TALL][2 * WIDE];
    UNROLL_FOR(int m = 0; m < T; m++)
        UNROLL_FOR(int i = 0; i < 2 * P; i++)
            sum[m][i] = to->first ? _mm512_setzero_ps() : _mm512_maskz_loadu_ps(mask[i], y + (size_t)m * ldy + 16 * i);
    add_products(type, P, T, in, sum);
    UNROLL_FOR(int m = 0; m < T; m++)
        UNROLL_FOR(int i = 0; i < 2 * P; i++) _mm512_mask_storeu_ps(y + (size_t)m * ldy + 16 * i, mask[i], sum[m][i]);
}

INLINE void f8_tile(const int P, const int T, const wg_tile_inputs *in, const tile_sums *to)
{
    const char *w = in->w;
    for (int b = 0; b < in->k; b += WG_F8_RUN, w += wg_float_at(WG_F8_E4M3, WG_F8_RUN)) {
        const wg_tile_inputs block = {
            .w = w + WG_F8_HEAD, .panel = in->panel, .x = in->x + b, .ldx = in->ldx, .k = WG_F8_RUN
        };
        __m512 sum[TALL][2 * WIDE];
        UNROLL_FOR(int m = 0; m < T; m++)
            UNROLL_FOR(int i = 0; i < 2 * P; i++) sum[m][i] = _mm512_setzero_ps();
        add_products(WG_F8_E4M3, P, T, &block, sum);
        UNROLL_FOR(int i = 0; i < 2 * P; i++) {
            const __m512 scale = _mm512_loadu_ps(w + (size_t)(i / 2) * in->panel + i % 2 * 64);
            UNROLL_FOR(int m = 0; m < T; m++) {
                float *y = to->y + (size_t)m * to->ldy + 16 * i;
                const __m512 so_far = to->first && b == 0 ? _mm512_setzero_ps() : _mm512_maskz_loadu_ps(to->mask[i], y);
                _mm512_mask_storeu_ps(y, to->mask[i], _mm512_fmadd_ps(scale, sum[m][i], so_far));
            }
        }
    }
}

#define TILE(name, type, P, T)                                                                                                 \
    static void name##_##P##_##T(const wg_tile_inputs *in, const tile_sums *to)                                                \
    {                                                                                                                          \
        if (type == WG_F8_E4M3) f8_tile(P, T, in, to);                                                                         \
        else float_tile(type, P, T, in, to);                                                                                   \
    }
#define TILE_TABLE(name, type)                                                                                                 \
    TILE(name, type, 1, 1)                                                                                                     \
    TILE(name, type, 1, 2)                                                                                                     \
    TILE(name, type, 1, 3)                                                                                                     \
    TILE(name, type, 1, 4)                                                                                                     \
    TILE(name, type, 1, 5)                                                                                                     \
    TILE(name, type, 1, 6)                                                                                                     \
    TILE(name, type, 1, 7)                                                                                                     \
    TILE(name, type, 1, 8)                                                                                                     \
    TILE(name, type, 1, 9)                                                                                                     \
    TILE(name, type, 1, 10)                                                                                                    \
    TILE(name, type, 1, 11)                                                                                                    \
    TILE(name, type, 1, 12)                                                                                                    \
    TILE(name, type, 2, 1)                                                                                                     \
    TILE(name, type, 2, 2)                                                                                                     \
    TILE(name, type, 2, 3)                                                                                                     \
    TILE(name, type, 2, 4)                                                                                                     \
    TILE(name, type, 2, 5)                                                                                                     \
    TILE(name, type, 2, 6)                                                                                                     \
    TILE(name, type, 3, 1)                                                                                                     \
    TILE(name, type, 3, 2)                                                                                                     \
    TILE(name, type, 3, 3)                                                                                                     \
    TILE(name, type, 3, 4)                                                                                                     \
    TILE(name, type, 4, 1)                                                                                                     \
    TILE(name, type, 4, 2)                                                                                                     \
    TILE(name, type, 4, 3)                                                                                                     \
    static tile_fn *const name[WIDE + 1][TALL + 1] = {                                                                         \
        { 0 },                                                                                                                 \
        { 0, name##_1_1, name##_1_2, name##_1_3, name##_1_4, name##_1_5, name##_1_6, name##_1_7, name##_1_8, name##_1_9,       \
          name##_1_10, name##_1_11, name##_1_12 },                                                                             \
        { 0, name##_2_1, name##_2_2, name##_2_3, name##_2_4, name##_2_5, name##_2_6 },                                         \
        { 0, name##_3_1, name##_3_2, name##_3_3, name##_3_4 },                                                                 \
        { 0, name##_4_1, name##_4_2, name##_4_3 },                                                                             \
    };
TILE_TABLE(f32, WG_F32)
TILE_TABLE(f16, WG_F16)
TILE_TABLE(bf16, WG_BF16)
TILE_TABLE(f8, WG_F8_E4M3)

/* The panels of a tile of this height: 2 P T <= 24 sums. */
static int wide(int rows) { return rows <= 3 ? 4 : rows <= 6 ? 2 : 1; }

/* Panels [p0,p1) x one group of rows of x. */
static void group(const wg_matrix *w, tile_fn *const (*table)[TALL + 1], const float *x, int rows, float *y, size_t ldy, int p0,
                  int p1)
{
    const int tiles = wg_tiles(rows, TALL), most = wide(wg_tile_rows(rows, tiles)), K = w->k;
    const int step = tiles > 1 ? CHUNK_BYTES / (WG_PANEL * wg_float_size(w->type)) : K; /* whole blocks of f8_e4m3 */
    const size_t panel = wg_float_at(w->type, K);
    for (int p = p0, wd; p < p1; p += wd) {
        wd = p1 - p == most + 1 && most > 2 ? (most + 1) / 2 : p1 - p < most ? p1 - p : most; /* 5 = 2 + 3, never 4 + 1 */
        __mmask16 mask[2 * WIDE];
        for (int i = 0; i < 2 * wd; i++) {
            const int left = w->n - p * WG_PANEL - 16 * i;
            mask[i] = v_first(left > 0 ? left : 0);
        }
        for (int k = 0; k < K; k += step)
            for (int m = 0, t = 0, T; m < rows; m += T, t++) {
                T = wg_tile_rows(rows - m, tiles - t);
                const wg_tile_inputs in = { .w = (const char *)w->data + (size_t)p * panel + wg_float_at(w->type, k),
                                            .panel = panel,
                                            .x = x + (size_t)m * (size_t)K + k,
                                            .ldx = (size_t)K,
                                            .k = K - k < step ? K - k : step };
                const tile_sums to = { .y = y + (size_t)m * ldy + p * WG_PANEL, .ldy = ldy, .mask = mask, .first = k == 0 };
                table[wd][T](&in, &to);
            }
    }
}

void wg_matmul_avx512(const wg_matrix *w, const void *act, int rows, float *y, size_t ldy, int p0, int p1)
{
    if (wg_is_quantised(w->type)) {
        wg_matmul_quant_avx512(w, act, rows, y, ldy, p0, p1);
        return;
    }
    tile_fn *const(*table)[TALL + 1] = w->type == WG_F32 ? f32 : w->type == WG_F16 ? f16 : w->type == WG_BF16 ? bf16 : f8;
    const int fit = (int)(PANEL_BLOCK_BYTES / wg_float_at(w->type, w->k)) + 1, step = rows > WG_GROUP_ROWS ? fit : p1 - p0;
    for (int p = p0; p < p1; p += step)
        for (int m = 0; m < rows; m += WG_GROUP_ROWS)
            group(w, table, (const float *)act + (size_t)m * (size_t)w->k, wg_group_rows(rows, m), y + (size_t)m * ldy, ldy, p,
                  p + step < p1 ? p + step : p1);
}
