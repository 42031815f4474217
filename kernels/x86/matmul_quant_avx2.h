/* SPDX-License-Identifier: MIT
 * Products with quantised weights on 8-lane registers, one source for both levels: the plan, the sums and their magic start of
 * matmul_quant_avx512.c, 16 outputs x up to TALL rows a tile; lines are prefetched step by step, as there. The file
 * that includes it has defined
 *     TALL                                    rows of the tallest tile, 4 or 6
 *     inputs, take_inputs(type, a, T, n, x)   the first n blocks of the chunks a of T rows, as its sums want them
 *     add_step(type, T, v, x, b, j, sum)      sum[m][i] += the dots of codes v[i] and step j of block b of row m, exactly */
#ifndef WG_KERNELS_X86_MATMUL_QUANT_AVX2_H
#define WG_KERNELS_X86_MATMUL_QUANT_AVX2_H

#include "kernels/x86/codes_avx2.h"
#include "kernels/x86/matmul_x86.h"

enum {
    HALF = WG_PANEL / 2,
    PANEL_BLOCK = 8, /* panels that stay in L2 while all groups of 64 rows pass */
    STEPS = WG_QUANT_BLOCK / 4,
    AHEAD = 8704, /* distance of prefetches, bytes */
};

typedef void tile_fn(const char *chunk, int half, const inputs *x, int blocks, float *acc, int first);

/* A step's share of the lines of a block, every second one: the other half of the outputs prefetches the rest. */
INLINE void ask_ahead(const int type, const char *block, int half, const int j)
{
    UNROLL_FOR(int l = 2 * j; l < wg_block_bytes(type) / 64; l += 2 * STEPS)
        _mm_prefetch(block + AHEAD + 64 * (l + half), _MM_HINT_T0);
}

/* T rows x outputs 16 half .. 16 half + 15 of a panel. acc: (T, 32). */
INLINE void quant_tile(const int type, const int T, const char *chunk, int half, const inputs *x, int blocks, float *acc,
                       int first)
{
    const wg_q8_act *a = x->act;
    const int parts = wg_block_sums(type), steps = STEPS / parts;
    acc += HALF * half;
    for (int b = 0; b < blocks; b++) {
        const char *w = chunk + wg_head_bytes(type) + (size_t)b * (size_t)wg_block_bytes(type);
        UNROLL_FOR(int part = 0; part < parts; part++) {
            __m256i sum[TALL][2];
            UNROLL_FOR(int m = 0; m < T; m++) sum[m][0] = sum[m][1] = _mm256_set1_epi32(wg_act_start(type, a + m, b, part));
            UNROLL_FOR(int j = steps * part; j < steps * (part + 1); j++) {
                __m256i v[2];
                ask_ahead(type, w, half, j);
                UNROLL_FOR(int i = 0; i < 2; i++) v[i] = codes(type, w, j, HALF * half + 8 * i);
                add_step(type, T, v, x, b, j, sum);
            }
            UNROLL_FOR(int i = 0; i < 2; i++) {
                const __m256 d = scales(type, chunk, w, part, HALF * half + 8 * i);
                UNROLL_FOR(int m = 0; m < T; m++) {
                    float *o = acc + WG_PANEL * m + 8 * i;
                    const __m256 da = _mm256_set1_ps(a[m].da[b]), mda = _mm256_set1_ps(a[m].mda[b]);
                    const __m256 t = _mm256_fmsub_ps(_mm256_castsi256_ps(sum[m][i]), da, mda);
                    const __m256 f = first && b == 0 && part == 0 ? _mm256_setzero_ps() : _mm256_load_ps(o);
                    _mm256_store_ps(o, _mm256_fmadd_ps(t, d, f));
                }
            }
        }
        if (!wg_has_min(type)) continue;
        UNROLL_FOR(int i = 0; i < 2; i++) {
            const __m256 least = minima(type, chunk, w, HALF * half + 8 * i);
            UNROLL_FOR(int m = 0; m < T; m++) {
                float *o = acc + WG_PANEL * m + 8 * i;
                const __m256 das = _mm256_set1_ps(a[m].das[b]), f = _mm256_load_ps(o);
                _mm256_store_ps(o, wg_is_k(type) ? _mm256_fnmadd_ps(das, least, f) : _mm256_fmadd_ps(das, least, f));
            }
        }
    }
}

