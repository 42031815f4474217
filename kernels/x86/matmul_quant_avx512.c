/* SPDX-License-Identifier: MIT
 * Products with quantised weights and vpdpbusd: 32 outputs x up to 8 rows a tile, integer sums in registers, no horizontal
 * sum anywhere. One template serves all types: they differ in the unpacking of four codes of 16 outputs into a vector and in
 * the place of the scales.
 *
 * The integer sum starts at WG_MAGIC_BITS - zero * sum(q), so that the finished int32 read as a float is 1.5 * 2^23 + i, and
 * i * da is one fmsub: exact in i, and WG_MAGIC * da is exact because da has 16 significant bits, so the result is round(i *
 * da), the bits of the reference.
 *
 * Of q8_2of4 the inputs are picked, the weights are not spread: a byte shuffle takes from 16 inputs those that 16 outputs have
 * codes for, so one vpdpbusd does the work of two. Its unsigned operand are the inputs + 128; 128 times the sum of the codes is
 * taken from the start of each output's sum.
 *
 * Weights are read once, front to back, by chunks of 8 blocks (4.6 to 8.7 KB) that stay in L1 while all row tiles use them.
 * Lines are prefetched, a line or two per step, spread over the steps of a block and the tiles of a chunk: in bursts the
 * requests would fill the line buffers, and loads that hit would wait for them. Prefetches past the end are harmless. */
#include <limits.h>

#include "kernels/layout.h"
#include "kernels/variants.h"
#include "kernels/x86/codes_avx512.h"
#include "kernels/x86/matmul_x86.h"

enum {
    TALL = 8,        /* rows of the tallest tile: 16 sums, 2 weights, 1 broadcast */
    LOW = 6,         /* above TALL rows, where arithmetic binds; with two parts always */
    PANEL_BLOCK = 8, /* panels that stay in L2 while all groups of 64 rows pass */
    STEPS = WG_QUANT_BLOCK / 4,
    AHEAD = 8704, /* distance of prefetches, bytes */
};

/* The prefetches of a tile, into L1: a number of lines per block, from an address on. */
typedef struct ask {
    const char *from;
    int lines;
} ask;

typedef void tile_fn(const char *chunk, const wg_q8_act *a, int blocks, float *acc, int first, ask ahead);

/* The prefetches of a step: of many lines two per step and the odd one (two tiles that prefetch the same lines are faster
 * than halves). */
INLINE void ask_ahead(const int type, ask ahead, int b, const int j)
{
    const char *at = ahead.from + b * share_bytes(type);
    if (ahead.lines > STEPS) {
        _mm_prefetch(at + 128 * j, _MM_HINT_T0);
        _mm_prefetch(at + 128 * j + 64, _MM_HINT_T0);
        if (j == STEPS - 1) _mm_prefetch(at + 128 * STEPS, _MM_HINT_T0);
    } else if (ahead.lines > 0) {
        _mm_prefetch(at + 64 * j, _MM_HINT_T0);
    }
}

/* The same of a sparse block's step of eight inputs: its lines in three turns over four steps. */
INLINE void ask_sparse(const int type, ask ahead, int b, const int s)
{
    const char *at = ahead.from + b * share_bytes(type) + 64 * s;
    if (ahead.lines > 0) _mm_prefetch(at, _MM_HINT_T0);
    if (ahead.lines > WG_SPARSE_STEPS) _mm_prefetch(at + 64 * WG_SPARSE_STEPS, _MM_HINT_T0);
    if (ahead.lines > 2 * WG_SPARSE_STEPS) _mm_prefetch(at + 128 * WG_SPARSE_STEPS, _MM_HINT_T0);
}

/* Integer sums of block b, whose codes are at w: sum[m][h] of row m and outputs 16 h .. 16 h + 15. */
INLINE void dense_sums(const int type, const int T, const int part, const char *w, const wg_q8_act *a, int b, ask ahead,
                       __m512i sum[TALL][2])
{
    const int steps = STEPS / wg_block_sums(type);
    UNROLL_FOR(int m = 0; m < T; m++) sum[m][0] = sum[m][1] = _mm512_set1_epi32(wg_act_start(type, a + m, b, part));
    UNROLL_FOR(int j = steps * part; j < steps * (part + 1); j++) {
        const __m512i w0 = codes(type, w, j, 0), w1 = codes(type, w, j, 1);
        ask_ahead(type, ahead, b, j);
        UNROLL_FOR(int m = 0; m < T; m++) {
            int32_t four;
            memcpy(&four, a[m].q + WG_QUANT_BLOCK * b + 4 * j, 4);
            const __m512i x = _mm512_set1_epi32(four);
            sum[m][0] = _mm512_dpbusd_epi32(sum[m][0], w0, x);
            sum[m][1] = _mm512_dpbusd_epi32(sum[m][1], w1, x);
        }
    }
}

