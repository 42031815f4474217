/* SPDX-License-Identifier: MIT
 * q8_0 products with vpdpbusd: 32 outputs x up to 12 rows a tile, integer sums in registers, no horizontal sum anywhere.
 *
 * The integer sum starts at WG_MAGIC_BITS - 128 sum(q), so that the finished int32 read as a float is 1.5 * 2^23 + i, and
 * i * da is one fmsub: exact in i, and WG_MAGIC * da is exact because da has 16 significant bits, so the result is
 * round(i * da), the bits of the reference.
 *
 * Weights are read once, front to back, by chunks of 8 blocks (8.7 KB) that stay in L1 while all row tiles use them. Lines are
 * asked for twice: far ahead into L2, those requests spread over the tiles of a chunk so that they never come in bursts that
 * would fill the line buffers, and by the first tile a little ahead into L1. Asking past the end of the weights is harmless. */
#include "kernels/x86/avx512.h"

#include <string.h>

#include "kernels/layout.h"
#include "kernels/variants.h"
#include "kernels/x86/matmul.h"

enum {
    TALL = 12,           /* rows of the tallest tile: 24 sums, 2 weights, 1 broadcast */
    BLOCK_LINES = sizeof(wg_q8_panel) / 64,
    FAR = 32 * sizeof(wg_q8_panel),
    NEAR = 4 * sizeof(wg_q8_panel),
    LOW = 6,             /* above LOW_ABOVE rows arithmetic binds, and lower tiles are faster */
    LOW_ABOVE = 24,
    PANEL_BLOCK = 8,     /* panels that stay in L2 while all groups of 64 rows pass */
};

/* What a tile asks for ahead: `lines` lines a block from `far` into L2, and with `near` its weights into L1. */
typedef struct ask {
    const char *far;
    int lines, near;
} ask;

typedef void tile_fn(const wg_q8_panel *w, const wg_q8_act *a, int blocks, float *acc, int first, ask ahead);

/* T rows x 32 outputs x `blocks` blocks. acc: (T, 32), 64-byte aligned. Float sums of tall tiles live on the stack (in L1). */
INLINE void q8_tile(const int T, const wg_q8_panel *w, const wg_q8_act *a, int blocks, float *acc, int first, ask ahead)
{
    __m512 f[TALL][2];
    UNROLL for (int m = 0; m < T; m++)
        UNROLL for (int h = 0; h < 2; h++) f[m][h] = first ? _mm512_setzero_ps() : _mm512_load_ps(acc + 32 * m + 16 * h);

    for (int b = 0; b < blocks; b++) {
        __m512i sum[TALL][2];
        UNROLL for (int m = 0; m < T; m++) sum[m][0] = sum[m][1] = _mm512_set1_epi32(a[m].ini[b]);
        if (ahead.near)
            UNROLL for (int l = 0; l < BLOCK_LINES; l++) _mm_prefetch((const char *)(w + b) + NEAR + 64 * l, _MM_HINT_T0);
        for (int l = 0; l < ahead.lines; l++) _mm_prefetch(ahead.far + (size_t)b * sizeof *w + 64 * l, _MM_HINT_T1);
        UNROLL for (int j = 0; j < WG_BLOCK / 4; j++) {
            const __m512i w0 = _mm512_load_si512(w[b].q[j]), w1 = _mm512_load_si512(w[b].q[j] + 16);
            UNROLL for (int m = 0; m < T; m++) {
                int32_t four;
                memcpy(&four, a[m].q + WG_BLOCK * b + 4 * j, 4);
                const __m512i x = _mm512_set1_epi32(four);
                sum[m][0] = _mm512_dpbusd_epi32(sum[m][0], w0, x);
                sum[m][1] = _mm512_dpbusd_epi32(sum[m][1], w1, x);
            }
        }
        const __m512 d0 = _mm512_cvtph_ps(_mm256_load_si256((const void *)w[b].d));
        const __m512 d1 = _mm512_cvtph_ps(_mm256_load_si256((const void *)(w[b].d + 16)));
        UNROLL for (int m = 0; m < T; m++) {
            const __m512 da = _mm512_set1_ps(a[m].da[b]), mda = _mm512_set1_ps(a[m].mda[b]);
            const __m512 t0 = _mm512_fmsub_ps(_mm512_castsi512_ps(sum[m][0]), da, mda);
            const __m512 t1 = _mm512_fmsub_ps(_mm512_castsi512_ps(sum[m][1]), da, mda);
            f[m][0] = _mm512_fmadd_ps(t0, d0, f[m][0]);
            f[m][1] = _mm512_fmadd_ps(t1, d1, f[m][1]);
        }
    }
    UNROLL for (int m = 0; m < T; m++)
        UNROLL for (int h = 0; h < 2; h++) _mm512_store_ps(acc + 32 * m + 16 * h, f[m][h]);
}

