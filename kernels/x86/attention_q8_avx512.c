/* SPDX-License-Identifier: MIT
 * Attention of one row over a cache of 8-bit codes, up to 8 query heads at a time.
 *
 * Scores: a chunk's keys of a kv head are turned round once, [4 elements][key], for all query heads that share it; then one
 * vpdpbusd is 16 keys x 4 elements of one query head, and no sum is horizontal. Keys are made unsigned (code + 128) on the way,
 * sums start at -128 times the sum of the query's codes. Integer sums are exact, so their order is free.
 * Values: codes become floats as they are loaded, for as many heads as have sums in registers; the value's scale goes into the
 * weight, as ops.h says. The next chunk's lines are asked for while this one is used. */
#include "kernels/x86/attention_avx512.h"

#include <string.h>

#include "kernels/q8.h"
#include "kernels/variants.h"
#include "kernels/key_walk.h"

enum {
    BLOCKS = WG_MAX_HEAD / WG_KV_BLOCK,
    STEPS = WG_KV_BLOCK / 4,
    GROUPS = WG_CHUNK_KEYS / 16,
};

/* The query heads of a tile as codes, padded with zeros to whole blocks; in scale the attention's is contained. */
typedef struct queries {
    _Alignas(64) int8_t code[HEADS][WG_MAX_HEAD];
    int32_t start[HEADS][BLOCKS];
    float scale[HEADS][BLOCKS];
} queries;

/* One kv head's share of a chunk: keys turned round, and one block's scales of all keys. */
typedef struct share {
    _Alignas(64) __m512i key[STEPS][GROUPS];
    _Alignas(64) float by[WG_CHUNK_KEYS];
    _Alignas(64) float w[HEADS][WG_CHUNK_KEYS]; /* weights times the values' scales */
} share;

/* Scale and codes of up to 64 elements: 64 codes, zeros behind. */
INLINE float quantise(const float *x, int n, __m128i code[4])
{
    const __m512 low = _mm512_set1_ps(-WG_ACT_CLAMP), high = _mm512_set1_ps(WG_ACT_CLAMP);
    __m512 v[4], max = _mm512_setzero_ps();
    UNROLL for (int i = 0; i < 4; i++) {
        const __m512 from = _mm512_maskz_loadu_ps(first16(n - 16 * i > 0 ? n - 16 * i : 0), x + 16 * i);
        v[i] = _mm512_min_ps(_mm512_max_ps(from, low), high);
        max = _mm512_max_ps(max, _mm512_abs_ps(v[i]));
    }
    const float d = wg_q8_scale(_mm512_reduce_max_ps(max));
    const __m512 inverse = _mm512_set1_ps(d > 0 ? 1.0f / d : 0.0f);
    UNROLL for (int i = 0; i < 4; i++) code[i] = _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(_mm512_mul_ps(v[i], inverse)));
    return d;
}

void wg_kv_store_q8_avx512(const wg_kv_view *kv, int8_t *to, float *scale, const float *from)
{
    for (int at = 0; at < kv->kv_dim; at += kv->head_dim)
        for (int d = 0; d < kv->head_dim; d += WG_KV_BLOCK, scale += kv->page_slots) {
            const int n = kv->head_dim - d;
            __m128i code[4];
            *scale = quantise(from + at + d, n, code);
            UNROLL for (int i = 0; i < 4; i++)
                _mm_mask_storeu_epi8(to + at + d + 16 * i, first16(n - 16 * i > 0 ? n - 16 * i : 0), code[i]);
        }
}

static void prepare(queries *to, const float *q, int heads, int hd, float scale)
{
    for (int h = 0; h < heads; h++)
        for (int d = 0; d < hd; d += WG_KV_BLOCK) {
            __m128i code[4];
            to->scale[h][d / WG_KV_BLOCK] = quantise(q + h * hd + d, hd - d, code) * scale;
            __m512i sum = _mm512_setzero_si512();
            UNROLL for (int i = 0; i < 4; i++) {
                _mm_store_si128((void *)(to->code[h] + d + 16 * i), code[i]);
                sum = _mm512_add_epi32(sum, _mm512_cvtepi8_epi32(code[i]));
            }
            to->start[h][d / WG_KV_BLOCK] = -128 * _mm512_reduce_add_epi32(sum);
        }
}

/* ---- scores */

