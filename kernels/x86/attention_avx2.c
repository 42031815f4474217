/* SPDX-License-Identifier: MIT
 * Attention of one row on 8-lane registers, head by head through the chunks of ref/attention.c. A key's sixteen lanes are two
 * vectors; the folds of 8 keys are done together, level by level. The next chunk is asked for while this one is used. */
#include "kernels/x86/avx2.h"

#include "kernels/lanes.h"
#include "kernels/variants.h"
#include "kernels/x86/keys.h"

enum { VECTORS = 8 }; /* of outputs summed together */

/* Sixteen lanes of 4 keys, folded to 2 lanes each: [k0 k0 k2 k2 | k1 k1 k3 k3]. */
INLINE __m256 score4(const int type, const float *q, int hd, const char *const *key, const char *const *next)
{
    const int size = type == WG_F32 ? 4 : 2;
    __m256 lane[4][2];
    UNROLL for (int e = 0; e < 4; e++) lane[e][0] = lane[e][1] = _mm256_setzero_ps();
    int d = 0;
    for (; d + 16 <= hd; d += 16) {
        if (d * size % 64 == 0)
            UNROLL for (int e = 0; e < 4; e++) _mm_prefetch(next[e] + d * size, _MM_HINT_T1);
        UNROLL for (int h = 0; h < 2; h++) {
            const __m256 b = _mm256_loadu_ps(q + d + 8 * h);
            UNROLL for (int e = 0; e < 4; e++)
                lane[e][h] = _mm256_fmadd_ps(b, load8(type, key[e] + (d + 8 * h) * size), lane[e][h]);
        }
    }
    for (int h = 0; d < hd; d += 8, h++) { /* a lane without an element may turn from -0 to +0, which no exp can see */
        const int n = hd - d < 8 ? hd - d : 8;
        const __m256 b = load8_part(WG_F32, n, q + d);
        for (int e = 0; e < 4; e++) {
            const __m256 k = n == 8 ? load8(type, key[e] + d * size) : load8_part(type, n, key[e] + d * size);
            lane[e][h] = _mm256_fmadd_ps(b, k, lane[e][h]);
        }
    }
    __m256 v[4], pair[2];
    UNROLL for (int e = 0; e < 4; e++) v[e] = _mm256_add_ps(lane[e][0], lane[e][1]);
    UNROLL for (int i = 0; i < 2; i++) pair[i] = _mm256_add_ps(_mm256_permute2f128_ps(v[2 * i], v[2 * i + 1], 0x20),
                                                               _mm256_permute2f128_ps(v[2 * i], v[2 * i + 1], 0x31));
    return _mm256_add_ps(_mm256_shuffle_ps(pair[0], pair[1], 0x44), _mm256_shuffle_ps(pair[0], pair[1], 0xEE));
}

INLINE void score(const int type, const float *q, int hd, const char *const *key, const char *const *next, int n, float scale,
                  float *s)
{
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    for (int j = 0; j < n; j += 8) {
        const __m256 low = score4(type, q, hd, key + j, next + j);
        const __m256 high = j + 4 < n ? score4(type, q, hd, key + j + 4, next + j + 4) : _mm256_setzero_ps();
        const __m256 sum = _mm256_add_ps(_mm256_shuffle_ps(low, high, 0x88), _mm256_shuffle_ps(low, high, 0xDD));
        _mm256_store_ps(s + j, _mm256_mul_ps(_mm256_permutevar8x32_ps(sum, order), _mm256_set1_ps(scale)));
    }
}

