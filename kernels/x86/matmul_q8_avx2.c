/* SPDX-License-Identifier: MIT
 * q8_0 products without a dot-product instruction. vpmaddubsw would saturate (255 * 127 * 2), so weights and inputs are split
 * into even and odd bytes as 16-bit numbers and vpmaddwd adds exact pairs. The sums and their magic start are those of the
 * AVX-512 version, 16 outputs x up to 4 rows a tile. */
#include "kernels/x86/avx2.h"

#include "kernels/layout.h"
#include "kernels/variants.h"
#include "kernels/x86/matmul.h"

enum {
    TALL = 4,
    HALF = WG_PANEL / 2,
    PANEL_BLOCK = 8,    /* panels that stay in L2 while all groups of 64 rows pass */
    BLOCK_LINES = sizeof(wg_q8_panel) / 64,
    NEAR = 4 * sizeof(wg_q8_panel), /* asked for ahead, into L1 and into L2 */
    FAR = 32 * sizeof(wg_q8_panel),
};

/* The inputs of a tile's chunk as 16-bit numbers: [row][step of 4 inputs] -> even pair, odd pair. */
typedef struct split {
    _Alignas(32) int16_t even[TALL][WG_ACT_BLOCKS * WG_BLOCK / 2], odd[TALL][WG_ACT_BLOCKS * WG_BLOCK / 2];
} split;

static void split_inputs(split *to, const wg_q8_act *a, int rows, int blocks)
{
    for (int m = 0; m < rows; m++)
        for (int b = 0; b < blocks; b++) {
            const __m256i q = _mm256_loadu_si256((const void *)(a[m].q + WG_BLOCK * b));
            _mm256_store_si256((void *)(to->even[m] + WG_BLOCK / 2 * b), _mm256_srai_epi16(_mm256_slli_epi16(q, 8), 8));
            _mm256_store_si256((void *)(to->odd[m] + WG_BLOCK / 2 * b), _mm256_srai_epi16(q, 8));
        }
}

typedef void tile_fn(const wg_q8_panel *w, int half, const wg_q8_act *a, const split *x, int blocks, float *acc, int first);

INLINE __m256i pair_at(const int16_t *p)
{
    int32_t two;
    memcpy(&two, p, 4);
    return _mm256_set1_epi32(two);
}

/* T rows x outputs 16 half .. 16 half + 15 of a panel. acc: (T, 32). */
INLINE void q8_tile(const int T, const wg_q8_panel *w, int half, const wg_q8_act *a, const split *x, int blocks, float *acc,
                    int first)
{
    acc += HALF * half;
    for (int b = 0; b < blocks; b++) {
        __m256i sum[TALL][2];
        UNROLL for (int m = 0; m < T; m++) sum[m][0] = sum[m][1] = _mm256_set1_epi32(a[m].ini[b]);
        for (int l = half; l < BLOCK_LINES; l += 2) {
            _mm_prefetch((const char *)(w + b) + NEAR + 64 * l, _MM_HINT_T0);
            _mm_prefetch((const char *)(w + b) + FAR + 64 * l, _MM_HINT_T1);
        }
        for (int j = 0; j < WG_BLOCK / 4; j++) {
            __m256i even[2], odd[2];
            UNROLL for (int i = 0; i < 2; i++) {
                const __m256i v = _mm256_load_si256((const void *)w[b].q[j][HALF * half + 8 * i]);
                even[i] = _mm256_and_si256(v, _mm256_set1_epi16(0xff));
                odd[i] = _mm256_srli_epi16(v, 8);
            }
            UNROLL for (int m = 0; m < T; m++) {
                const __m256i xe = pair_at(x->even[m] + WG_BLOCK / 2 * b + 2 * j),
                              xo = pair_at(x->odd[m] + WG_BLOCK / 2 * b + 2 * j);
                UNROLL for (int i = 0; i < 2; i++) {
                    sum[m][i] = _mm256_add_epi32(sum[m][i], _mm256_madd_epi16(even[i], xe));
                    sum[m][i] = _mm256_add_epi32(sum[m][i], _mm256_madd_epi16(odd[i], xo));
                }
            }
        }
        UNROLL for (int i = 0; i < 2; i++) {
            const __m256 d = _mm256_cvtph_ps(_mm_load_si128((const void *)(w[b].d + HALF * half + 8 * i)));
            UNROLL for (int m = 0; m < T; m++) {
                float *o = acc + WG_PANEL * m + 8 * i;
                const __m256 t =
                    _mm256_fmsub_ps(_mm256_castsi256_ps(sum[m][i]), _mm256_set1_ps(a[m].da[b]), _mm256_set1_ps(a[m].mda[b]));
                _mm256_store_ps(o, _mm256_fmadd_ps(t, d, first && b == 0 ? _mm256_setzero_ps() : _mm256_load_ps(o)));
            }
        }
    }
}

#define TILE(T)                                                                                                             \
    static void q8_##T(const wg_q8_panel *w, int half, const wg_q8_act *a, const split *x, int blocks, float *acc, int first) \
    {                                                                                                                       \
        q8_tile(T, w, half, a, x, blocks, acc, first);                                                                      \
    }
TILE(1) TILE(2) TILE(3) TILE(4)
static tile_fn *const tile[TALL + 1] = { 0, q8_1, q8_2, q8_3, q8_4 };

/* Panels [p0,p1) x one group of rows. */
static void group(const wg_matrix *w, const wg_q8_act *act, int rows, float *y, size_t ldy, int p0, int p1)
{
    _Alignas(64) float acc[WG_GROUP_ROWS * WG_PANEL];
    split x;
    const int blocks = wg_q8_blocks(w->k), tiles = wg_tiles(rows, TALL);
    for (int p = p0; p < p1; p++) {
        const wg_q8_panel *panel = (const wg_q8_panel *)w->data + (size_t)p * (size_t)blocks;
        for (int b = 0, n; b < blocks; b += n) {
            const wg_q8_act *a = act + (size_t)(b / WG_ACT_BLOCKS) * (size_t)rows;
            n = blocks - b < WG_ACT_BLOCKS ? blocks - b : WG_ACT_BLOCKS;
            for (int m = 0, t = 0, T; m < rows; m += T, t++) {
                T = wg_tile_rows(rows - m, tiles - t);
                split_inputs(&x, a + m, T, n);
                for (int half = 0; half < 2; half++) tile[T](panel + b, half, a + m, &x, n, acc + WG_PANEL * m, b == 0);
            }
        }
        const int n0 = p * WG_PANEL, n = w->n - n0 < WG_PANEL ? w->n - n0 : WG_PANEL;
        for (int m = 0; m < rows; m++) memcpy(y + (size_t)m * ldy + n0, acc + WG_PANEL * m, (size_t)n * sizeof *y);
    }
}

void wg_matmul_q8_avx2(const wg_matrix *w, const void *act, int rows, float *y, size_t ldy, int p0, int p1)
{
    const int step = rows > WG_GROUP_ROWS ? PANEL_BLOCK : p1 - p0, chunks = wg_q8_chunks(w->k);
    for (int p = p0; p < p1; p += step)
        for (int m = 0; m < rows; m += WG_GROUP_ROWS)
            group(w, (const wg_q8_act *)act + wg_q8_act_at(m, chunks), wg_group_rows(rows, m), y + (size_t)m * ldy, ldy, p,
                  p + step < p1 ? p + step : p1);
}
