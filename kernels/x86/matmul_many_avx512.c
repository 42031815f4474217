/* SPDX-License-Identifier: MIT
 * Products of many rows with quantised weights whose codes or scales are costly to unpack. A chunk of a panel is unpacked
 * once for up to 128 rows: a byte per code and f32 scales, in L1. Tiles then do nothing but vpdpbusd and the float steps,
 * which share two ports: for 32 inputs of 16 outputs 8 and 2, or 8 and 3 with a minimum; so at most 80 % or 73 % of
 * vpdpbusd's own speed. Unpacking is bound by its stores, 18 to 20 per block, in the time of about two rows' products. */
#include "kernels/x86/codes_avx512.h"
#include "kernels/x86/matmul_x86.h"

enum {
    TALL = 6,   /* rows of a tile: 12 integer sums and 12 of floats in registers */
    SPAN = 128, /* rows that share an unpacked chunk; their inputs stay in L2 while all panels are processed */
    STEPS = WG_QUANT_BLOCK / 4,
};

/* The kinds of types after unpacking. HALVES: a scale (and a minimum) for each 16 inputs. */
typedef enum kind { PLAIN, MINIMA, HALVES, HALVES_MINIMA } kind;

typedef struct opened {
    float scale[WG_ACT_BLOCKS][2][WG_PANEL]; /* of each part */
    float min[WG_ACT_BLOCKS][2][WG_PANEL];   /* the minimum of each part, which is added */
    uint8_t q[WG_ACT_BLOCKS][STEPS][WG_PANEL][4];
} opened;

/* Lines of the next chunk that a tile prefetches: a number per block, from an address on. */
typedef struct ask {
    const char *from;
    int lines;
} ask;

typedef void open_fn(const char *chunk, int blocks, opened *o);
typedef void tile_fn(const opened *o, const wg_q8_act *a, int blocks, float *acc, int first, ask ahead);

/* Codes are shifted so that zero is 128, where prepared inputs have the sum's start; those with minima are unchanged. */
INLINE void open_chunk(const int type, const char *chunk, int blocks, opened *o)
{
    const __m512i move = _mm512_set1_epi8((char)(wg_has_min(type) ? 0 : 128 - wg_code_zero(type)));
    for (int b = 0; b < blocks; b++) {
        const char *w = chunk + wg_head_bytes(type) + (size_t)b * (size_t)wg_block_bytes(type);
        UNROLL_FOR(int j = 0; j < STEPS; j++)
            UNROLL_FOR(int h = 0; h < 2; h++)
                _mm512_store_si512(o->q[b][j][16 * h], _mm512_add_epi8(codes(type, w, j, h), move));
        UNROLL_FOR(int p = 0; p < 2 * wg_block_sums(type); p++) {
            const int part = p / 2, h = p % 2;
            _mm512_store_ps(o->scale[b][part] + 16 * h, scales(type, chunk, w, part, h));
            if (!wg_has_min(type)) continue;
            const __m512 m = minima(type, chunk, w, part, h);
            _mm512_store_ps(o->min[b][part] + 16 * h, wg_is_k(type) ? _mm512_sub_ps(_mm512_set1_ps(-0.0f), m) : m);
        }
    }
}

INLINE int has_min(const kind k) { return k == MINIMA || k == HALVES_MINIMA; }
INLINE int type_like(const kind k) { return k >= HALVES ? WG_Q6_K : WG_Q8_0; } /* a type with the same parts */

INLINE int32_t start(const kind k, const wg_q8_act *a, int b, const int part)
{
    if (has_min(k)) return WG_MAGIC_BITS;
    return k == PLAIN ? a->ini[b] : WG_MAGIC_BITS - 128 * wg_act_sum(type_like(k), a, b, part);
}

/* T rows x 32 outputs x `blocks` blocks. acc: (T, 32), 64-byte aligned. */
INLINE void open_tile(const kind k, const int T, const opened *o, const wg_q8_act *a, int blocks, float *acc, int first,
                      ask ahead)
{
    const int parts = wg_block_sums(type_like(k)), steps = STEPS / parts;
    __m512 f[TALL][2];
    UNROLL_FOR(int m = 0; m < T; m++)
        UNROLL_FOR(int h = 0; h < 2; h++) f[m][h] = first ? _mm512_setzero_ps() : _mm512_load_ps(acc + 32 * m + 16 * h);

    for (int b = 0; b < blocks; b++) {
        for (int i = 0; i < ahead.lines; i++) _mm_prefetch(ahead.from + 64 * (b * ahead.lines + i), _MM_HINT_T0);
        UNROLL_FOR(int part = 0; part < parts; part++) {
            __m512i sum[TALL][2];
            UNROLL_FOR(int m = 0; m < T; m++) sum[m][0] = sum[m][1] = _mm512_set1_epi32(start(k, a + m, b, part));
            UNROLL_FOR(int j = steps * part; j < steps * (part + 1); j++) {
                const __m512i w0 = _mm512_load_si512(o->q[b][j][0]), w1 = _mm512_load_si512(o->q[b][j][16]);
                UNROLL_FOR(int m = 0; m < T; m++) {
                    int32_t four;
                    memcpy(&four, a[m].q + WG_QUANT_BLOCK * b + 4 * j, 4);
                    const __m512i x = _mm512_set1_epi32(four);
                    sum[m][0] = _mm512_dpbusd_epi32(sum[m][0], w0, x);
                    sum[m][1] = _mm512_dpbusd_epi32(sum[m][1], w1, x);
                }
            }
            const __m512 d0 = _mm512_load_ps(o->scale[b][part]), d1 = _mm512_load_ps(o->scale[b][part] + 16);
            UNROLL_FOR(int m = 0; m < T; m++) {
                const __m512 da = _mm512_set1_ps(a[m].da[b]), mda = _mm512_set1_ps(a[m].mda[b]);
                f[m][0] = _mm512_fmadd_ps(_mm512_fmsub_ps(_mm512_castsi512_ps(sum[m][0]), da, mda), d0, f[m][0]);
                f[m][1] = _mm512_fmadd_ps(_mm512_fmsub_ps(_mm512_castsi512_ps(sum[m][1]), da, mda), d1, f[m][1]);
            }
        }
        if (!has_min(k)) continue;
        UNROLL_FOR(int part = 0; part < parts; part++) {
            const __m512 m0 = _mm512_load_ps(o->min[b][part]), m1 = _mm512_load_ps(o->min[b][part] + 16);
            UNROLL_FOR(int m = 0; m < T; m++) {
                const __m512 das = _mm512_set1_ps(wg_act_das(type_like(k), a + m, b, part));
                f[m][0] = _mm512_fmadd_ps(das, m0, f[m][0]);
                f[m][1] = _mm512_fmadd_ps(das, m1, f[m][1]);
            }
        }
    }
    UNROLL_FOR(int m = 0; m < T; m++)
        UNROLL_FOR(int h = 0; h < 2; h++) _mm512_store_ps(acc + 32 * m + 16 * h, f[m][h]);
}

