/* SPDX-License-Identifier: MIT
 * Attention on 16-lane registers. Two variants of its own, where an instruction gains over the common source:
 * Heads of up to 8 elements put two keys in a register.
 * Codes: a chunk's keys of a kv head are transposed once, [4 elements][key], for all query heads that share it; then one
 * vpdpbusd is 16 keys x 4 elements of one query head, and no sum is horizontal. Keys are made unsigned (code + 128) on the
 * way, sums start at -128 times the sum of the query's codes. Integer sums are exact, so their order is free. */
#include "kernels/x86/avx512.h"

#include <string.h>

#include "kernels/ops.h"

#define LEVEL(op) wg_##op##_avx512
#define NARROW 8
#define OWN_SCORE_CODES
enum { SHARE = 4, SCORE_SUMS = 16, WIDE = 4, MANY_WIDE = 4, WIDE_ONE = 4, MANY = 8, APART = 1 };

/* Two keys of up to 8 elements in one register. */
INLINE vec load_two(const int type, dmask m, const char *a, const char *b)
{
    if (type == WG_F32)
        return _mm512_insertf32x8(_mm512_castps256_ps512(_mm256_maskz_loadu_ps(m, a)), _mm256_maskz_loadu_ps(m, b), 1);
    return v_widen(
        type, _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_maskz_loadu_epi16(m, a)), _mm_maskz_loadu_epi16(m, b), 1));
}

INLINE void score_narrow(const int type, const int G, const float *q, int hd, const char *const *key, int n, float scale,
                         float (*s)[WG_CHUNK_KEYS])
{
    const dmask m = d_first(hd);
    const vec zero = v_all(0);
    vec two[SHARE];
    UNROLL_FOR(int g = 0; g < G; g++) two[g] = _mm512_broadcast_f32x8(_mm256_maskz_loadu_ps(m, q + g * hd));
    for (int j = 0; j < n; j += 16) {
        vec quad[SHARE][4];
        UNROLL_FOR(int i = 0; i < 4; i++) {
            const char *const *k = key + j + 4 * i;
            if (j + 4 * i >= n) {
                UNROLL_FOR(int g = 0; g < G; g++) quad[g][i] = zero;
                continue;
            }
            const vec ab = load_two(type, m, k[0], k[1]), cd = load_two(type, m, k[2], k[3]);
            UNROLL_FOR(int g = 0; g < G; g++) /* lanes 8-15 of a key are +0 and still added: -0 + +0 is +0 */
                quad[g][i] = fold_pairs(ADD, v_fma(two[g], ab, zero) + zero, v_fma(two[g], cd, zero) + zero);
        }
        UNROLL_FOR(int g = 0; g < G; g++) v_store(s[g] + j, fold_quads(ADD, quad[g]) * v_all(scale));
    }
}

#include "kernels/lanes/attention_lanes.h"

enum { STEPS = WG_KV_BLOCK / 4, SIXTEENS = WG_CHUNK_KEYS / 16 };

/* One kv head's block of a chunk's keys, transposed. */
typedef struct turned {
    _Alignas(64) __m512i key[STEPS][SIXTEENS];
} turned;

/* 16 keys x 64 bytes -> [4 bytes][key]: unpacked within lanes twice, then lanes are permuted twice. */
INLINE void turn(__m512i v[16])
{
    __m512i t[16];
    UNROLL_FOR(int i = 0; i < 16; i += 2) {
        t[i] = _mm512_unpacklo_epi32(v[i], v[i + 1]);
        t[i + 1] = _mm512_unpackhi_epi32(v[i], v[i + 1]);
    }
    UNROLL_FOR(int i = 0; i < 16; i += 4)
        UNROLL_FOR(int h = 0; h < 2; h++) {
            v[i + 2 * h] = _mm512_unpacklo_epi64(t[i + h], t[i + 2 + h]);
            v[i + 2 * h + 1] = _mm512_unpackhi_epi64(t[i + h], t[i + 2 + h]);
        }
    UNROLL_FOR(int e = 0; e < 4; e++) { /* v[4 i + e]: bytes 4 (4 lane + e) of the keys 4 i .. 4 i + 3 */
        const __m512i a = _mm512_shuffle_i32x4(v[e], v[4 + e], 0x88), b = _mm512_shuffle_i32x4(v[e], v[4 + e], 0xDD);
        const __m512i c = _mm512_shuffle_i32x4(v[8 + e], v[12 + e], 0x88), d = _mm512_shuffle_i32x4(v[8 + e], v[12 + e], 0xDD);
        t[e] = _mm512_shuffle_i32x4(a, c, 0x88);
        t[8 + e] = _mm512_shuffle_i32x4(a, c, 0xDD);
        t[4 + e] = _mm512_shuffle_i32x4(b, d, 0x88);
        t[12 + e] = _mm512_shuffle_i32x4(b, d, 0xDD);
    }
    UNROLL_FOR(int i = 0; i < 16; i++) v[i] = t[i];
}

