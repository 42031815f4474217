/* SPDX-License-Identifier: MIT
 * Operations on single rows, 16 elements at a time: lane i % 16 of the specification is lane i % 16 of a vector. Ends of rows
 * are masked. */
#include "kernels/x86/attention_avx512.h"

#include <string.h>

#include "kernels/layout.h"
#include "kernels/variants.h"
#include "kernels/key_walk.h"

/* ---- activations of quantised products */
INLINE int sum_bytes(__m128i q)
{
    const __m128i two = _mm_sad_epu8(_mm_xor_si128(q, _mm_set1_epi8(-128)), _mm_setzero_si128()); /* of q + 128, by eight */
    return _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_unpackhi_epi64(two, two))) - 16 * 128;
}

static void quantise_block(const float *x, wg_q8_act *act, int b)
{
    const __m512 low = _mm512_set1_ps(-WG_ACT_CLAMP), high = _mm512_set1_ps(WG_ACT_CLAMP);
    const __m512 x0 = _mm512_min_ps(_mm512_max_ps(_mm512_loadu_ps(x), low), high);
    const __m512 x1 = _mm512_min_ps(_mm512_max_ps(_mm512_loadu_ps(x + 16), low), high);
    union { float f; uint32_t u; } d = { _mm512_reduce_max_ps(_mm512_max_ps(_mm512_abs_ps(x0), _mm512_abs_ps(x1))) / 127.0f };
    d.u = (d.u + 0xffu) & ~0xffu; /* 16 significant bits, rounded up */
    const float da = d.f < 1e-30f ? 0.0f : d.f;
    const __m512 inverse = _mm512_set1_ps(da > 0 ? 1.0f / da : 0.0f);
    const __m512i q0 = _mm512_cvtps_epi32(_mm512_mul_ps(x0, inverse)), q1 = _mm512_cvtps_epi32(_mm512_mul_ps(x1, inverse));
    const __m128i s0 = _mm512_cvtepi32_epi8(q0), s1 = _mm512_cvtepi32_epi8(q1);
    _mm_storeu_si128((void *)(act->q + b * WG_BLOCK), s0);
    _mm_storeu_si128((void *)(act->q + b * WG_BLOCK + 16), s1);
    const int low_sum = sum_bytes(s0), sum = low_sum + sum_bytes(s1);
    act->ini[b] = WG_MAGIC_BITS - 128 * sum;
    act->da[b] = da;
    act->mda[b] = da * WG_MAGIC;
    act->das[b] = da * (float)sum;
    act->sum[b] = sum;
    act->low[b] = low_sum;
}

void wg_act_prepare_avx512(int type, const float *x, size_t ldx, int rows, int k, void *act, int r0, int r1)
{
    if (!wg_is_quantised(type)) {
        wg_act_prepare_ref(type, x, ldx, rows, k, act, r0, r1);
        return;
    }
    for (int m = r0; m < r1; m++) {
        const float *row = x + (size_t)m * ldx;
        wg_q8_act *to = (wg_q8_act *)act + wg_q8_act_at(m, wg_chunks(k));
        for (int b = 0; b < wg_blocks(k); b++)
            quantise_block(row + b * WG_BLOCK, to + (size_t)(b / WG_ACT_BLOCKS) * (size_t)wg_group_rows(rows, m),
                           b % WG_ACT_BLOCKS);
    }
}

void wg_rmsnorm_avx512(const float *x, size_t ldx, const float *weight, int dim, float eps, float *y, size_t ldy, int r0,
                       int r1)
{
    const int full = dim / 16 * 16;
    const __mmask16 mask = first16(dim - full);
    for (int m = r0; m < r1; m++) {
        const float *from = x + (size_t)m * ldx;
        float *to = y + (size_t)m * ldy;
        __m512 sum = _mm512_setzero_ps();
        for (int i = 0; i < full; i += 16) {
            const __m512 v = _mm512_loadu_ps(from + i);
            sum = _mm512_fmadd_ps(v, v, sum);
        }
        const __m512 end = _mm512_maskz_loadu_ps(mask, from + full);
        sum = _mm512_mask3_fmadd_ps(end, end, sum, mask);
        const __m512 r = _mm512_set1_ps(1.0f / sqrtf(fold16(sum) / (float)dim + eps));
        for (int i = 0; i < full; i += 16)
            _mm512_storeu_ps(to + i, _mm512_mul_ps(_mm512_mul_ps(_mm512_loadu_ps(from + i), r), _mm512_loadu_ps(weight + i)));
        if (mask)
            _mm512_mask_storeu_ps(to + full, mask,
                                  _mm512_mul_ps(_mm512_mul_ps(end, r), _mm512_maskz_loadu_ps(mask, weight + full)));
    }
}