#define TILE(T)                                                                                                                \
    static void q8_##T(const wg_q8_panel *w, const wg_q8_act *a, int blocks, float *acc, int first, ask ahead)                 \
    {                                                                                                                          \
        q8_tile(T, w, a, blocks, acc, first, ahead);                                                                           \
    }
TILE(1) TILE(2) TILE(3) TILE(4) TILE(5) TILE(6) TILE(7) TILE(8) TILE(9) TILE(10) TILE(11) TILE(12)
static tile_fn *const tile[TALL + 1] = { 0, q8_1, q8_2, q8_3, q8_4, q8_5, q8_6, q8_7, q8_8, q8_9, q8_10, q8_11, q8_12 };

/* Panels [p0,p1) x one group of rows. */
static void group(const wg_matrix *w, const wg_q8_act *act, int rows, float *y, size_t ldy, int p0, int p1)
{
    _Alignas(64) float acc[WG_GROUP_ROWS * WG_PANEL];
    const int blocks = wg_q8_blocks(w->k), tall = rows > LOW_ABOVE ? LOW : TALL;
    const int tiles = wg_tiles(rows, tall), lines = (BLOCK_LINES + tiles - 1) / tiles;
    for (int p = p0; p < p1; p++) {
        const wg_q8_panel *panel = (const wg_q8_panel *)w->data + (size_t)p * (size_t)blocks;
        for (int b = 0, n; b < blocks; b += n) {
            const wg_q8_act *a = act + (size_t)(b / WG_ACT_BLOCKS) * (size_t)rows;
            n = blocks - b < WG_ACT_BLOCKS ? blocks - b : WG_ACT_BLOCKS;
            for (int m = 0, t = 0, T; m < rows; m += T, t++) {
                const int left = BLOCK_LINES - t * lines;
                T = wg_tile_rows(rows - m, tiles - t);
                const ask ahead = { (const char *)(panel + b) + FAR + 64 * t * lines,
                                    left < 0 ? 0 : left < lines ? left : lines, t == 0 };
                tile[T](panel + b, a + m, n, acc + WG_PANEL * m, b == 0, ahead);
            }
        }
        const int n0 = p * WG_PANEL, n = w->n - n0 < WG_PANEL ? w->n - n0 : WG_PANEL;
        for (int m = 0; m < rows; m++) memcpy(y + (size_t)m * ldy + n0, acc + WG_PANEL * m, (size_t)n * sizeof *y);
    }
}

void wg_matmul_q8_avx512(const wg_matrix *w, const void *act, int rows, float *y, size_t ldy, int p0, int p1)
{
    const int step = rows > WG_GROUP_ROWS ? PANEL_BLOCK : p1 - p0, chunks = wg_q8_chunks(w->k);
    for (int p = p0; p < p1; p += step)
        for (int m = 0; m < rows; m += WG_GROUP_ROWS)
            group(w, (const wg_q8_act *)act + wg_q8_act_at(m, chunks), wg_group_rows(rows, m), y + (size_t)m * ldy, ldy, p,
                  p + step < p1 ? p + step : p1);
}