/* o += sum_j s_j v_j for V vectors of outputs, after o *= c; n < 8 V only for V = 1. at: bytes from a slot to its values. */
INLINE void mix(const int type, const int V, const float *s, const char *const *value, const char *const *next, size_t at,
                int keys, float c, float *o, int n)
{
    const int size = type == WG_F32 ? 4 : 2;
    __m256 sum[VECTORS];
    UNROLL for (int i = 0; i < V; i++)
        sum[i] = _mm256_mul_ps(n >= 8 ? _mm256_loadu_ps(o + 8 * i) : load8_part(WG_F32, n, o), _mm256_set1_ps(c));
    for (int j = 0; j < keys; j++) {
        const __m256 w = _mm256_set1_ps(s[j]);
        const char *v = value[j] + at;
        UNROLL for (int i = 0; i < V; i++) {
            sum[i] = _mm256_fmadd_ps(w, n >= 8 ? load8(type, v + 8 * i * size) : load8_part(type, n, v), sum[i]);
            if (V > 1 && i * size % 8 == 0) _mm_prefetch(next[j] + at + 8 * i * size, _MM_HINT_T1);
        }
    }
    UNROLL for (int i = 0; i < V; i++)
        if (n >= 8) _mm256_storeu_ps(o + 8 * i, sum[i]);
        else _mm256_maskstore_ps(o, first8(n), sum[i]);
}

/* s -> exp(s - m'), n of them; *m = m'; returns their lanes16 sum. s is padded to a multiple of 8. */
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

/* Addresses of one head's keys in the next chunk. */
static int head_chunk(wg_key_walk *walk, size_t at, const char *key[WG_CHUNK_KEYS])
{
    const int n = wg_chunk_next(walk, key);
    for (int j = 0; j < (n + 3) / 4 * 4; j++) key[j] += at;
    return n;
}

INLINE void attend_head(const int type, const float *q, const wg_row_keys *keys, size_t at, int hd, float scale, float *out)
{
    const int size = type == WG_F32 ? 4 : 2;
    const char *key[2][WG_CHUNK_KEYS]; /* of this chunk and of the next */
    _Alignas(32) float s[WG_CHUNK_KEYS];
    float m = -INFINITY, l = 0;
    wg_key_walk walk = { keys, 0, keys->anc };
    memset(out, 0, (size_t)hd * sizeof *out);
    int n = head_chunk(&walk, at, key[0]);
    for (int now = 0, then; n > 0; n = then, now = !now) {
        const float before = m;
        then = head_chunk(&walk, at, key[!now]);
        const char **k = key[now], **next = key[!now];
        for (int j = then; j < (n + 3) / 4 * 4; j++) next[j] = k[j]; /* nothing more to ask for */
        score(type, q, hd, k, next, n, scale, s);
        const float sum = weigh(s, n, &m), c = wg_exp32_of(before - m); /* the first time exp(-inf) = 0 */
        l = fmaf(l, c, sum);
        for (int d = 0, wide; d < hd; d += wide) {
            const size_t v = keys->kv->value_at + (size_t)(d * size);
            wide = hd - d >= 64 ? 64 : hd - d >= 32 ? 32 : 8;
            if (wide == 64) mix(type, 8, s, k, next, v, n, c, out + d, 64);
            else if (wide == 32) mix(type, 4, s, k, next, v, n, c, out + d, 32);
            else if (hd - d >= 8) mix(type, 1, s, k, next, v, n, c, out + d, 8);
            else mix(type, 1, s, k, next, v, n, c, out + d, hd - d);
        }
    }
    for (int d = 0; d < hd; d++) out[d] /= l;
}

void wg_attention_avx2(const float *q, const wg_row_keys *keys, int heads, int kv_heads, int hd, float scale, float *out,
                       int h0, int h1)
{
    const int type = keys->kv->type;
    for (int h = h0; h < h1; h++) {
        const size_t at = (size_t)(h * kv_heads / heads * hd) * (type == WG_F32 ? 4 : 2);
        if (type == WG_F32) attend_head(WG_F32, q + h * hd, keys, at, hd, scale, out + h * hd);
        else if (type == WG_F16) attend_head(WG_F16, q + h * hd, keys, at, hd, scale, out + h * hd);
        else attend_head(WG_BF16, q + h * hd, keys, at, hd, scale, out + h * hd);
    }
}