/* 16 keys x 64 bytes -> [4 bytes][key]: unpacked within lanes twice, then lanes are dealt out twice. */
INLINE void turn(__m512i v[16])
{
    __m512i t[16];
    UNROLL for (int i = 0; i < 16; i += 2) {
        t[i] = _mm512_unpacklo_epi32(v[i], v[i + 1]);
        t[i + 1] = _mm512_unpackhi_epi32(v[i], v[i + 1]);
    }
    UNROLL for (int i = 0; i < 16; i += 4)
        UNROLL for (int h = 0; h < 2; h++) {
            v[i + 2 * h] = _mm512_unpacklo_epi64(t[i + h], t[i + 2 + h]);
            v[i + 2 * h + 1] = _mm512_unpackhi_epi64(t[i + h], t[i + 2 + h]);
        }
    UNROLL for (int e = 0; e < 4; e++) { /* v[4 i + e]: bytes 4 (4 lane + e) of the keys 4 i .. 4 i + 3 */
        const __m512i a = _mm512_shuffle_i32x4(v[e], v[4 + e], 0x88), b = _mm512_shuffle_i32x4(v[e], v[4 + e], 0xDD);
        const __m512i c = _mm512_shuffle_i32x4(v[8 + e], v[12 + e], 0x88), d = _mm512_shuffle_i32x4(v[8 + e], v[12 + e], 0xDD);
        t[e] = _mm512_shuffle_i32x4(a, c, 0x88);
        t[8 + e] = _mm512_shuffle_i32x4(a, c, 0xDD);
        t[4 + e] = _mm512_shuffle_i32x4(b, d, 0x88);
        t[12 + e] = _mm512_shuffle_i32x4(b, d, 0xDD);
    }
    UNROLL for (int i = 0; i < 16; i++) v[i] = t[i];
}

/* Block of `width` bytes at `at` of n keys, turned round; keys past n repeat the last. */
static void turn_keys(share *to, const char *const *key, const char *const *next, int n, size_t at, int width)
{
    const __mmask64 mask = width >= 64 ? ~(__mmask64)0 : ((__mmask64)1 << width) - 1;
    const __m512i flip = _mm512_set1_epi8(-128);
    for (int g = 0; 16 * g < n; g++) {
        __m512i v[16];
        UNROLL for (int i = 0; i < 16; i++) {
            const int j = 16 * g + i < n ? 16 * g + i : n - 1;
            v[i] = _mm512_xor_si512(_mm512_maskz_loadu_epi8(mask, key[j] + at), flip);
            _mm_prefetch(next[j] + at, _MM_HINT_T1);
        }
        turn(v);
        UNROLL for (int i = 0; i < 16; i++) _mm512_store_si512(&to->key[i][g], v[i]);
    }
}

/* One block's scales of all keys: mostly sixteen slots of a page, which lie together. at: from a key's first scale. */
static void take_scales(share *to, const float *const *scale, const float *const *next, int n, size_t at, int page_slots)
{
    for (int j = 0; j < n; j += 16) {
        _mm_prefetch(next[j] + at, _MM_HINT_T0);
        if (page_slots >= 16 && j + 16 <= n && scale[j + 15] - scale[j] == 15) {
            _mm512_store_ps(to->by + j, _mm512_loadu_ps(scale[j] + at));
            continue;
        }
        for (int i = j; i < j + 16; i++) to->by[i] = i < n ? scale[i][at] : 0;
    }
}

/* Scores of H heads from h on and G groups of 16 keys from g on; `first`: block 0, sums start at 0. */
INLINE void score(const int H, const int G, const share *in, const queries *q, int h, int b, int g, int first,
                  float (*s)[WG_CHUNK_KEYS])
{
    __m512i sum[SHARE][GROUPS];
    UNROLL for (int e = 0; e < H; e++)
        UNROLL for (int i = 0; i < G; i++) sum[e][i] = _mm512_set1_epi32(q->start[h + e][b]);
    for (int j = 0; j < STEPS; j++)
        UNROLL for (int e = 0; e < H; e++) {
            int32_t four;
            memcpy(&four, q->code[h + e] + WG_KV_BLOCK * b + 4 * j, 4);
            const __m512i x = _mm512_set1_epi32(four);
            UNROLL for (int i = 0; i < G; i++) sum[e][i] = _mm512_dpbusd_epi32(sum[e][i], in->key[j][g + i], x);
        }
    UNROLL for (int e = 0; e < H; e++)
        UNROLL for (int i = 0; i < G; i++) {
            float *at = s[h + e] + 16 * (g + i);
            const __m512 dot = _mm512_mul_ps(_mm512_cvtepi32_ps(sum[e][i]), _mm512_set1_ps(q->scale[h + e][b]));
            _mm512_store_ps(at, _mm512_fmadd_ps(dot, _mm512_load_ps(in->by + 16 * (g + i)),
                                                first ? _mm512_setzero_ps() : _mm512_load_ps(at)));
        }
}