/* ---- rotary */
static void rope_adjacent(float *x, int n_rot, const float *cs)
{
    for (int i = 0; i < n_rot; i += 16) {
        const __mmask16 mask = first16(n_rot - i);
        const __m512 ab = _mm512_maskz_loadu_ps(mask, x + i), c_s = _mm512_maskz_loadu_ps(mask, cs + i);
        const __m512 b = _mm512_mul_ps(_mm512_movehdup_ps(ab), _mm512_permute_ps(c_s, 0xB1)); /* b s, b c */
        _mm512_mask_storeu_ps(x + i, mask, _mm512_fmaddsub_ps(_mm512_moveldup_ps(ab), c_s, b));
    }
}

static void rope_halves(float *x, int half, const float *cs)
{
    const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const __m512i odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
    for (int i = 0; i < half; i += 16) {
        const int left = half - i;
        const __mmask16 mask = first16(left);
        const __m512 cs0 = _mm512_maskz_loadu_ps(first16(2 * left), cs + 2 * i);
        const __m512 cs1 = _mm512_maskz_loadu_ps(left > 8 ? first16(2 * left - 16) : 0, cs + 2 * i + 16);
        const __m512 c = _mm512_permutex2var_ps(cs0, even, cs1), s = _mm512_permutex2var_ps(cs0, odd, cs1);
        const __m512 a = _mm512_maskz_loadu_ps(mask, x + i), b = _mm512_maskz_loadu_ps(mask, x + half + i);
        _mm512_mask_storeu_ps(x + i, mask, _mm512_fmsub_ps(a, c, _mm512_mul_ps(b, s)));
        _mm512_mask_storeu_ps(x + half + i, mask, _mm512_fmadd_ps(a, s, _mm512_mul_ps(b, c)));
    }
}

void wg_rope_avx512(float *x, int heads, int hd, int n_rot, const float *cs, int adjacent)
{
    for (int h = 0; h < heads; h++, x += hd) {
        if (adjacent) rope_adjacent(x, n_rot / 2 * 2, cs);
        else rope_halves(x, n_rot / 2, cs);
    }
}

