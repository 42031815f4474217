/* SPDX-License-Identifier: MIT
 * Attention of one row on 8-lane registers, up to two query heads of a kv head together through the chunks of ref/attention.c:
 * they share the loads and conversions of keys and values. Float caches: a key's sixteen lanes are two vectors, and the folds
 * of 8 keys are done together, level by level. WG_KV_Q8: |key| times (query with the key's signs) is a vpmaddubsw; its pairs
 * stay below 2^15 because no code is -128. The next chunk is asked for while this one is used. */
#include "kernels/x86/avx2.h"

#include "kernels/lanes.h"
#include "kernels/q8.h"
#include "kernels/variants.h"
#include "kernels/key_walk.h"

enum {
    PAIR = 2,    /* query heads of a tile */
    VECTORS = 8, /* of outputs summed together, for all heads */
    BLOCKS = WG_MAX_HEAD / WG_KV_BLOCK,
};

typedef struct tile {
    const float *q;                                 /* (PAIR, hd) */
    _Alignas(32) int8_t code[PAIR][WG_MAX_HEAD];    /* WG_KV_Q8: the same as codes, padded with zeros to whole blocks, */
    float by[PAIR][BLOCKS];                         /* and their scales times the attention's */
    _Alignas(32) float s[PAIR][WG_CHUNK_KEYS];      /* scores, then weights */
    _Alignas(32) float w[PAIR][WG_CHUNK_KEYS];      /* WG_KV_Q8: weights times the values' scales */
    _Alignas(32) float scale[WG_CHUNK_KEYS];        /* WG_KV_Q8: of a block of every key, or value */
    float m[PAIR], l[PAIR], c[PAIR];
} tile;

static inline size_t size_of(const int type) { return wg_kv_row_bytes(type, 1); }

/* ---- scores of a float cache */

/* Sixteen lanes of 4 keys for G heads, folded to 2 lanes each: [k0 k0 k2 k2 | k1 k1 k3 k3]. */
INLINE void score4(const int type, const int G, const float *q, int hd, const char *const *key, const char *const *next,
                   __m256 out[PAIR])
{
    __m256 lane[2][PAIR][4];
    const int H = G == 1 ? 2 : 1; /* halves of the lanes that are summed together: eight chains */
    UNROLL for (int h0 = 0; h0 < 2; h0 += H) {
        UNROLL for (int i = 0; i < H * G * 4; i++) lane[h0 + i / 4 / G][i / 4 % G][i % 4] = _mm256_setzero_ps();
        int d = 8 * h0;
        for (; d + 8 * H <= hd; d += 16) {
            if ((size_t)d * size_of(type) % 64 == 0)
                UNROLL for (int e = 0; e < 4; e++) _mm_prefetch(next[e] + (size_t)d * size_of(type), _MM_HINT_T1);
            UNROLL for (int i = 0; i < 4 * H; i++) {
                const int at = d + 8 * (i / 4);
                const __m256 k = load8(type, key[i % 4] + (size_t)at * size_of(type));
                UNROLL for (int g = 0; g < G; g++) {
                    __m256 *sum = &lane[h0 + i / 4][g][i % 4];
                    *sum = _mm256_fmadd_ps(_mm256_loadu_ps(q + g * hd + at), k, *sum);
                }
            }
        }
        for (int h = h0; d < hd && h < h0 + H; d += 8, h++) /* an empty lane may turn from -0 to +0: no exp sees it */
            for (int e = 0; e < 4; e++) {
                const int left = hd - d < 8 ? hd - d : 8;
                const char *at = key[e] + (size_t)d * size_of(type);
                const __m256 k = left == 8 ? load8(type, at) : load8_part(type, left, at);
                UNROLL for (int g = 0; g < G; g++)
                    lane[h][g][e] = _mm256_fmadd_ps(load8_part(WG_F32, left, q + g * hd + d), k, lane[h][g][e]);
            }
    }
    UNROLL for (int g = 0; g < G; g++) {
        __m256 v[4], pair[2];
        UNROLL for (int e = 0; e < 4; e++) v[e] = _mm256_add_ps(lane[0][g][e], lane[1][g][e]);
        UNROLL for (int i = 0; i < 2; i++) pair[i] = _mm256_add_ps(_mm256_permute2f128_ps(v[2 * i], v[2 * i + 1], 0x20),
                                                                   _mm256_permute2f128_ps(v[2 * i], v[2 * i + 1], 0x31));
        out[g] = _mm256_add_ps(_mm256_shuffle_ps(pair[0], pair[1], 0x44), _mm256_shuffle_ps(pair[0], pair[1], 0xEE));
    }
}

