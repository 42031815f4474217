/* SPDX-License-Identifier: MIT
 * Attention of one row, up to 8 query heads at a time through the chunks of 64 keys of ref/attention.c.
 *
 * Scores: a key's 16 lanes are one vector; the lanes16 fold of 16 keys is done for all of them at once, by four levels of
 * adding halves of two vectors (15 additions for 16 keys). Heads up to 8 wide put two keys in a vector. Query heads of one kv
 * head share the loads of keys and values. Values: one chain of fmas per output vector, keys ascending, as many chains as fit.
 * While a chunk is used, the next one is asked for, line by line: heads of a slot are strided, which hardware cannot guess. */
#include "kernels/x86/attention_avx512.h"

#include <string.h>

#include "kernels/variants.h"
#include "kernels/key_walk.h"

enum { WIDE = 4 }; /* vectors of values that are summed together */

/* ---- scores of G heads that share a kv head: s[g][j] = lanes16 q.k * scale */

/* Two keys of up to 8 elements in one vector. */
INLINE __m512 load_two(const int type, __mmask8 mask, const char *a, const char *b)
{
    if (type == WG_F32)
        return _mm512_insertf32x8(_mm512_castps256_ps512(_mm256_maskz_loadu_ps(mask, a)), _mm256_maskz_loadu_ps(mask, b), 1);
    const __m256i h =
        _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_maskz_loadu_epi16(mask, a)), _mm_maskz_loadu_epi16(mask, b), 1);
    if (type == WG_F16) return _mm512_cvtph_ps(h);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16));
}

INLINE void score_narrow(const int type, const int G, const float *q, int hd, const char *const *key, int n, float scale,
                         float (*s)[WG_CHUNK_KEYS])
{
    const __mmask8 mask = first8(hd);
    const __m512 zero = _mm512_setzero_ps();
    __m512 two[SHARE];
    UNROLL for (int g = 0; g < G; g++) two[g] = _mm512_broadcast_f32x8(_mm256_maskz_loadu_ps(mask, q + g * hd));
    for (int j = 0; j < n; j += 16) {
        __m512 quad[SHARE][4];
        UNROLL for (int i = 0; i < 4; i++) {
            const char *const *k = key + j + 4 * i;
            if (j + 4 * i >= n) {
                UNROLL for (int g = 0; g < G; g++) quad[g][i] = zero;
                continue;
            }
            const __m512 ab = load_two(type, mask, k[0], k[1]), cd = load_two(type, mask, k[2], k[3]);
            UNROLL for (int g = 0; g < G; g++) /* lanes 8-15 of a key are +0 and still added: -0 + +0 is +0 */
                quad[g][i] = fold_quad(ADD, _mm512_add_ps(_mm512_fmadd_ps(two[g], ab, zero), zero),
                                       _mm512_add_ps(_mm512_fmadd_ps(two[g], cd, zero), zero));
        }
        UNROLL for (int g = 0; g < G; g++)
            _mm512_store_ps(s[g] + j, _mm512_mul_ps(fold_quads(ADD, quad[g]), _mm512_set1_ps(scale)));
    }
}

INLINE void score_wide(const int type, const int G, const float *q, int hd, const char *const *key, const char *const *next,
                       int n, float scale, float (*s)[WG_CHUNK_KEYS])
{
    const int size = type == WG_F32 ? 4 : 2, full = hd / 16 * 16;
    const __mmask16 mask = first16(hd - full);
    for (int j = 0; j < n; j += 16) {
        __m512 quad[SHARE][4];
        UNROLL for (int i = 0; i < 4; i++)
            UNROLL for (int g = 0; g < G; g++) quad[g][i] = _mm512_setzero_ps();
        for (int i = 0; i < 4 && j + 4 * i < n; i++) {
            const char *const *k = key + j + 4 * i;
            __m512 sum[SHARE][4];
            UNROLL for (int g = 0; g < G; g++)
                UNROLL for (int e = 0; e < 4; e++) sum[g][e] = _mm512_setzero_ps();
            for (int d = 0; d < full; d += 16) {
                __m512 x[4];
                UNROLL for (int e = 0; e < 4; e++) {
                    x[e] = load16(type, k[e] + d * size);
                    if (d * size % 64 == 0) _mm_prefetch(next[j + 4 * i + e] + d * size, _MM_HINT_T1);
                }
                UNROLL for (int g = 0; g < G; g++) {
                    const __m512 b = _mm512_loadu_ps(q + g * hd + d);
                    UNROLL for (int e = 0; e < 4; e++) sum[g][e] = _mm512_fmadd_ps(b, x[e], sum[g][e]);
                }
            }
            if (mask)
                UNROLL for (int g = 0; g < G; g++) {
                    const __m512 b = _mm512_maskz_loadu_ps(mask, q + g * hd + full);
                    UNROLL for (int e = 0; e < 4; e++)
                        sum[g][e] = _mm512_mask3_fmadd_ps(b, load16_mask(type, mask, k[e] + full * size), sum[g][e], mask);
                }
            UNROLL for (int g = 0; g < G; g++)
                quad[g][i] = fold_quad(ADD, fold_pair(ADD, sum[g][0], sum[g][1]), fold_pair(ADD, sum[g][2], sum[g][3]));
        }
        UNROLL for (int g = 0; g < G; g++)
            _mm512_store_ps(s[g] + j, _mm512_mul_ps(fold_quads(ADD, quad[g]), _mm512_set1_ps(scale)));
    }
}