INLINE void sparse_sums(const int type, const int T, const char *w, const wg_q8_act *a, int b, ask ahead, __m512i sum[TALL][2])
{
    const __m512i bias = _mm512_set1_epi8((char)0x80);
    __m512i q[WG_SPARSE_STEPS][2], all[2];
    UNROLL_FOR(int h = 0; h < 2; h++) {
        all[h] = _mm512_setzero_si512();
        UNROLL_FOR(int s = 0; s < WG_SPARSE_STEPS; s++) {
            q[s][h] = sparse_codes(type, w, s, h);
            all[h] = _mm512_dpbusd_epi32(all[h], bias, q[s][h]);
        }
        all[h] = _mm512_sub_epi32(_mm512_set1_epi32(WG_MAGIC_BITS), all[h]);
    }
    UNROLL_FOR(int m = 0; m < T; m++) sum[m][0] = all[0], sum[m][1] = all[1];
    UNROLL_FOR(int s = 0; s < WG_SPARSE_STEPS; s++) {
        const __m512i p0 = sparse_places(type, w, s, 0), p1 = sparse_places(type, w, s, 1);
        ask_sparse(type, ahead, b, s);
        UNROLL_FOR(int m = 0; m < T; m++) {
            const void *from = a[m].q + WG_QUANT_BLOCK * b + 16 * (s / 2);
            const __m512i x = _mm512_xor_si512(_mm512_broadcast_i32x4(_mm_loadu_si128(from)), bias);
            sum[m][0] = _mm512_dpbusd_epi32(sum[m][0], _mm512_shuffle_epi8(x, p0), q[s][0]);
            sum[m][1] = _mm512_dpbusd_epi32(sum[m][1], _mm512_shuffle_epi8(x, p1), q[s][1]);
        }
    }
}

/* T rows x 32 outputs x `blocks` blocks. acc: (T, 32), 64-byte aligned. Float sums of tall tiles live on the stack (in L1). */
INLINE void quant_tile(const int type, const int T, const char *chunk, const wg_q8_act *a, int blocks, float *acc, int first,
                       ask ahead)
{
    const int parts = wg_block_sums(type);
    __m512 f[TALL][2];
    UNROLL_FOR(int m = 0; m < T; m++)
        UNROLL_FOR(int h = 0; h < 2; h++) f[m][h] = first ? _mm512_setzero_ps() : _mm512_load_ps(acc + 32 * m + 16 * h);

    for (int b = 0; b < blocks; b++) {
        const char *w = chunk + wg_head_bytes(type) + (size_t)b * (size_t)wg_block_bytes(type);
        UNROLL_FOR(int part = 0; part < parts; part++) {
            __m512i sum[TALL][2];
            if (wg_is_sparse(type)) sparse_sums(type, T, w, a, b, ahead, sum);
            else dense_sums(type, T, part, w, a, b, ahead, sum);
            const __m512 d0 = scales(type, chunk, w, part, 0), d1 = scales(type, chunk, w, part, 1);
            UNROLL_FOR(int m = 0; m < T; m++) {
                const __m512 da = _mm512_set1_ps(a[m].da[b]), mda = _mm512_set1_ps(a[m].mda[b]);
                const __m512 t0 = _mm512_fmsub_ps(_mm512_castsi512_ps(sum[m][0]), da, mda);
                const __m512 t1 = _mm512_fmsub_ps(_mm512_castsi512_ps(sum[m][1]), da, mda);
                f[m][0] = _mm512_fmadd_ps(t0, d0, f[m][0]);
                f[m][1] = _mm512_fmadd_ps(t1, d1, f[m][1]);
            }
        }
        if (!wg_has_min(type)) continue;
        UNROLL_FOR(int part = 0; part < parts; part++) {
            const __m512 m0 = minima(type, chunk, w, part, 0), m1 = minima(type, chunk, w, part, 1);
            UNROLL_FOR(int m = 0; m < T; m++) {
                const __m512 das = _mm512_set1_ps(wg_act_das(type, a + m, b, part));
                f[m][0] = wg_is_k(type) ? _mm512_fnmadd_ps(das, m0, f[m][0]) : _mm512_fmadd_ps(das, m0, f[m][0]);
                f[m][1] = wg_is_k(type) ? _mm512_fnmadd_ps(das, m1, f[m][1]) : _mm512_fmadd_ps(das, m1, f[m][1]);
            }
        }
    }
    UNROLL_FOR(int m = 0; m < T; m++)
        UNROLL_FOR(int h = 0; h < 2; h++) _mm512_store_ps(acc + 32 * m + 16 * h, f[m][h]);
}

