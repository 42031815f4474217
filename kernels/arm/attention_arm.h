/* SPDX-License-Identifier: MIT
 * Attention of one row on 4-lane registers, up to two query heads of a kv head together through the chunks of ref/attention.c:
 * they share the loads and conversions of keys and values. One text for both levels: the file that includes it has defined
 *     int32x4_t dot_bytes(a, b, sum)    sum += the products of 16 codes, in any four lanes: integers, so their order is free
 * Float caches: a key's sixteen lanes are four vectors; 4 keys of one head, or 2 of two, have the registers, and the last folds
 * of 4 keys are done together. The next chunk is asked for while this one is used. */
#ifndef WG_KERNELS_ARM_ATTENTION_ARM_H
#define WG_KERNELS_ARM_ATTENTION_ARM_H

#include "kernels/arm/neon.h"
#include "kernels/key_walk.h"
#include "kernels/lanes.h"
#include "kernels/q8.h"

enum {
    PAIR = 2,  /* query heads of a tile */
    WIDE = 4,  /* sixteens of outputs summed together, for all heads */
    BLOCKS = WG_MAX_HEAD / WG_KV_BLOCK,
};

typedef struct tile {
    const float *q;                                 /* (PAIR, hd) */
    _Alignas(16) int8_t code[PAIR][WG_MAX_HEAD];    /* WG_KV_Q8: the same as codes, padded with zeros to whole blocks, */
    float by[PAIR][BLOCKS];                         /* and their scales times the attention's */
    _Alignas(16) float s[PAIR][WG_CHUNK_KEYS];      /* scores, then weights */
    _Alignas(16) float w[PAIR][WG_CHUNK_KEYS];      /* WG_KV_Q8: weights times the values' scales */
    _Alignas(16) float scale[WG_CHUNK_KEYS];        /* WG_KV_Q8: of a block of every key, or value */
    float m[PAIR], l[PAIR], c[PAIR];
} tile;

INLINE size_t size_of(const int type) { return wg_kv_row_bytes(type, 1); }

/* ---- scores of a float cache */

/* The first two folds: lanes 0..3 are l + (l+8) + ((l+4) + (l+12)). */
INLINE float32x4_t fold4(lanes16 x) { return vaddq_f32(vaddq_f32(x.v[0], x.v[2]), vaddq_f32(x.v[1], x.v[3])); }

/* The third, of two keys: [a a b b]. */
INLINE float32x4_t fold2(float32x4_t a, float32x4_t b)
{
    return vaddq_f32(vcombine_f32(vget_low_f32(a), vget_low_f32(b)), vcombine_f32(vget_high_f32(a), vget_high_f32(b)));
}

/* N keys of G heads, folded to 4 lanes each. */
INLINE void score_keys(const int type, const int G, const int N, const float *q, int hd, const char *const *key,
                       const char *const *next, float32x4_t out[PAIR][4])
{
    lanes16 sum[PAIR][4];
    int d = 0;
    UNROLL for (int g = 0; g < G; g++)
        UNROLL for (int e = 0; e < N; e++) sum[g][e] = zero16();
    for (; d + 16 <= hd; d += 16) {
        lanes16 x[PAIR];
        UNROLL for (int g = 0; g < G; g++) x[g] = load16(WG_F32, q + g * hd + d);
        UNROLL for (int e = 0; e < N; e++) {
            const lanes16 k = load16(type, key[e] + (size_t)d * size_of(type));
            __builtin_prefetch(next[e] + (size_t)d * size_of(type));
            UNROLL for (int g = 0; g < G; g++) sum[g][e] = fma16(sum[g][e], x[g], k);
        }
    }
    if (d < hd) /* an empty lane may turn from -0 to +0: no exp sees it */
        UNROLL for (int e = 0; e < N; e++) {
            const lanes16 k = load16_part(type, hd - d, key[e] + (size_t)d * size_of(type));
            UNROLL for (int g = 0; g < G; g++)
                sum[g][e] = fma16(sum[g][e], load16_part(WG_F32, hd - d, q + g * hd + d), k);
        }
    UNROLL for (int g = 0; g < G; g++)
        UNROLL for (int e = 0; e < N; e++) out[g][e] = fold4(sum[g][e]);
}