/* ---- values: H heads x V vectors. v[h]: bytes from a key to the head's values; o[h]: the head's outputs. */
INLINE void mix(const int type, const int H, const int V, const int shared, const state *st, int h0, const char *const *key,
                const char *const *next, int n, const size_t *v, float *const *o, int d, __mmask16 mask)
{
    const int size = type == WG_F32 ? 4 : 2;
    __m512 sum[HEADS][WIDE];
    UNROLL for (int h = 0; h < H; h++)
        UNROLL for (int i = 0; i < V; i++) {
            const float *at = o[h0 + h] + d + 16 * i;
            sum[h][i] =
                _mm512_mul_ps(V > 1 ? _mm512_loadu_ps(at) : _mm512_maskz_loadu_ps(mask, at), _mm512_set1_ps(st->c[h0 + h]));
        }
    for (int j = 0; j < n; j++) {
        __m512 x[WIDE];
        UNROLL for (int h = 0; h < H; h++) {
            const char *at = key[j] + v[h0 + h] + d * size;
            if (h == 0 || !shared)
                UNROLL for (int i = 0; i < V; i++) {
                    x[i] = V > 1 ? load16(type, at + 16 * i * size) : load16_mask(type, mask, at);
                    if (V > 1 && i * size % 4 == 0) _mm_prefetch(next[j] + v[h0 + h] + (d + 16 * i) * size, _MM_HINT_T1);
                }
            const __m512 w = _mm512_set1_ps(st->s[h0 + h][j]);
            UNROLL for (int i = 0; i < V; i++) sum[h][i] = _mm512_fmadd_ps(w, x[i], sum[h][i]);
        }
    }
    UNROLL for (int h = 0; h < H; h++)
        UNROLL for (int i = 0; i < V; i++) {
            float *at = o[h0 + h] + d + 16 * i;
            if (V > 1) _mm512_storeu_ps(at, sum[h][i]);
            else _mm512_mask_storeu_ps(at, mask, sum[h][i]);
        }
}

/* ---- one tile of heads */
typedef void score_fn(const float *q, int hd, const char *const *key, const char *const *next, int n, float scale,
                      float (*s)[WG_CHUNK_KEYS]);
typedef void mix_fn(const state *st, int h0, const char *const *key, const char *const *next, int n, const size_t *v,
                    float *const *o, int d, __mmask16 mask);

#define SCORE(name, type, G)                                                                                                \
    static void name##_score##G(const float *q, int hd, const char *const *key, const char *const *next, int n, float scale, \
                                float (*s)[WG_CHUNK_KEYS])                                                                  \
    {                                                                                                                       \
        if (hd <= 8) score_narrow(type, G, q, hd, key, n, scale, s);                                                        \
        else score_wide(type, G, q, hd, key, next, n, scale, s);                                                            \
    }
#define MIX(name, type, H, V, shared)                                                                                       \
    static void name##_mix##H##_##V##_##shared(const state *st, int h0, const char *const *key, const char *const *next,    \
                                               int n, const size_t *v, float *const *o, int d, __mmask16 mask)              \
    {                                                                                                                       \
        mix(type, H, V, shared, st, h0, key, next, n, v, o, d, mask);                                                       \
    }