#define SCORE(H)                                                                                                            \
    static void score##H(const share *in, const queries *q, int h, int b, int n, float (*s)[WG_CHUNK_KEYS])                  \
    {                                                                                                                       \
        if (n > 48) score(H, 4, in, q, h, b, 0, b == 0, s);                                                                 \
        else                                                                                                                \
            for (int g = 0; 16 * g < n; g++) score(H, 1, in, q, h, b, g, b == 0, s);                                        \
    }
SCORE(1) SCORE(2) SCORE(3) SCORE(4)

/* Scores of the heads [h,end), which share a kv head. */
static void score_all(const share *in, const queries *q, int h, int end, int b, int n, float (*s)[WG_CHUNK_KEYS])
{
    typedef void score_fn(const share *, const queries *, int, int, int, float (*)[WG_CHUNK_KEYS]);
    static score_fn *const fn[SHARE + 1] = { 0, score1, score2, score3, score4 };
    for (int step; h < end; h += step) {
        step = end - h < SHARE ? end - h : SHARE;
        fn[step](in, q, h, b, n, s);
    }
}

/* ---- values */

/* H heads x V vectors from element d on. v: the heads' values from a key on, one place if they share them. mask: V = 1 only. */
INLINE void mix(const int H, const int V, const share *in, const float *c, const char *const *key, const char *const *next,
                int n, size_t v, float *o, int hd, __mmask16 mask)
{
    __m512 sum[HEADS][4];
    UNROLL for (int h = 0; h < H; h++)
        UNROLL for (int i = 0; i < V; i++) {
            const float *at = o + h * hd + 16 * i;
            sum[h][i] = _mm512_mul_ps(V > 1 ? _mm512_loadu_ps(at) : _mm512_maskz_loadu_ps(mask, at), _mm512_set1_ps(c[h]));
        }
    for (int j = 0; j < n; j++) {
        __m512 x[4];
        UNROLL for (int i = 0; i < V; i++) {
            const char *at = key[j] + v + 16 * i;
            const __m128i code = V > 1 ? _mm_loadu_si128((const void *)at) : _mm_maskz_loadu_epi8(mask, at);
            x[i] = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(code));
        }
        _mm_prefetch(next[j] + v, _MM_HINT_T1);
        UNROLL for (int h = 0; h < H; h++) {
            const __m512 w = _mm512_set1_ps(in->w[h][j]);
            UNROLL for (int i = 0; i < V; i++) sum[h][i] = _mm512_fmadd_ps(w, x[i], sum[h][i]);
        }
    }
    UNROLL for (int h = 0; h < H; h++)
        UNROLL for (int i = 0; i < V; i++) {
            float *at = o + h * hd + 16 * i;
            if (V > 1) _mm512_storeu_ps(at, sum[h][i]);
            else _mm512_mask_storeu_ps(at, mask, sum[h][i]);
        }
}

typedef void mix_fn(const share *in, const float *c, const char *const *key, const char *const *next, int n, size_t v, float *o,
                    int hd, __mmask16 mask);
#define MIX(H, V)                                                                                                           \
    static void mix##H##_##V(const share *in, const float *c, const char *const *key, const char *const *next, int n,        \
                             size_t v, float *o, int hd, __mmask16 mask)                                                    \
    {                                                                                                                       \
        mix(H, V, in, c, key, next, n, v, o, hd, mask);                                                                     \
    }
MIX(1, 1) MIX(1, 2) MIX(1, 4) MIX(2, 1) MIX(2, 2) MIX(2, 4) MIX(4, 1) MIX(4, 2) MIX(4, 4) MIX(8, 1) MIX(8, 2)