INLINE void score(const int type, const int G, tile *t, int hd, const char *const *key, const char *const *next, int n,
                  float scale)
{
    const int N = 4 / G; /* keys that have registers */
    for (int j = 0; j < n; j += 4) {
        float32x4_t part[2][PAIR][4];
        score_keys(type, G, N, t->q, hd, key + j, next + j, part[0]);
        if (N == 2) score_keys(type, G, N, t->q, hd, key + j + 2, next + j + 2, part[1]);
        UNROLL for (int g = 0; g < G; g++) {
            const float32x4_t a = fold2(part[0][g][0], part[0][g][1]);
            const float32x4_t b = fold2(part[2 / N][g][2 % N], part[3 / N][g][3 % N]);
            vst1q_f32(t->s[g] + j, vmulq_n_f32(vpaddq_f32(a, b), scale));
        }
    }
}

/* ---- scores of a WG_KV_Q8 cache */

static void take_scales(tile *t, const float *const *scale, int n, size_t at)
{
    for (int j = 0; j < n; j++) t->scale[j] = scale[j][at];
    for (int j = n; j % 4; j++) t->scale[j] = 0;
}

/* A block of up to 64 codes, with zeros behind. */
INLINE void load_block(const char *p, int width, int8x16_t k[4])
{
    int8_t block[WG_KV_BLOCK] = { 0 };
    if (width < WG_KV_BLOCK) p = memcpy(block, p, (size_t)width);
    UNROLL for (int i = 0; i < 4; i++) k[i] = vld1q_s8((const int8_t *)p + 16 * i);
}

/* Block b of n keys, whose scales are taken. */
INLINE void score_q8(const int G, tile *t, int b, const char *const *key, const char *const *next, int n, size_t at, int width)
{
    int8x16_t q[PAIR][4];
    UNROLL for (int g = 0; g < G; g++)
        UNROLL for (int i = 0; i < 4; i++) q[g][i] = vld1q_s8(t->code[g] + WG_KV_BLOCK * b + 16 * i);
    for (int j = 0; j < n; j += 4) {
        int32x4_t sum[PAIR][4];
        UNROLL for (int e = 0; e < 4; e++) {
            int8x16_t k[4];
            load_block(key[j + e] + at, width, k);
            __builtin_prefetch(next[j + e] + at);
            UNROLL for (int g = 0; g < G; g++) {
                sum[g][e] = vdupq_n_s32(0);
                UNROLL for (int i = 0; i < 4; i++) sum[g][e] = dot_bytes(k[i], q[g][i], sum[g][e]);
            }
        }
        UNROLL for (int g = 0; g < G; g++) {
            const int32x4_t dot = vpaddq_s32(vpaddq_s32(sum[g][0], sum[g][1]), vpaddq_s32(sum[g][2], sum[g][3]));
            const float32x4_t before = b ? vld1q_f32(t->s[g] + j) : vdupq_n_f32(0);
            vst1q_f32(t->s[g] + j, vfmaq_f32(before, vmulq_n_f32(vcvtq_f32_s32(dot), t->by[g][b]), vld1q_f32(t->scale + j)));
        }
    }
}

/* ---- weights: s -> exp(s - m'), n of them; *m = m'; returns their lanes16 sum */
INLINE float weigh(float *s, int n, float *m)
{
    float lane[16], max = *m;
    for (int j = 0; j < n; j++) max = s[j] > max ? s[j] : max;
    lanes16 sum = zero16();
    for (int j = 0; j < n; j += 16)
        UNROLL for (int i = 0; i < 4; i++) {
            if (j + 4 * i >= n) break;
            const uint32x4_t e = vreinterpretq_u32_f32(exp32x4(vsubq_f32(vld1q_f32(s + j + 4 * i), vdupq_n_f32(max))));
            const float32x4_t w = vreinterpretq_f32_u32(vandq_u32(e, upto4(n - 1 - j - 4 * i)));
            vst1q_f32(s + j + 4 * i, w);
            sum.v[i] = vaddq_f32(sum.v[i], w);
        }
    *m = max;
    store16(lane, sum);
    return wg_fold16(lane);
}

/* ---- values: o += sum_j w_j v_j for G heads x V sixteens of outputs, after o *= c; `left` < 16 only for V = 1. at: bytes from
 * a slot's keys to the values. */