#define TILE(name, type, T)                                                                                                    \
    static void name##_##T(const char *chunk, const wg_q8_act *a, int blocks, float *acc, int first, ask ahead)                \
    {                                                                                                                          \
        quant_tile(type, T, chunk, a, blocks, acc, first, ahead);                                                              \
    }
#define TILE_TABLE(name, type)                                                                                                 \
    TILE(name, type, 1)                                                                                                        \
    TILE(name, type, 2)                                                                                                        \
    TILE(name, type, 3)                                                                                                        \
    TILE(name, type, 4)                                                                                                        \
    TILE(name, type, 5)                                                                                                        \
    TILE(name, type, 6)                                                                                                        \
    TILE(name, type, 7)                                                                                                        \
    TILE(name, type, 8)                                                                                                        \
    static tile_fn *const name[TALL + 1] = {                                                                                   \
        0, name##_1, name##_2, name##_3, name##_4, name##_5, name##_6, name##_7, name##_8                                      \
    };
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

/* The prefetches of tile t of `tiles` besides a chunk: its share of the lines. A single row of bytes prefetches none: the
 * hardware prefetcher is as fast. */
static ask ask_of(int type, int rows, const char *chunk, int t, int tiles)
{
    const int all = share_lines(type), lines = (all + tiles - 1) / tiles, left = all - t * lines;
    const int none = left <= 0 || (rows == 1 && wg_code_bits(type) == 8);
    return (ask){ chunk + AHEAD + 64 * t * lines, none ? 0 : lines };
}

/* Panels [p0,p1) x one group of rows. */
static void group(const wg_matrix *w, const wg_q8_act *act, int rows, float *y, size_t ldy, int p0, int p1)
{
    _Alignas(64) float acc[WG_GROUP_ROWS * WG_PANEL];
    tile_fn *const *tile = tiles_of(w->type);
    const int blocks = wg_blocks(w->k), tall = rows > TALL || wg_block_sums(w->type) > 1 ? LOW : TALL;
    const int tiles = wg_tiles(rows, tall);
    for (int p = p0; p < p1; p++) {
        const char *panel = (const char *)w->data + (size_t)p * wg_panel_bytes(w->type, w->k);
        for (int b = 0, n; b < blocks; b += n) {
            const wg_q8_act *a = act + (size_t)(b / WG_ACT_BLOCKS) * (size_t)rows;
            const char *chunk = panel + wg_head_of(w->type, b);
            n = blocks - b < WG_ACT_BLOCKS ? blocks - b : WG_ACT_BLOCKS;
            for (int m = 0, t = 0, T; m < rows; m += T, t++) {
                T = wg_tile_rows(rows - m, tiles - t);
                tile[T](chunk, a + m, n, acc + WG_PANEL * m, b == 0, ask_of(w->type, rows, chunk, t, tiles));
            }
        }
        const int n0 = p * WG_PANEL, n = w->n - n0 < WG_PANEL ? w->n - n0 : WG_PANEL;
        for (int m = 0; m < rows; m++) memcpy(y + (size_t)m * ldy + n0, acc + WG_PANEL * m, (size_t)n * sizeof *y);
    }
}

/* The number of rows from which on unpacking chunks first pays; 8-bit codes and nibbles with one scale never need it. */
static int many(int type)
{
    if (wg_block_sums(type) > 1) return TALL + 1;
    return wg_is_k(type) || wg_code_bits(type) == 5 ? 33 : INT_MAX;
}

void wg_matmul_quant_avx512(const wg_matrix *w, const void *act, int rows, float *y, size_t ldy, int p0, int p1)
{
    if (rows >= many(w->type)) {
        wg_matmul_many_avx512(w, act, rows, y, ldy, p0, p1);
        return;
    }
    const int step = rows > WG_GROUP_ROWS ? PANEL_BLOCK : p1 - p0, chunks = wg_chunks(w->k);
    for (int p = p0; p < p1; p += step)
        for (int m = 0; m < rows; m += WG_GROUP_ROWS)
            group(w, (const wg_q8_act *)act + wg_q8_act_at(m, chunks), wg_group_rows(rows, m), y + (size_t)m * ldy, ldy, p,
                  p + step < p1 ? p + step : p1);
}