/* One block of `width` values from element d on, of the heads [h,end), which share them. */
static void mix_block(share *in, const state *st, int h, int end, const char *const *key, const char *const *next, int n,
                      size_t v, float *out, int hd, int d, int width)
{
    static mix_fn *const fn[4][3] = {
        { mix1_1, mix1_2, mix1_4 }, { mix2_1, mix2_2, mix2_4 }, { mix4_1, mix4_2, mix4_4 }, { mix8_1, mix8_2, mix8_2 }
    };
    for (int step; h < end; h += step) {
        const int level = end - h >= 8 ? 3 : end - h >= 4 ? 2 : end - h >= 2 ? 1 : 0;
        step = 1 << level;
        for (int e = 0; e < step; e++)
            for (int j = 0; j < n; j += 16)
                _mm512_store_ps(in->w[e] + j, _mm512_mul_ps(_mm512_load_ps(st->s[h + e] + j), _mm512_load_ps(in->by + j)));
        for (int at = 0, wide; at < width; at += wide) {
            wide = width - at >= 64 && level < 3 ? 64 : width - at >= 32 ? 32 : 16;
            fn[level][wide / 32](in, st->c + h, key, next, n, v + (size_t)(d + at), out + h * hd + d + at, hd,
                                 first16(width - at));
        }
    }
}

/* ---- one tile of heads. kv_head[h]: which one it reads */
static void attend(const float *q, const wg_row_keys *keys, int heads, int hd, float scale, float *out, const int *kv_head)
{
    state st;
    queries me;
    share in;
    const char *key[2][WG_CHUNK_KEYS]; /* of this chunk and of the next */
    const float *by[2][WG_CHUNK_KEYS];
    const int blocks = wg_kv_blocks(hd), slots = keys->kv->page_slots;
    const size_t value_at = keys->kv->value_at, value_by = value_at / sizeof(float);
    wg_key_walk walk = { keys, 0, keys->anc };
    prepare(&me, q, heads, hd, scale);
    memset(out, 0, (size_t)heads * (size_t)hd * sizeof *out);
    for (int i = 0; i < 16; i++) st.m[i] = -INFINITY, st.l[i] = 0;
    int n = wg_chunk_next(&walk, key[0], by[0]);
    for (int now = 0, then; n > 0; n = then, now = !now) {
        then = wg_chunk_next(&walk, key[!now], by[!now]);
        for (int j = then; j < n; j++) key[!now][j] = key[now][j], by[!now][j] = by[now][j]; /* nothing more to prefetch */
        for (int h = 0, end; h < heads; h = end) {
            for (end = h + 1; end < heads && kv_head[end] == kv_head[h];) end++;
            for (int b = 0; b < blocks; b++) {
                turn_keys(&in, key[now], key[!now], n, (size_t)(kv_head[h] * hd + b * WG_KV_BLOCK), hd - b * WG_KV_BLOCK);
                take_scales(&in, by[now], by[!now], n, (size_t)((kv_head[h] * blocks + b) * slots), slots);
                score_all(&in, &me, h, end, b, n, st.s);
            }
        }
        weigh_all(&st, heads, n);
        for (int h = 0, end; h < heads; h = end) {
            for (end = h + 1; end < heads && kv_head[end] == kv_head[h];) end++;
            for (int b = 0; b < blocks; b++) {
                const int d = b * WG_KV_BLOCK, width = hd - d < WG_KV_BLOCK ? hd - d : WG_KV_BLOCK;
                take_scales(&in, by[now], by[!now], n, value_by + (size_t)((kv_head[h] * blocks + b) * slots), slots);
                mix_block(&in, &st, h, end, key[now], key[!now], n, value_at + (size_t)(kv_head[h] * hd), out, hd, d,
                          width);
            }
        }
    }
    for (int h = 0; h < heads; h++)
        for (int d = 0; d < hd; d++) out[h * hd + d] /= st.l[h];
}

void wg_attention_q8_avx512(const float *q, const wg_row_keys *keys, int heads, int kv_heads, int hd, float scale, float *out,
                            int h0, int h1)
{
    for (int h = h0, n; h < h1; h += n) {
        int kv_head[HEADS];
        n = h1 - h < HEADS ? h1 - h : HEADS;
        for (int i = 0; i < n; i++) kv_head[i] = (h + i) * kv_heads / heads;
        attend(q + h * hd, keys, n, hd, scale, out + h * hd, kv_head);
    }
}