/* Transposes a block of `width` bytes at `at` of the keys; keys past n repeat the last. */
static void turn_keys(turned *to, const chunk_keys *keys, size_t at, int width)
{
    const char *const *key = keys->key, *const *next = keys->next;
    const int n = keys->n;
    const __mmask64 m = width >= 64 ? ~(__mmask64)0 : ((__mmask64)1 << width) - 1;
    const __m512i flip = _mm512_set1_epi8(-128);
    for (int g = 0; 16 * g < n; g++) {
        __m512i v[16];
        UNROLL_FOR(int i = 0; i < 16; i++) {
            const int j = 16 * g + i < n ? 16 * g + i : n - 1;
            v[i] = _mm512_xor_si512(_mm512_maskz_loadu_epi8(m, key[j] + at), flip);
            v_ask(next[j] + at);
        }
        turn(v);
        UNROLL_FOR(int i = 0; i < 16; i++) _mm512_store_si512(&to->key[i][g], v[i]);
    }
}

/* Scores of H heads from h on and N groups of 16 keys from g on; sums of block 0 start at 0. */
INLINE void score_turned(const int H, const int N, const turned *in, tile *t, int h, int b, int g)
{
    __m512i sum[SHARE][SIXTEENS];
    UNROLL_FOR(int e = 0; e < H; e++)
        UNROLL_FOR(int i = 0; i < N; i++) sum[e][i] = _mm512_set1_epi32(-128 * t->sum[h + e][b]);
    for (int j = 0; j < STEPS; j++)
        UNROLL_FOR(int e = 0; e < H; e++) {
            int32_t four;
            memcpy(&four, t->code[h + e] + WG_KV_BLOCK * b + 4 * j, 4);
            const __m512i x = _mm512_set1_epi32(four);
            UNROLL_FOR(int i = 0; i < N; i++) sum[e][i] = _mm512_dpbusd_epi32(sum[e][i], in->key[j][g + i], x);
        }
    UNROLL_FOR(int e = 0; e < H; e++)
        UNROLL_FOR(int i = 0; i < N; i++) {
            float *at = t->s[h + e] + 16 * (g + i);
            const vec dot = _mm512_cvtepi32_ps(sum[e][i]) * v_all(t->by[h + e][b]);
            v_store(at, v_fma(dot, v_load(WG_F32, t->scale + 16 * (g + i)), b ? v_load(WG_F32, at) : v_all(0)));
        }
}

#define SCORE_KEYS(H)                                                                                                          \
    OUTLINE void score_keys##H(const turned *in, tile *t, int h, int b, int n)                                                 \
    {                                                                                                                          \
        if (n > 48) score_turned(H, 4, in, t, h, b, 0);                                                                        \
        else                                                                                                                   \
            for (int g = 0; 16 * g < n; g++) score_turned(H, 1, in, t, h, b, g);                                               \
    }
SCORE_KEYS(1)
SCORE_KEYS(2)
SCORE_KEYS(3)
SCORE_KEYS(4)

static void score_codes_all(tile *t, int h, int end, int b, const chunk_keys *keys, size_t at, int width)
{
    const int n = keys->n;
    turned in;
    turn_keys(&in, keys, at, width);
    for (; h + 4 <= end; h += 4) score_keys4(&in, t, h, b, n);
    switch (end - h) {
    case 3: score_keys3(&in, t, h, b, n); break;
    case 2: score_keys2(&in, t, h, b, n); break;
    case 1: score_keys1(&in, t, h, b, n); break;
    default: break;
    }
}