INLINE void score(const int type, const int G, tile *t, int hd, const char *const *key, const char *const *next, int n,
                  float scale)
{
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    for (int j = 0; j < n; j += 8) {
        __m256 low[PAIR], high[PAIR];
        score4(type, G, t->q, hd, key + j, next + j, low);
        if (j + 4 < n) score4(type, G, t->q, hd, key + j + 4, next + j + 4, high);
        else UNROLL for (int g = 0; g < G; g++) high[g] = _mm256_setzero_ps();
        UNROLL for (int g = 0; g < G; g++) {
            const __m256 a = _mm256_shuffle_ps(low[g], high[g], 0x88), b = _mm256_shuffle_ps(low[g], high[g], 0xDD);
            const __m256 sum = _mm256_add_ps(a, b);
            _mm256_store_ps(t->s[g] + j, _mm256_mul_ps(_mm256_permutevar8x32_ps(sum, order), _mm256_set1_ps(scale)));
        }
    }
}

/* ---- scores of a WG_KV_Q8 cache */

static void take_scales(tile *t, const float *const *scale, int n, size_t at)
{
    for (int j = 0; j < n; j++) t->scale[j] = scale[j][at];
    for (int j = n; j % 8; j++) t->scale[j] = 0;
}

/* A block of up to 64 codes, with zeros behind. */
INLINE void load_block(const char *p, int width, __m256i k[2])
{
    char block[WG_KV_BLOCK] = { 0 };
    if (width < WG_KV_BLOCK) p = memcpy(block, p, (size_t)width);
    UNROLL for (int i = 0; i < 2; i++) k[i] = _mm256_loadu_si256((const void *)(p + 32 * i));
}

/* Block b of n keys, whose scales are taken. */
INLINE void score_q8(const int G, tile *t, int b, const char *const *key, const char *const *next, int n, size_t at, int width)
{
    const __m256i one = _mm256_set1_epi16(1);
    __m256i q[PAIR][2];
    UNROLL for (int g = 0; g < G; g++)
        UNROLL for (int i = 0; i < 2; i++) q[g][i] = _mm256_load_si256((const void *)(t->code[g] + WG_KV_BLOCK * b + 32 * i));
    for (int j = 0; j < n; j += 8) {
        __m256i sum[PAIR][8];
        UNROLL for (int e = 0; e < 8; e++) {
            const int from = j + e < n ? j + e : n - 1;
            __m256i k[2];
            load_block(key[from] + at, width, k);
            _mm_prefetch(next[from] + at, _MM_HINT_T1);
            UNROLL for (int g = 0; g < G; g++) {
                __m256i part[2];
                UNROLL for (int i = 0; i < 2; i++)
                    part[i] = _mm256_madd_epi16(
                        _mm256_maddubs_epi16(_mm256_abs_epi8(k[i]), _mm256_sign_epi8(q[g][i], k[i])), one);
                sum[g][e] = _mm256_add_epi32(part[0], part[1]);
            }
        }
        UNROLL for (int g = 0; g < G; g++) {
            __m256i *v = sum[g];
            const __m256i low = _mm256_hadd_epi32(_mm256_hadd_epi32(v[0], v[1]), _mm256_hadd_epi32(v[2], v[3]));
            const __m256i high = _mm256_hadd_epi32(_mm256_hadd_epi32(v[4], v[5]), _mm256_hadd_epi32(v[6], v[7]));
            const __m256i dot = _mm256_add_epi32(_mm256_permute2x128_si256(low, high, 0x20),
                                                 _mm256_permute2x128_si256(low, high, 0x31));
            const __m256 x = _mm256_mul_ps(_mm256_cvtepi32_ps(dot), _mm256_set1_ps(t->by[g][b]));
            _mm256_store_ps(t->s[g] + j, _mm256_fmadd_ps(x, _mm256_load_ps(t->scale + j),
                                                         b ? _mm256_load_ps(t->s[g] + j) : _mm256_setzero_ps()));
        }
    }
}