#define TILE(name, type, T)                                                                                                    \
    static void name##_##T(const char *chunk, int half, const inputs *x, int blocks, float *acc, int first)                    \
    {                                                                                                                          \
        quant_tile(type, T, chunk, half, x, blocks, acc, first);                                                               \
    }
#if TALL == 4
#define TILE_TABLE(name, type)                                                                                                 \
    TILE(name, type, 1)                                                                                                        \
    TILE(name, type, 2)                                                                                                        \
    TILE(name, type, 3)                                                                                                        \
    TILE(name, type, 4)                                                                                                        \
    static tile_fn *const name[TALL + 1] = { 0, name##_1, name##_2, name##_3, name##_4 };
#else
#define TILE_TABLE(name, type)                                                                                                 \
    TILE(name, type, 1)                                                                                                        \
    TILE(name, type, 2)                                                                                                        \
    TILE(name, type, 3)                                                                                                        \
    TILE(name, type, 4)                                                                                                        \
    TILE(name, type, 5)                                                                                                        \
    TILE(name, type, 6)                                                                                                        \
    static tile_fn *const name[TALL + 1] = { 0, name##_1, name##_2, name##_3, name##_4, name##_5, name##_6 };
#endif
#define TYPE(id, name, ...) TILE_TABLE(name, WG_##id)
WG_QUANT_TYPES(TYPE)
#undef TYPE

static tile_fn *const *tiles_of(int type)
{
    switch (type) {
#define TYPE(id, name, ...)                                                                                                    \
    case WG_##id: return name;
        WG_QUANT_TYPES(TYPE)
#undef TYPE
    default: return NULL;
    }
}

/* Panels [p0,p1) x one group of rows. */
static void group(const wg_matrix *w, const wg_q8_act *act, int rows, float *y, size_t ldy, int p0, int p1)
{
    _Alignas(64) float acc[WG_GROUP_ROWS * WG_PANEL];
    inputs x;
    tile_fn *const *tile = tiles_of(w->type);
    const int blocks = wg_blocks(w->k), tiles = wg_tiles(rows, TALL);
    for (int p = p0; p < p1; p++) {
        const char *panel = (const char *)w->data + (size_t)p * wg_panel_bytes(w->type, w->k);
        for (int b = 0, n; b < blocks; b += n) {
            const wg_q8_act *a = act + (size_t)(b / WG_ACT_BLOCKS) * (size_t)rows;
            n = blocks - b < WG_ACT_BLOCKS ? blocks - b : WG_ACT_BLOCKS;
            for (int m = 0, t = 0, T; m < rows; m += T, t++) {
                T = wg_tile_rows(rows - m, tiles - t);
                take_inputs(w->type, a + m, T, n, &x);
                for (int half = 0; half < 2; half++)
                    tile[T](panel + wg_head_of(w->type, b), half, &x, n, acc + WG_PANEL * m, b == 0);
            }
        }
        const int n0 = p * WG_PANEL, n = w->n - n0 < WG_PANEL ? w->n - n0 : WG_PANEL;
        for (int m = 0; m < rows; m++) memcpy(y + (size_t)m * ldy + n0, acc + WG_PANEL * m, (size_t)n * sizeof *y);
    }
}

static void matmul_quant(const wg_matrix *w, const void *act, int rows, float *y, size_t ldy, int p0, int p1)
{
    const int step = rows > WG_GROUP_ROWS ? PANEL_BLOCK : p1 - p0, chunks = wg_chunks(w->k);
    for (int p = p0; p < p1; p += step)
        for (int m = 0; m < rows; m += WG_GROUP_ROWS)
            group(w, (const wg_q8_act *)act + wg_q8_act_at(m, chunks), wg_group_rows(rows, m), y + (size_t)m * ldy, ldy, p,
                  p + step < p1 ? p + step : p1);
}

#endif