#define TILE(name, k, T)                                                                                                       \
    static void name##_##T(const opened *o, const wg_q8_act *a, int blocks, float *acc, int first, ask ahead)                  \
    {                                                                                                                          \
        open_tile(k, T, o, a, blocks, acc, first, ahead);                                                                      \
    }
#define TILE_TABLE(name, k)                                                                                                    \
    TILE(name, k, 1)                                                                                                           \
    TILE(name, k, 2)                                                                                                           \
    TILE(name, k, 3)                                                                                                           \
    TILE(name, k, 4)                                                                                                           \
    TILE(name, k, 5)                                                                                                           \
    TILE(name, k, 6)                                                                                                           \
    static tile_fn *const name[TALL + 1] = { 0, name##_1, name##_2, name##_3, name##_4, name##_5, name##_6 };
TILE_TABLE(plain, PLAIN)
TILE_TABLE(minimum, MINIMA)
TILE_TABLE(halves_of, HALVES)
TILE_TABLE(halves_minimum, HALVES_MINIMA)

#define TYPE(id, name, ...)                                                                                                    \
    static void name(const char *chunk, int blocks, opened *o) { open_chunk(WG_##id, chunk, blocks, o); }
WG_QUANT_TYPES(TYPE)
#undef TYPE

static open_fn *open_of(int type)
{
    switch (type) {
#define TYPE(id, name, ...)                                                                                                    \
    case WG_##id: return name;
        WG_QUANT_TYPES(TYPE)
#undef TYPE
    default: return NULL;
    }
}

/* A panel x up to SPAN rows. acc: (rows, 32), 64-byte aligned. */
static void multiply(const wg_matrix *w, const wg_q8_act *act, int rows, float *acc, int p)
{
    _Alignas(64) opened o;
    open_fn *const open = open_of(w->type);
    static tile_fn *const *const tiles[2][2] = { { plain, minimum }, { halves_of, halves_minimum } };
    tile_fn *const *tile = tiles[wg_block_sums(w->type) - 1][wg_has_min(w->type)];
    const int blocks = wg_blocks(w->k), chunks = wg_chunks(w->k), asks = wg_tiles(rows, TALL) * WG_ACT_BLOCKS;
    const size_t bytes = wg_chunk_bytes(w->type);
    const int lines = ((int)bytes / 64 + asks - 1) / asks;
    const char *chunk = (const char *)w->data + (size_t)p * wg_panel_bytes(w->type, w->k);
    for (int c = 0; c < chunks; c++, chunk += bytes) {
        const int n = blocks - c * WG_ACT_BLOCKS < WG_ACT_BLOCKS ? blocks - c * WG_ACT_BLOCKS : WG_ACT_BLOCKS;
        const char *ahead = chunk + bytes;
        open(chunk, n, &o);
        for (int m = 0, T; m < rows; m += T) {
            const int group = wg_group_rows(rows, m), left = group - m % WG_GROUP_ROWS;
            const wg_q8_act *a = act + wg_q8_act_at(m, chunks) + c * group;
            T = wg_tile_rows(left, wg_tiles(left, TALL));
            tile[T](&o, a, n, acc + WG_PANEL * m, c == 0, (ask){ ahead, lines });
            ahead += 64 * WG_ACT_BLOCKS * lines;
        }
    }
}

void wg_matmul_many_avx512(const wg_matrix *w, const wg_q8_act *act, int rows, float *y, size_t ldy, int p0, int p1)
{
    _Alignas(64) float acc[SPAN * WG_PANEL];
    for (int m0 = 0; m0 < rows; m0 += SPAN) {
        const int some = rows - m0 < SPAN ? rows - m0 : SPAN;
        for (int p = p0; p < p1; p++) {
            const int n0 = p * WG_PANEL, n = w->n - n0 < WG_PANEL ? w->n - n0 : WG_PANEL;
            multiply(w, act + wg_q8_act_at(m0, wg_chunks(w->k)), some, acc, p);
            for (int m = 0; m < some; m++) memcpy(y + (size_t)(m0 + m) * ldy + n0, acc + WG_PANEL * m, (size_t)n * sizeof *y);
        }
    }
}
