/* SPDX-License-Identifier: MIT
 * Products with quantised weights without a dot-product instruction: the plan, the sums and their magic start of
 * matmul_quant_avx512.c, 16 outputs x up to 4 rows a tile. vpmaddubsw adds pairs of products in 16 bits: enough for codes of at
 * most 6 bits (63 * 127 * 2), not for bytes (255 * 127 * 2). There weights and inputs are split into even and odd bytes as
 * 16-bit numbers, and vpmaddwd adds exact pairs. */
#include "kernels/x86/avx2.h"

#include "kernels/layout.h"
#include "kernels/variants.h"
#include "kernels/x86/matmul.h"

enum {
    TALL = 4,
    HALF = WG_PANEL / 2,
    PANEL_BLOCK = 8,    /* panels that stay in L2 while all groups of 64 rows pass */
    NEAR = 4352,        /* asked for ahead, into L1 and into L2 */
    FAR = 34816,
    STEPS = WG_BLOCK / 4,
};

/* The inputs of a tile's chunk as 16-bit numbers: [row][step of 4 inputs] -> even pair, odd pair. */
typedef struct split {
    _Alignas(32) int16_t even[TALL][WG_ACT_BLOCKS * WG_BLOCK / 2], odd[TALL][WG_ACT_BLOCKS * WG_BLOCK / 2];
} split;

INLINE int is_wide(const int type) { return wg_code_zero(type) == 128; } /* codes of 8 bits */

static void split_inputs(split *to, const wg_q8_act *a, int rows, int blocks)
{
    for (int m = 0; m < rows; m++)
        for (int b = 0; b < blocks; b++) {
            const __m256i q = _mm256_loadu_si256((const void *)(a[m].q + WG_BLOCK * b));
            _mm256_store_si256((void *)(to->even[m] + WG_BLOCK / 2 * b), _mm256_srai_epi16(_mm256_slli_epi16(q, 8), 8));
            _mm256_store_si256((void *)(to->odd[m] + WG_BLOCK / 2 * b), _mm256_srai_epi16(q, 8));
        }
}

typedef void tile_fn(const char *chunk, int half, const wg_q8_act *a, const split *x, int blocks, float *acc, int first);

INLINE __m256i four_at(const void *p)
{
    int32_t four;
    memcpy(&four, p, 4);
    return _mm256_set1_epi32(four);
}

/* Codes k = 4 j .. 4 j + 3 of 8 outputs from row `r` of the panel on. */
INLINE __m256i codes(const int type, const char *block, const int j, int r)
{
    const int bits = wg_code_bits(type);
    const char *at = block + wg_codes_at(type) + 4 * r, *high = block + wg_high_at(type);
    if (bits == 8) return _mm256_load_si256((const void *)(at + 128 * j));
    const __m256i two = _mm256_load_si256((const void *)(at + 128 * (j % 4)));
    const __m256i v = _mm256_and_si256(j < 4 ? two : _mm256_srli_epi16(two, 4), _mm256_set1_epi8(15));
    if (type == WG_IQ4_NL)
        return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(_mm_loadu_si128((const void *)wg_iq4_table)), v);
    if (bits == 4) return v;
    if (bits == 5) { /* byte i of the vector looks at bit i of a word */
        const __m256i byte = _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
        const __m256i bit = _mm256_set1_epi64x((long long)0x8040201008040201ull);
        const __m256i fifth = _mm256_and_si256(_mm256_shuffle_epi8(four_at(high + 16 * j + r / 2), byte), bit);
        return _mm256_or_si256(v, _mm256_and_si256(_mm256_cmpeq_epi8(fifth, bit), _mm256_set1_epi8(16)));
    }
    const __m256i pairs = _mm256_load_si256((const void *)(high + 128 * (j / 4) + 4 * r));
    const __m256i moved = j % 4 == 0   ? _mm256_slli_epi16(pairs, 4)
                          : j % 4 == 1 ? _mm256_slli_epi16(pairs, 2)
                          : j % 4 == 2 ? pairs
                                       : _mm256_srli_epi16(pairs, 2);
    return _mm256_or_si256(v, _mm256_and_si256(moved, _mm256_set1_epi8(0x30)));
}