/* ---- weights: s -> exp(s - m'), n of them; *m = m'; returns their lanes16 sum */
INLINE float weigh(float *s, int n, float *m)
{
    _Alignas(32) float lane[16];
    float max = *m;
    for (int j = 0; j < n; j++) max = s[j] > max ? s[j] : max;
    __m256 sum[2] = { _mm256_setzero_ps(), _mm256_setzero_ps() };
    for (int j = 0; j < n; j += 8) {
        const __m256 w = _mm256_and_ps(exp32x8(_mm256_sub_ps(_mm256_load_ps(s + j), _mm256_set1_ps(max))),
                                       _mm256_castsi256_ps(first8(n - j)));
        _mm256_store_ps(s + j, w);
        sum[j / 8 % 2] = _mm256_add_ps(sum[j / 8 % 2], w);
    }
    *m = max;
    _mm256_store_ps(lane, sum[0]);
    _mm256_store_ps(lane + 8, sum[1]);
    return wg_fold16(lane);
}

/* ---- values: o += sum_j w_j v_j for G heads x V vectors of outputs, after o *= c; `left` < 8 V only for V = 1. at: bytes from
 * a slot's keys to the values. */
INLINE void mix(const int type, const int G, const int V, const tile *t, const char *const *key, const char *const *next, int n,
                size_t at, float *o, int hd, int left)
{
    const float(*w)[WG_CHUNK_KEYS] = type == WG_KV_Q8 ? t->w : t->s;
    const size_t size = size_of(type);
    __m256 sum[PAIR][VECTORS];
    UNROLL for (int g = 0; g < G; g++)
        UNROLL for (int i = 0; i < V; i++) {
            const float *from = o + g * hd + 8 * i;
            const __m256 old = left >= 8 ? _mm256_loadu_ps(from) : load8_part(WG_F32, left, from);
            sum[g][i] = _mm256_mul_ps(old, _mm256_set1_ps(t->c[g]));
        }
    for (int j = 0; j < n; j++) {
        const char *v = key[j] + at;
        if (V > 1) _mm_prefetch(next[j] + at, _MM_HINT_T1);
        UNROLL for (int i = 0; i < V; i++) {
            const __m256 x = left >= 8 ? load8(type, v + (size_t)(8 * i) * size) : load8_part(type, left, v);
            UNROLL for (int g = 0; g < G; g++) sum[g][i] = _mm256_fmadd_ps(_mm256_set1_ps(w[g][j]), x, sum[g][i]);
        }
    }
    UNROLL for (int g = 0; g < G; g++)
        UNROLL for (int i = 0; i < V; i++) {
            if (left >= 8) _mm256_storeu_ps(o + g * hd + 8 * i, sum[g][i]);
            else _mm256_maskstore_ps(o + g * hd, first8(left), sum[g][i]);
        }
}

/* Elements [d,end) of the values, one block of a WG_KV_Q8 cache. */
INLINE void mix_block(const int type, const int G, const tile *t, const char *const *key, const char *const *next, int n,
                      size_t value_at, float *out, int hd, int d, int end)
{
    const int most = 8 * VECTORS / G;
    for (int wide; d < end; d += wide) {
        const size_t at = value_at + (size_t)d * size_of(type);
        wide = end - d >= most ? most : end - d >= 32 ? 32 : 8;
        if (wide == most) mix(type, G, VECTORS / G, t, key, next, n, at, out + d, hd, wide);
        else if (wide == 32) mix(type, G, 4, t, key, next, n, at, out + d, hd, wide);
        else if (end - d >= 8) mix(type, G, 1, t, key, next, n, at, out + d, hd, 8);
        else mix(type, G, 1, t, key, next, n, at, out + d, hd, end - d);
    }
}

/* ---- a tile: G query heads that read kv head `head` */

static void prepare(tile *t, int G, int hd, float scale)
{
    memset(t->code, 0, sizeof t->code);
    for (int g = 0; g < G; g++)
        for (int d = 0; d < hd; d += WG_KV_BLOCK)
            t->by[g][d / WG_KV_BLOCK] =
                wg_q8_block(t->q + g * hd + d, hd - d < WG_KV_BLOCK ? hd - d : WG_KV_BLOCK, t->code[g] + d) * scale;
}