INLINE void mix(const int type, const int G, const int V, const tile *t, const char *const *key, const char *const *next, int n,
                size_t at, float *o, int hd, int left)
{
    const float(*w)[WG_CHUNK_KEYS] = type == WG_KV_Q8 ? t->w : t->s;
    lanes16 sum[PAIR][WIDE];
    UNROLL for (int g = 0; g < G; g++)
        UNROLL for (int i = 0; i < V; i++) {
            const float *from = o + g * hd + 16 * i;
            sum[g][i] = left >= 16 ? load16(WG_F32, from) : load16_part(WG_F32, left, from);
            UNROLL for (int l = 0; l < 4; l++) sum[g][i].v[l] = vmulq_n_f32(sum[g][i].v[l], t->c[g]);
        }
    for (int j = 0; j < n; j++) {
        const char *v = key[j] + at;
        __builtin_prefetch(next[j] + at);
        UNROLL for (int i = 0; i < V; i++) {
            const lanes16 x = left >= 16 ? load16(type, v + (size_t)(16 * i) * size_of(type)) : load16_part(type, left, v);
            UNROLL for (int g = 0; g < G; g++)
                UNROLL for (int l = 0; l < 4; l++) sum[g][i].v[l] = vfmaq_n_f32(sum[g][i].v[l], x.v[l], w[g][j]);
        }
    }
    UNROLL for (int g = 0; g < G; g++)
        UNROLL for (int i = 0; i < V; i++) {
            if (left >= 16) store16(o + g * hd + 16 * i, sum[g][i]);
            else store16_part(o + g * hd, left, sum[g][i]);
        }
}

/* Elements [d,end) of the values, one block of a WG_KV_Q8 cache. */
INLINE void mix_block(const int type, const int G, const tile *t, const char *const *key, const char *const *next, int n,
                      size_t value_at, float *out, int hd, int d, int end)
{
    const int most = 16 * WIDE / G;
    for (int wide; d < end; d += wide) {
        const size_t at = value_at + (size_t)d * size_of(type);
        wide = end - d >= most ? most : 16;
        if (wide == most) mix(type, G, WIDE / G, t, key, next, n, at, out + d, hd, wide);
        else if (end - d >= 16) mix(type, G, 1, t, key, next, n, at, out + d, hd, 16);
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

/* Scores of a chunk of n keys, then its values: the two halves of a step of the online softmax. */
INLINE void score_chunk(const int type, const int G, tile *t, int head, int hd, const char *const *key, const char *const *next,
                        const float *const *by, int n, float scale, int slots)
{
    const int blocks = wg_kv_blocks(hd);
    if (type != WG_KV_Q8) {
        score(type, G, t, hd, key, next, n, scale);
        return;
    }
    for (int b = 0; b < blocks; b++) {
        take_scales(t, by, n, (size_t)((head * blocks + b) * slots));
        score_q8(G, t, b, key, next, n, (size_t)(b * WG_KV_BLOCK), hd - b * WG_KV_BLOCK);
    }
}

INLINE void mix_chunk(const int type, const int G, tile *t, int head, int hd, const char *const *key, const char *const *next,
                      const float *const *by, int n, size_t value_at, float *out, int slots)
{
    const int blocks = wg_kv_blocks(hd);
    if (type != WG_KV_Q8) {
        mix_block(type, G, t, key, next, n, value_at, out, hd, 0, hd);
        return;
    }
    for (int b = 0; b < blocks; b++) {
        const int d = b * WG_KV_BLOCK, end = hd - d < WG_KV_BLOCK ? hd : d + WG_KV_BLOCK;
        take_scales(t, by, n, value_at / sizeof(float) + (size_t)((head * blocks + b) * slots));
        for (int g = 0; g < G; g++)
            for (int j = 0; j < n; j++) t->w[g][j] = t->s[g][j] * t->scale[j];
        mix_block(type, G, t, key, next, n, value_at, out, hd, d, end);
    }
}

INLINE void attend(const int type, const int G, const float *q, const wg_row_keys *keys, int head, int hd, float scale,
                   float *out)
{
    const char *key[2][WG_CHUNK_KEYS]; /* of this chunk and of the next */
    const float *by[2][WG_CHUNK_KEYS];
    const int slots = keys->kv->page_slots;
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
        score_chunk(type, G, &t, head, hd, k, next, by[now], n, scale, slots);
        for (int g = 0; g < G; g++) {
            const float before = t.m[g], sum = weigh(t.s[g], n, &t.m[g]);
            t.c[g] = wg_exp32_of(before - t.m[g]); /* the first time exp(-inf) = 0 */
            t.l[g] = fmaf(t.l[g], t.c[g], sum);
        }
        mix_chunk(type, G, &t, head, hd, k, next, by[now], n, value_at, out, slots);
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

/* The op: one head with fn[0], two of a kv head with fn[1]. */
static void attend_heads(attend_fn *const fn[PAIR], const float *q, const wg_row_keys *keys, int heads, int kv_heads, int hd,
                         float scale, float *out, int h0, int h1)
{
    for (int h = h0, n; h < h1; h += n) {
        const int head = h * kv_heads / heads;
        n = h + 1 < h1 && (h + 1) * kv_heads / heads == head ? 2 : 1;
        fn[n - 1](q + h * hd, keys, head, hd, scale, out + h * hd);
    }
}

#endif
