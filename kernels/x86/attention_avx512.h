/* SPDX-License-Identifier: MIT
 * What attention does alike for every type of cache: a tile of query heads, the lanes16 fold of 16 sums at once (four levels of
 * adding halves of two vectors: 15 additions for 16), scores into weights. Only for attention*_avx512.c. */
#ifndef WG_KERNELS_X86_ATTENTION_AVX512_H
#define WG_KERNELS_X86_ATTENTION_AVX512_H

#include "kernels/ops.h"
#include "kernels/x86/avx512.h"

enum {
    HEADS = 8,        /* query heads that pass through a chunk together */
    SHARE = 4,        /* most of them that share the loads of a kv head's keys */
};

/* What the heads of a tile keep between chunks, and the chunk's weights. */
typedef struct state {
    _Alignas(64) float m[16], l[16], c[16];
    _Alignas(64) float s[HEADS][WG_CHUNK_KEYS]; /* scores, then weights */
} state;

/* ---- folds: of sums in the lanes16 order, of maxima in any */
enum { ADD, MAX };
INLINE __m512 join(const int op, __m512 a, __m512 b) { return op == ADD ? _mm512_add_ps(a, b) : _mm512_max_ps(a, b); }

/* lanes of a, b -> [a folded to 8 | b folded to 8] */
INLINE __m512 fold_pair(const int op, __m512 a, __m512 b)
{
    return join(op, _mm512_mask_blend_ps(0xFF00, a, b),
                _mm512_castpd_ps(_mm512_shuffle_f64x2(_mm512_castps_pd(a), _mm512_castps_pd(b), 0x4E)));
}

/* [a|b], [c|d] of 8 lanes each -> [a|c|b|d] of 4. */
INLINE __m512 fold_quad(const int op, __m512 ab, __m512 cd)
{
    const __m512 crossed = _mm512_mask_blend_ps(0x0F0F, ab, cd);
    return join(op, _mm512_mask_blend_ps(0xF0F0, ab, cd),
                _mm512_castpd_ps(_mm512_permutex_pd(_mm512_castps_pd(crossed), 0x4E)));
}

/* Four quads -> 16 sums, in key order. */
INLINE __m512 fold_quads(const int op, const __m512 q[4])
{
    const __m512i order = _mm512_setr_epi32(0, 8, 4, 12, 1, 9, 5, 13, 2, 10, 6, 14, 3, 11, 7, 15);
    const __m512 low = join(op, _mm512_mask_blend_ps(0xCCCC, q[0], q[1]), _mm512_shuffle_ps(q[0], q[1], 0x4E));
    const __m512 high = join(op, _mm512_mask_blend_ps(0xCCCC, q[2], q[3]), _mm512_shuffle_ps(q[2], q[3], 0x4E));
    return _mm512_permutexvar_ps(order, join(op, _mm512_shuffle_ps(low, high, 0x88), _mm512_shuffle_ps(low, high, 0xDD)));
}

/* v[h]: of head h, h < heads -> one lane a head; `rest` where there is none. */
INLINE __m512 fold_heads(const int op, const __m512 v[HEADS], int heads, __m512 rest)
{
    __m512 quad[4] = { rest, rest, rest, rest };
    UNROLL for (int i = 0; i < HEADS / 4; i++)
        if (4 * i < heads)
            quad[i] = fold_quad(op, fold_pair(op, v[4 * i], v[4 * i + 1]), fold_pair(op, v[4 * i + 2], v[4 * i + 3]));
    return fold_quads(op, quad);
}

/* ---- weights of all heads of the tile: s -> exp(s - m'); m', c and l follow. full: n is WG_CHUNK_KEYS */
INLINE __m512 scores_of(const float *s, int j, const int full, int n, __m512 rest)
{
    return full ? _mm512_load_ps(s + j) : _mm512_mask_mov_ps(rest, first16(n - j > 0 ? n - j : 0), _mm512_load_ps(s + j));
}

INLINE void weigh_keys(state *st, int heads, const int full, int n)
{
    const __m512 before = _mm512_load_ps(st->m), least = _mm512_set1_ps(-INFINITY), zero = _mm512_setzero_ps();
    __m512 v[HEADS];
    UNROLL for (int h = 0; h < HEADS; h++) {
        v[h] = least;
        if (h < heads)
            for (int j = 0; j < n; j += 16) v[h] = _mm512_max_ps(v[h], scores_of(st->s[h], j, full, n, least));
    }
    const __m512 m = _mm512_max_ps(before, fold_heads(MAX, v, heads, least));
    _mm512_store_ps(st->m, m);
    for (int h = 0; h < heads; h++) {
        __m512 sum = zero;
        UNROLL for (int j = 0; j < WG_CHUNK_KEYS; j += 16) {
            if (!full && j >= n) break;
            __m512 w = exp32x16_low(_mm512_sub_ps(_mm512_load_ps(st->s[h] + j), _mm512_set1_ps(st->m[h])));
            if (!full) w = _mm512_maskz_mov_ps(first16(n - j), w);
            _mm512_store_ps(st->s[h] + j, w);
            sum = _mm512_add_ps(sum, w); /* a missing key adds +0 to a sum that is never -0 */
        }
        v[h] = sum;
    }
    const __m512 c = exp32x16_low(_mm512_sub_ps(before, m)); /* the first time exp(-inf) = 0 */
    _mm512_store_ps(st->c, c);
    _mm512_store_ps(st->l, _mm512_fmadd_ps(_mm512_load_ps(st->l), c, fold_heads(ADD, v, heads, zero)));
}

INLINE void weigh_all(state *st, int heads, int n)
{
    if (n == WG_CHUNK_KEYS) weigh_keys(st, heads, 1, WG_CHUNK_KEYS);
    else weigh_keys(st, heads, 0, n);
}

/* WG_KV_Q8: heads [h0,h1), and a key or a value as codes and scales. */
void wg_kv_store_q8_avx512(const wg_kv_view *kv, int8_t *to, float *scale, const float *from);
void wg_attention_q8_avx512(const float *q, const wg_row_keys *keys, int heads, int kv_heads, int hd, float scale, float *out,
                            int h0, int h1);

#endif