INLINE void attend(const int type, const int G, const float *q, const wg_row_keys *keys, int head, int hd, float scale,
                   float *out)
{
    const char *key[2][WG_CHUNK_KEYS]; /* of this chunk and of the next */
    const float *by[2][WG_CHUNK_KEYS];
    const int blocks = wg_kv_blocks(hd), slots = keys->kv->page_slots;
    const size_t at = (size_t)(head * hd) * size_of(type), value_at = keys->kv->value_at;
    tile t;
    wg_key_walk walk = { keys, 0, keys->anc };
    t.q = q;
    if (type == WG_KV_Q8) prepare(&t, G, hd, scale);
    for (int g = 0; g < G; g++) t.m[g] = -INFINITY, t.l[g] = 0;
    memset(out, 0, (size_t)(G * hd) * sizeof *out);
    int n = wg_chunk_next(&walk, key[0], type == WG_KV_Q8 ? by[0] : NULL);
    for (int j = 0; j < (n + 3) / 4 * 4; j++) key[0][j] += at;
    for (int now = 0, then; n > 0; n = then, now = !now) {
        const char **k = key[now], **next = key[!now];
        then = wg_chunk_next(&walk, next, type == WG_KV_Q8 ? by[!now] : NULL);
        for (int j = 0; j < (then + 3) / 4 * 4; j++) next[j] += at;
        for (int j = then; j < (n + 3) / 4 * 4; j++) next[j] = k[j]; /* nothing more to ask for */
        if (type != WG_KV_Q8) score(type, G, &t, hd, k, next, n, scale);
        for (int b = 0; type == WG_KV_Q8 && b < blocks; b++) {
            const int width = hd - b * WG_KV_BLOCK < WG_KV_BLOCK ? hd - b * WG_KV_BLOCK : WG_KV_BLOCK;
            take_scales(&t, by[now], n, (size_t)((head * blocks + b) * slots));
            score_q8(G, &t, b, k, next, n, (size_t)(b * WG_KV_BLOCK), width);
        }
        for (int g = 0; g < G; g++) {
            const float before = t.m[g], sum = weigh(t.s[g], n, &t.m[g]);
            t.c[g] = wg_exp32_of(before - t.m[g]); /* the first time exp(-inf) = 0 */
            t.l[g] = fmaf(t.l[g], t.c[g], sum);
        }
        if (type != WG_KV_Q8) mix_block(type, G, &t, k, next, n, value_at, out, hd, 0, hd);
        for (int b = 0; type == WG_KV_Q8 && b < blocks; b++) {
            const int d = b * WG_KV_BLOCK, end = hd - d < WG_KV_BLOCK ? hd : d + WG_KV_BLOCK;
            take_scales(&t, by[now], n, value_at / sizeof(float) + (size_t)((head * blocks + b) * slots));
            for (int g = 0; g < G; g++)
                for (int j = 0; j < n; j++) t.w[g][j] = t.s[g][j] * t.scale[j];
            mix_block(type, G, &t, k, next, n, value_at, out, hd, d, end);
        }
    }
    for (int g = 0; g < G; g++)
        for (int d = 0; d < hd; d++) out[g * hd + d] /= t.l[g];
}

typedef void attend_fn(const float *q, const wg_row_keys *keys, int head, int hd, float scale, float *out);
#define ATTEND(name, type, G)                                                                                               \
    static void name##G(const float *q, const wg_row_keys *keys, int head, int hd, float scale, float *out)                  \
    {                                                                                                                       \
        attend(type, G, q, keys, head, hd, scale, out);                                                                     \
    }
ATTEND(f32_, WG_F32, 1) ATTEND(f32_, WG_F32, 2) ATTEND(f16_, WG_F16, 1) ATTEND(f16_, WG_F16, 2)
ATTEND(bf16_, WG_BF16, 1) ATTEND(bf16_, WG_BF16, 2) ATTEND(q8_, WG_KV_Q8, 1) ATTEND(q8_, WG_KV_Q8, 2)

void wg_attention_avx2(const float *q, const wg_row_keys *keys, int heads, int kv_heads, int hd, float scale, float *out,
                       int h0, int h1)
{
    static attend_fn *const fn[4][PAIR] = { { f32_1, f32_2 }, { f16_1, f16_2 }, { bf16_1, bf16_2 }, { q8_1, q8_2 } };
    const int type = keys->kv->type, row = type == WG_F32 ? 0 : type == WG_F16 ? 1 : type == WG_BF16 ? 2 : 3;
    for (int h = h0, n; h < h1; h += n) {
        const int head = h * kv_heads / heads;
        n = h + 1 < h1 && (h + 1) * kv_heads / heads == head ? 2 : 1;
        fn[row][n - 1](q + h * hd, keys, head, hd, scale, out + h * hd);
    }
}