/* mix[heads: 1, 2, many][shared?][several vectors?] */
typedef struct kind {
    score_fn *score[SHARE + 1];
    mix_fn *mix[3][2][2];
} kind;
#define KIND(name, type)                                                                                                    \
    SCORE(name, type, 1) SCORE(name, type, 2) SCORE(name, type, 3) SCORE(name, type, 4)                                      \
    MIX(name, type, 1, 1, 0) MIX(name, type, 1, 4, 0) MIX(name, type, 2, 1, 0) MIX(name, type, 2, 4, 0)                      \
    MIX(name, type, 2, 1, 1) MIX(name, type, 2, 4, 1) MIX(name, type, 8, 1, 0) MIX(name, type, 4, 4, 0)                      \
    MIX(name, type, 8, 1, 1) MIX(name, type, 4, 4, 1)                                                                       \
    static const kind name = {                                                                                              \
        { 0, name##_score1, name##_score2, name##_score3, name##_score4 },                                                  \
        { { { name##_mix1_1_0, name##_mix1_4_0 }, { name##_mix1_1_0, name##_mix1_4_0 } },                                   \
          { { name##_mix2_1_0, name##_mix2_4_0 }, { name##_mix2_1_1, name##_mix2_4_1 } },                                   \
          { { name##_mix8_1_0, name##_mix4_4_0 }, { name##_mix8_1_1, name##_mix4_4_1 } } },                                 \
    };
KIND(f32, WG_F32)
KIND(f16, WG_F16)
KIND(bf16, WG_BF16)

/* Adds the chunk's values to all heads of the tile. */
static void mix_all(const kind *k, const state *st, int heads, int hd, const char *const *key, const char *const *next, int n,
                    const size_t *v, float *const *o)
{
    for (int d = 0; d < hd;) {
        const int four = hd - d >= 64, many = four ? 4 : 8;
        for (int h = 0, step; h < heads; h += step) {
            step = heads - h >= many ? many : heads - h >= 2 ? 2 : 1;
            k->mix[step > 2 ? 2 : step - 1][v[h] == v[h + step - 1]][four](st, h, key, next, n, v, o, d, first16(hd - d));
        }
        d += four ? 64 : 16;
    }
}

/* at[h]: bytes from a slot's keys to those of head h's kv head. */
static void attend(const kind *k, const float *q, const wg_row_keys *keys, int heads, int hd, float scale, float *out,
                   const size_t *at)
{
    state st;
    const char *key[2][WG_CHUNK_KEYS], *head_key[2][WG_CHUNK_KEYS]; /* of this chunk and of the next, which is prefetched */
    size_t v[HEADS];
    float *o[HEADS];
    wg_key_walk walk = { keys, 0, keys->anc };
    memset(out, 0, (size_t)heads * (size_t)hd * sizeof *out);
    for (int h = 0; h < heads; h++) v[h] = keys->kv->value_at + at[h], o[h] = out + h * hd;
    for (int i = 0; i < 16; i++) st.m[i] = -INFINITY, st.l[i] = 0;
    int n = wg_chunk_next(&walk, key[0], NULL);
    for (int now = 0, then; n > 0; n = then, now = !now) {
        then = wg_chunk_next(&walk, key[!now], NULL);
        const int all = (n + 3) / 4 * 4;
        for (int j = then; j < all; j++) key[!now][j] = key[now][j]; /* nothing more to prefetch */
        for (int h = 0, share; h < heads; h += share) {
            for (share = 1; share < SHARE && h + share < heads && at[h + share] == at[h];) share++;
            for (int j = 0; j < all; j++) head_key[0][j] = key[now][j] + at[h], head_key[1][j] = key[!now][j] + at[h];
            k->score[share](q + h * hd, hd, head_key[0], head_key[1], n, scale, st.s + h);
        }
        weigh_all(&st, heads, n);
        mix_all(k, &st, heads, hd, key[now], key[!now], n, v, o);
    }
    for (int h = 0; h < heads; h++)
        for (int d = 0; d < hd; d++) o[h][d] /= st.l[h];
}

void wg_attention_avx512(const float *q, const wg_row_keys *keys, int heads, int kv_heads, int hd, float scale, float *out,
                         int h0, int h1)
{
    const int type = keys->kv->type;
    if (type == WG_KV_Q8) {
        wg_attention_q8_avx512(q, keys, heads, kv_heads, hd, scale, out, h0, h1);
        return;
    }
    const kind *k = type == WG_F32 ? &f32 : type == WG_F16 ? &f16 : &bf16;
    for (int h = h0, n; h < h1; h += n) {
        size_t at[HEADS];
        n = h1 - h < HEADS ? h1 - h : HEADS;
        for (int i = 0; i < n; i++) at[i] = (size_t)((h + i) * kv_heads / heads * hd) * (type == WG_F32 ? 4 : 2);
        attend(k, q + h * hd, keys, n, hd, scale, out + h * hd, at);
    }
}