INLINE __m256 halves(const char *p) { return _mm256_cvtph_ps(_mm_load_si128((const void *)p)); }
INLINE __m256 bytes(const char *p) { return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const void *)p))); }

/* Scales of a part, and minima (of K types as they are stored: they are subtracted), of 8 outputs from row r on. */
INLINE __m256 scales(const int type, const char *head, const char *block, const int part, int r)
{
    return wg_is_k(type) ? _mm256_mul_ps(halves(head + 2 * r), bytes(block + 32 * part + r)) : halves(block + 2 * r);
}
INLINE __m256 minima(const int type, const char *head, const char *block, int r)
{
    return wg_is_k(type) ? _mm256_mul_ps(halves(head + 64 + 2 * r), bytes(block + 32 + r)) : halves(block + 64 + 2 * r);
}

/* sum += codes * inputs of step j of block b, for T rows x 2 vectors of 8 outputs. */
INLINE void add_step(const int type, const int T, const char *w, int half, const wg_q8_act *a, const split *x, int b,
                     const int j, __m256i sum[TALL][2])
{
    __m256i v[2], even[2], odd[2];
    UNROLL for (int i = 0; i < 2; i++) {
        v[i] = codes(type, w, j, HALF * half + 8 * i);
        even[i] = _mm256_and_si256(v[i], _mm256_set1_epi16(0xff));
        odd[i] = _mm256_srli_epi16(v[i], 8);
    }
    UNROLL for (int m = 0; m < T; m++) {
        if (is_wide(type)) {
            const int at = WG_BLOCK / 2 * b + 2 * j;
            const __m256i xe = four_at(x->even[m] + at), xo = four_at(x->odd[m] + at);
            UNROLL for (int i = 0; i < 2; i++) {
                sum[m][i] = _mm256_add_epi32(sum[m][i], _mm256_madd_epi16(even[i], xe));
                sum[m][i] = _mm256_add_epi32(sum[m][i], _mm256_madd_epi16(odd[i], xo));
            }
        } else {
            const __m256i q = four_at(a[m].q + WG_BLOCK * b + 4 * j), one = _mm256_set1_epi16(1);
            UNROLL for (int i = 0; i < 2; i++)
                sum[m][i] = _mm256_add_epi32(sum[m][i], _mm256_madd_epi16(_mm256_maddubs_epi16(v[i], q), one));
        }
    }
}

/* T rows x outputs 16 half .. 16 half + 15 of a panel. acc: (T, 32). */
INLINE void quant_tile(const int type, const int T, const char *chunk, int half, const wg_q8_act *a, const split *x, int blocks,
                       float *acc, int first)
{
    const int parts = wg_parts(type), steps = STEPS / parts;
    acc += HALF * half;
    for (int b = 0; b < blocks; b++) {
        const char *w = chunk + wg_head_bytes(type) + (size_t)b * (size_t)wg_block_bytes(type);
        for (int l = half; l < wg_block_bytes(type) / 64; l += 2) {
            _mm_prefetch(w + NEAR + 64 * l, _MM_HINT_T0);
            _mm_prefetch(w + FAR + 64 * l, _MM_HINT_T1);
        }
        UNROLL for (int part = 0; part < parts; part++) {
            __m256i sum[TALL][2];
            UNROLL for (int m = 0; m < T; m++) sum[m][0] = sum[m][1] = _mm256_set1_epi32(wg_act_start(type, a + m, b, part));
            UNROLL for (int j = steps * part; j < steps * (part + 1); j++) add_step(type, T, w, half, a, x, b, j, sum);
            UNROLL for (int i = 0; i < 2; i++) {
                const __m256 d = scales(type, chunk, w, part, HALF * half + 8 * i);
                UNROLL for (int m = 0; m < T; m++) {
                    float *o = acc + WG_PANEL * m + 8 * i;
                    const __m256 da = _mm256_set1_ps(a[m].da[b]), mda = _mm256_set1_ps(a[m].mda[b]);
                    const __m256 t = _mm256_fmsub_ps(_mm256_castsi256_ps(sum[m][i]), da, mda);
                    const __m256 f = first && b == 0 && part == 0 ? _mm256_setzero_ps() : _mm256_load_ps(o);
                    _mm256_store_ps(o, _mm256_fmadd_ps(t, d, f));
                }
            }
        }
        if (!wg_has_min(type)) continue;
        UNROLL for (int i = 0; i < 2; i++) {
            const __m256 least = minima(type, chunk, w, HALF * half + 8 * i);
            UNROLL for (int m = 0; m < T; m++) {
                float *o = acc + WG_PANEL * m + 8 * i;
                const __m256 das = _mm256_set1_ps(a[m].das[b]), f = _mm256_load_ps(o);
                _mm256_store_ps(o, wg_is_k(type) ? _mm256_fnmadd_ps(das, least, f) : _mm256_fmadd_ps(das, least, f));
            }
        }
    }
}