/* ---- keys and values into pages */
static void store(int type, char *to, const float *from, int n)
{
    for (int i = 0; i < n; i += 16) {
        const __mmask16 mask = first16(n - i);
        const __m512 v = _mm512_maskz_loadu_ps(mask, from + i);
        if (type == WG_F32) {
            _mm512_mask_storeu_ps(to + 4 * i, mask, v);
        } else if (type == WG_F16) {
            _mm256_mask_storeu_epi16(to + 2 * i, mask, _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
        } else { /* to nearest even; NaN stays a quiet NaN */
            const __m512i u = _mm512_castps_si512(v), odd = _mm512_and_si512(_mm512_srli_epi32(u, 16), _mm512_set1_epi32(1));
            const __m512i up = _mm512_add_epi32(u, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
            const __m512i h = _mm512_mask_or_epi32(up, _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q), u, _mm512_set1_epi32(0x400000));
            _mm256_mask_storeu_epi16(to + 2 * i, mask, _mm512_cvtepi32_epi16(_mm512_srli_epi32(h, 16)));
        }
    }
}

void wg_kv_store_avx512(const wg_kv_view *kv, int32_t slot, const float *k, const float *v)
{
    char *key = kv->pool + (wg_slot_at(kv, slot) - kv->pool);
    if (kv->type == WG_KV_Q8) {
        float *scale = (float *)(void *)(kv->pool + ((const char *)wg_scales_at(kv, slot) - kv->pool));
        wg_kv_store_q8_avx512(kv, (int8_t *)key, scale, k);
        wg_kv_store_q8_avx512(kv, (int8_t *)key + kv->value_at, scale + kv->value_at / sizeof *scale, v);
        return;
    }
    store(kv->type, key, k, kv->kv_dim);
    store(kv->type, key + kv->value_at, v, kv->kv_dim);
}

/* ---- element-wise */
void wg_swiglu_avx512(const float *gate, const float *up, float *y, int n)
{
    const __m512 one = _mm512_set1_ps(1.0f), sign = _mm512_set1_ps(-0.0f);
    for (int i = 0; i < n; i += 16) {
        const __mmask16 mask = first16(n - i);
        const __m512 g = _mm512_maskz_loadu_ps(mask, gate + i), u = _mm512_maskz_loadu_ps(mask, up + i);
        const __m512 e = exp32x16(_mm512_xor_ps(g, sign));
        _mm512_mask_storeu_ps(y + i, mask, _mm512_mul_ps(_mm512_div_ps(g, _mm512_add_ps(one, e)), u));
    }
}

void wg_add_avx512(float *x, const float *y, int n)
{
    for (int i = 0; i < n; i += 16) {
        const __mmask16 mask = first16(n - i);
        _mm512_mask_storeu_ps(x + i, mask,
                              _mm512_add_ps(_mm512_maskz_loadu_ps(mask, x + i), _mm512_maskz_loadu_ps(mask, y + i)));
    }
}

void wg_exp32_avx512(const float *x, float *y, int n)
{
    for (int i = 0; i < n; i += 16) {
        const __mmask16 mask = first16(n - i);
        _mm512_mask_storeu_ps(y + i, mask, exp32x16(_mm512_maskz_loadu_ps(mask, x + i)));
    }
}

/* ---- rows of logits */
/* The largest element that is not NaN; -inf when there is none. */
static float largest(const float *x, int n)
{
    const __m512 least = _mm512_set1_ps(-INFINITY);
    __m512 max[4] = { least, least, least, least };
    int i = 0;
    for (; i + 64 <= n; i += 64)
        for (int e = 0; e < 4; e++)
            max[e] = _mm512_max_ps(_mm512_loadu_ps(x + i + 16 * e), max[e]); /* NaN: the second operand */
    for (; i < n; i += 16) {
        const __mmask16 mask = first16(n - i);
        max[0] = _mm512_max_ps(_mm512_mask_loadu_ps(least, mask, x + i), max[0]);
    }
    return _mm512_reduce_max_ps(_mm512_max_ps(_mm512_max_ps(max[0], max[1]), _mm512_max_ps(max[2], max[3])));
}

double wg_softmax64_avx512(const float *x, int n, double inv_temp, double *p)
{
    const __m512d max = _mm512_set1_pd((double)largest(x, n)), scale = _mm512_set1_pd(inv_temp);
    __m512d sum[2] = { _mm512_setzero_pd(), _mm512_setzero_pd() };
    int i = 0;
    for (; i + 16 <= n; i += 16)
        for (int h = 0; h < 2; h++) {
            const __m512d v = _mm512_cvtps_pd(_mm256_loadu_ps(x + i + 8 * h));
            const __m512d e = exp64x8(_mm512_mul_pd(_mm512_sub_pd(v, max), scale));
            _mm512_storeu_pd(p + i + 8 * h, e);
            sum[h] = _mm512_add_pd(sum[h], e);
        }
    for (int h = 0; h < 2 && i < n; h++, i += 8) {
        const __mmask8 mask = first8(n - i);
        const __m512d v = _mm512_cvtps_pd(_mm256_maskz_loadu_ps(mask, x + i));
        const __m512d e = exp64x8(_mm512_mul_pd(_mm512_sub_pd(v, max), scale));
        _mm512_mask_storeu_pd(p + i, mask, e);
        sum[h] = _mm512_mask_add_pd(sum[h], mask, sum[h], e);
    }
    return fold16_double(sum[0], sum[1]);
}

/* Which chunk has the largest element is seen in the one pass over memory; where in it, in the nearest cache. */
int wg_argmax_avx512(const float *x, int n)
{
    enum { CHUNK = 2048 };
    float best = -INFINITY;
    int from = 0;
    for (int i = 0; i < n; i += CHUNK) {
        const float here = largest(x + i, n - i < CHUNK ? n - i : CHUNK);
        if (here > best) {
            best = here;
            from = i;
        }
    }
    const __m512 max = _mm512_set1_ps(best);
    for (int i = from; i < n; i += 16) {
        const __mmask16 mask = first16(n - i);
        const __mmask16 hit = _mm512_mask_cmp_ps_mask(mask, _mm512_maskz_loadu_ps(mask, x + i), max, _CMP_EQ_OQ);
        if (hit) return i + __builtin_ctz(hit);
    }
    return -1;
}

/* Which of elements i, ..., i + 63, `first` of them, reach the bound; the others are added to the sums. */
INLINE uint64_t split64(const float *x, int i, const int first, float bound, __m512 top, __m512 factor, __m512d sum[2])
{
    const __m512 limit = _mm512_set1_ps(bound);
    uint64_t found = 0;
    __m512 v[4], e[4];
    UNROLL for (int k = 0; k < 4; k++) {
        v[k] = _mm512_maskz_loadu_ps(first16(first - 16 * k), x + i + 16 * k);
        e[k] = _mm512_mul_ps(_mm512_sub_ps(v[k], top), factor);
    }
    exp32x64_low(e);
    UNROLL for (int k = 0; k < 4; k++) {
        const __mmask16 mask = first16(first - 16 * k), below = _mm512_mask_cmp_ps_mask(mask, v[k], limit, _CMP_LT_OQ);
        const __m512d low = _mm512_cvtps_pd(_mm512_castps512_ps256(e[k]));
        const __m512d high = _mm512_cvtps_pd(_mm512_extractf32x8_ps(e[k], 1));
        sum[0] = _mm512_mask_add_pd(sum[0], (__mmask8)below, sum[0], low);
        sum[1] = _mm512_mask_add_pd(sum[1], (__mmask8)(below >> 8), sum[1], high);
        found |= (uint64_t)_mm512_mask_cmp_ps_mask(mask, v[k], limit, _CMP_GE_OQ) << 16 * k;
    }
    return found;
}

double wg_split_avx512(const float *x, int n, float bound, float max, float scale, int32_t *id, int room, int *count)
{
    const __m512 top = _mm512_set1_ps(max), factor = _mm512_set1_ps(scale);
    __m512d sum[2] = { _mm512_setzero_pd(), _mm512_setzero_pd() };
    int found = 0;
    for (int i = 0; i < n; i += 64) {
        uint64_t hit = n - i >= 64 ? split64(x, i, 64, bound, top, factor, sum) : split64(x, i, n - i, bound, top, factor, sum);
        for (; hit; hit &= hit - 1, found++)
            if (found < room) id[found] = i + __builtin_ctzll(hit);
    }
    *count = found;
    return fold16_double(sum[0], sum[1]);
}

/* Packed in registers: stores that pack on their way are slow on some machines. Without a branch on `in`: what few of many
 * elements do is not foreseen. */
INLINE void into_band(wg_band *b, __mmask16 in, int i, __m512 v)
{
    const __m512i count16 = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const int n = b->n;
    b->n += __builtin_popcount(in);
    if (n + 16 > b->room) return;
    _mm512_storeu_si512(b->id + n, _mm512_maskz_compress_epi32(in, _mm512_add_epi32(_mm512_set1_epi32(i), count16)));
    _mm512_storeu_ps(b->x + n, _mm512_maskz_compress_ps(in, v));
}

/* The steps (mass.h) of 8 weights; the mass of 16 lanes of them, which become 0. */
INLINE __m512i steps8(__m512d w)
{
    const __m512d one = _mm512_set1_pd(1.0);
    return _mm512_sub_epi64(_mm512_castpd_si512(_mm512_add_pd(w, one)), _mm512_castpd_si512(one));
}
static wg_mass take_steps(__m512i sum[2])
{
    uint64_t lane[16];
    for (int h = 0; h < 2; h++) {
        _mm512_storeu_si512(lane + 8 * h, sum[h]);
        sum[h] = _mm512_setzero_si512();
    }
    return wg_mass_fold(lane, 16);
}

/* The sums on the way: lanes 0-7 and 8-15 of all and of those above the band. */
typedef struct weighing {
    __m512 bottom, top;
    __m512d most, scale;
    __m512i sum[2], above[2];
} weighing;

/* Elements i, ..., i + 63, `first` of them. */
INLINE void weigh64x64(weighing *w, const float *x, int i, const int first, double *p, wg_band *band)
{
    __m512 v[4];
    __m512d e[8];
    UNROLL for (int k = 0; k < 4; k++) {
        v[k] = _mm512_maskz_loadu_ps(first16(first - 16 * k), x + i + 16 * k);
        e[2 * k] = _mm512_cvtps_pd(_mm512_castps512_ps256(v[k]));
        e[2 * k + 1] = _mm512_cvtps_pd(_mm512_extractf32x8_ps(v[k], 1));
    }
    UNROLL for (int h = 0; h < 8; h++) e[h] = _mm512_mul_pd(_mm512_sub_pd(e[h], w->most), w->scale);
    exp64x64_low(e);
    UNROLL for (int k = 0; k < 4; k++) {
        const int at = i + 16 * k;
        const __mmask16 mask = first16(first - 16 * k), over = _mm512_mask_cmp_ps_mask(mask, v[k], w->top, _CMP_GT_OQ);
        UNROLL for (int h = 0; h < 2; h++) {
            const __mmask8 half = (__mmask8)(mask >> 8 * h), up = (__mmask8)(over >> 8 * h);
            const __m512i steps = steps8(e[2 * k + h]);
            if (p) _mm512_mask_storeu_pd(p + at + 8 * h, half, e[2 * k + h]);
            w->sum[h] = _mm512_mask_add_epi64(w->sum[h], half, w->sum[h], steps);
            w->above[h] = _mm512_mask_add_epi64(w->above[h], up, w->above[h], steps);
        }
        into_band(band, _mm512_mask_cmp_ps_mask(mask, v[k], w->bottom, _CMP_GE_OQ) & (__mmask16)~over, at, v[k]);
    }
}

INLINE wg_mass weigh(const float *x, int n, float max, double inv_temp, double *p, wg_band *band)
{
    enum { PIECE = 16 * WG_MASS_PIECE };
    weighing w = { _mm512_set1_ps(band->low), _mm512_set1_ps(band->high), _mm512_set1_pd((double)max), _mm512_set1_pd(inv_temp),
                   { _mm512_setzero_si512(), _mm512_setzero_si512() }, { _mm512_setzero_si512(), _mm512_setzero_si512() } };
    wg_mass mass = 0;
    band->n = 0;
    band->above = 0;
    for (int i = 0; i < n;) {
        const int end = n - i < PIECE ? n : i + PIECE;
        for (; i + 64 <= end; i += 64) weigh64x64(&w, x, i, 64, p, band);
        if (i < end) weigh64x64(&w, x, i, end - i, p, band);
        i = end;
        mass += take_steps(w.sum);
        band->above += take_steps(w.above);
    }
    return mass;
}

wg_mass wg_weigh64_avx512(const float *x, int n, float max, double inv_temp, double *p, wg_band *band)
{
    return p ? weigh(x, n, max, inv_temp, p, band) : weigh(x, n, max, inv_temp, NULL, band);
}

/* Which of 16 elements, from i on, are in the prefix; lightness apart. */
INLINE __mmask16 prefix16(__mmask16 mask, __m512 v, int i, float edge, int last)
{
    const __m512 e = _mm512_set1_ps(edge);
    const __mmask16 over = _mm512_mask_cmp_ps_mask(mask, v, e, _CMP_GT_OQ);
    return over | (_mm512_mask_cmp_ps_mask(mask, v, e, _CMP_EQ_OQ) & first16(last < i ? 0 : last + 1 - i));
}

wg_mass wg_kept64_avx512(const float *x, const double *p, int n, float edge, int last, double lightest, int *count)
{
    const __m512d light = _mm512_set1_pd(lightest);
    __m512i sum[2] = { _mm512_setzero_si512(), _mm512_setzero_si512() };
    wg_mass mass = 0;
    int kept = 0;
    for (int i = 0; i < n; i += 16) {
        const __mmask16 mask = first16(n - i);
        const __mmask16 in = prefix16(mask, _mm512_maskz_loadu_ps(mask, x + i), i, edge, last);
        for (int h = 0; h < 2; h++) {
            const __mmask8 half = (__mmask8)(in >> 8 * h);
            const __m512d w = _mm512_maskz_loadu_pd(half, p + i + 8 * h);
            const __mmask8 heavy = _mm512_mask_cmp_pd_mask(half, w, light, _CMP_GE_OQ);
            sum[h] = _mm512_mask_add_epi64(sum[h], heavy, sum[h], steps8(w));
            kept += __builtin_popcount(heavy);
        }
        if ((i / 16 + 1) % WG_MASS_PIECE == 0) mass += take_steps(sum);
    }
    *count = kept;
    return mass + take_steps(sum);
}

void wg_keep64_avx512(const float *x, double *p, int n, float edge, int last, double lightest, double scale)
{
    const __m512d light = _mm512_set1_pd(lightest), by = _mm512_set1_pd(scale);
    for (int i = 0; i < n; i += 16) {
        const __mmask16 mask = first16(n - i);
        const __mmask16 in = prefix16(mask, _mm512_maskz_loadu_ps(mask, x + i), i, edge, last);
        for (int h = 0; h < 2; h++) {
            const __mmask8 half = (__mmask8)(in >> 8 * h);
            const __m512d w = _mm512_maskz_loadu_pd(half, p + i + 8 * h);
            const __mmask8 heavy = _mm512_mask_cmp_pd_mask(half, w, light, _CMP_GE_OQ);
            _mm512_mask_storeu_pd(p + i + 8 * h, (__mmask8)(mask >> 8 * h), _mm512_maskz_mul_pd(heavy, w, by));
        }
    }
}