#define TILE(name, type, T)                                                                                                 \
    static void name##_##T(const char *chunk, int half, const wg_q8_act *a, const split *x, int blocks, float *acc, int first) \
    {                                                                                                                       \
        quant_tile(type, T, chunk, half, a, x, blocks, acc, first);                                                         \
    }
#define TILES(name, type)                                                                                                   \
    TILE(name, type, 1) TILE(name, type, 2) TILE(name, type, 3) TILE(name, type, 4)                                         \
    static tile_fn *const name[TALL + 1] = { 0, name##_1, name##_2, name##_3, name##_4 };
TILES(q8_0, WG_Q8_0)
TILES(q4_0, WG_Q4_0)
TILES(q4_1, WG_Q4_1)
TILES(q5_0, WG_Q5_0)
TILES(q5_1, WG_Q5_1)
TILES(iq4_nl, WG_IQ4_NL)
TILES(q4_k, WG_Q4_K)
TILES(q5_k, WG_Q5_K)
TILES(q6_k, WG_Q6_K)

static tile_fn *const *tiles_of(int type)
{
    switch (type) {
    case WG_Q4_0: return q4_0;
    case WG_Q4_1: return q4_1;
    case WG_Q5_0: return q5_0;
    case WG_Q5_1: return q5_1;
    case WG_IQ4_NL: return iq4_nl;
    case WG_Q4_K: return q4_k;
    case WG_Q5_K: return q5_k;
    case WG_Q6_K: return q6_k;
    default: return q8_0;
    }
}

/* Panels [p0,p1) x one group of rows. */
static void group(const wg_matrix *w, const wg_q8_act *act, int rows, float *y, size_t ldy, int p0, int p1)
{
    _Alignas(64) float acc[WG_GROUP_ROWS * WG_PANEL];
    split x;
    tile_fn *const *tile = tiles_of(w->type);
    const int blocks = wg_blocks(w->k), tiles = wg_tiles(rows, TALL);
    for (int p = p0; p < p1; p++) {
        const char *panel = (const char *)w->data + (size_t)p * wg_panel_bytes(w->type, w->k);
        for (int b = 0, n; b < blocks; b += n) {
            const wg_q8_act *a = act + (size_t)(b / WG_ACT_BLOCKS) * (size_t)rows;
            n = blocks - b < WG_ACT_BLOCKS ? blocks - b : WG_ACT_BLOCKS;
            for (int m = 0, t = 0, T; m < rows; m += T, t++) {
                T = wg_tile_rows(rows - m, tiles - t);
                if (is_wide(w->type)) split_inputs(&x, a + m, T, n);
                for (int half = 0; half < 2; half++)
                    tile[T](panel + wg_head_of(w->type, b), half, a + m, &x, n, acc + WG_PANEL * m, b == 0);
            }
        }
        const int n0 = p * WG_PANEL, n = w->n - n0 < WG_PANEL ? w->n - n0 : WG_PANEL;
        for (int m = 0; m < rows; m++) memcpy(y + (size_t)m * ldy + n0, acc + WG_PANEL * m, (size_t)n * sizeof *y);
    }
}

void wg_matmul_quant_avx2(const wg_matrix *w, const void *act, int rows, float *y, size_t ldy, int p0, int p1)
{
    const int step = rows > WG_GROUP_ROWS ? PANEL_BLOCK : p1 - p0, chunks = wg_chunks(w->k);
    for (int p = p0; p < p1; p += step)
        for (int m = 0; m < rows; m += WG_GROUP_ROWS)
            group(w, (const wg_q8_act *)act + wg_q8_act_at(m, chunks), wg_group_rows(rows, m), y + (size_t)m * ldy, ldy, p,
                  p + step < p1 ? p + step : p1);
}
