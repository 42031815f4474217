/* SPDX-License-Identifier: MIT
 * Operations on single rows on 8-lane registers. What does not fill a vector is done as the reference does it. */
#include "kernels/x86/avx2.h"

#include "kernels/lanes.h"
#include "kernels/layout.h"
#include "kernels/variants.h"
#include "kernels/key_walk.h"

/* ---- activations of quantised products */
static void quantise_block(const float *x, wg_q8_act *act, int b)
{
    const __m256 low = _mm256_set1_ps(-WG_ACT_CLAMP), high = _mm256_set1_ps(WG_ACT_CLAMP), sign = _mm256_set1_ps(-0.0f);
    __m256 v[4], max = _mm256_setzero_ps();
    for (int i = 0; i < 4; i++) {
        v[i] = _mm256_min_ps(_mm256_max_ps(_mm256_loadu_ps(x + 8 * i), low), high);
        max = _mm256_max_ps(max, _mm256_andnot_ps(sign, v[i]));
    }
    __m128 m = _mm_max_ps(_mm256_castps256_ps128(max), _mm256_extractf128_ps(max, 1));
    m = _mm_max_ps(m, _mm_movehl_ps(m, m));
    m = _mm_max_ss(m, _mm_shuffle_ps(m, m, 1));
    union { float f; uint32_t u; } d = { _mm_cvtss_f32(m) / 127.0f };
    d.u = (d.u + 0xffu) & ~0xffu; /* 16 significant bits, rounded up */
    const float da = d.f < 1e-30f ? 0.0f : d.f;
    const __m256 inverse = _mm256_set1_ps(da > 0 ? 1.0f / da : 0.0f);
    __m256i q[4];
    for (int i = 0; i < 4; i++) q[i] = _mm256_cvtps_epi32(_mm256_mul_ps(v[i], inverse));
    const __m256i bytes = _mm256_packs_epi16(_mm256_packs_epi32(q[0], q[1]), _mm256_packs_epi32(q[2], q[3]));
    _mm256_storeu_si256((void *)(act->q + b * WG_BLOCK),
                        _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7)));
    /* pairs, then halves: element 0 is the sum of q[0], q[1], element 1 of the others */
    const __m256i s8 = _mm256_hadd_epi32(_mm256_add_epi32(q[0], q[1]), _mm256_add_epi32(q[2], q[3]));
    __m128i s = _mm_add_epi32(_mm256_castsi256_si128(s8), _mm256_extracti128_si256(s8, 1));
    s = _mm_hadd_epi32(s, s);
    const int low_sum = _mm_cvtsi128_si32(s), sum = low_sum + _mm_extract_epi32(s, 1);
    act->ini[b] = WG_MAGIC_BITS - 128 * sum;
    act->da[b] = da;
    act->mda[b] = da * WG_MAGIC;
    act->das[b] = da * (float)sum;
    act->sum[b] = sum;
    act->low[b] = low_sum;
}

void wg_act_prepare_avx2(int type, const float *x, size_t ldx, int rows, int k, void *act, int r0, int r1)
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

void wg_rmsnorm_avx2(const float *x, size_t ldx, const float *weight, int dim, float eps, float *y, size_t ldy, int r0, int r1)
{
    for (int m = r0; m < r1; m++) {
        const float *from = x + (size_t)m * ldx;
        float *to = y + (size_t)m * ldy, lane[16];
        __m256 sum[2] = { _mm256_setzero_ps(), _mm256_setzero_ps() };
        int i = 0;
        for (; i + 16 <= dim; i += 16)
            for (int h = 0; h < 2; h++) {
                const __m256 v = _mm256_loadu_ps(from + i + 8 * h);
                sum[h] = _mm256_fmadd_ps(v, v, sum[h]);
            }
        _mm256_storeu_ps(lane, sum[0]);
        _mm256_storeu_ps(lane + 8, sum[1]);
        for (; i < dim; i++) lane[i % 16] = fmaf(from[i], from[i], lane[i % 16]);
        const float r = 1.0f / sqrtf(wg_fold16(lane) / (float)dim + eps);
        for (i = 0; i + 8 <= dim; i += 8)
            _mm256_storeu_ps(to + i, _mm256_mul_ps(_mm256_mul_ps(_mm256_loadu_ps(from + i), _mm256_set1_ps(r)),
                                                   _mm256_loadu_ps(weight + i)));
        for (; i < dim; i++) to[i] = from[i] * r * weight[i];
    }
}

/* ---- rotary */
/* Four pairs (a, b) beside each other. */
static int rope_adjacent(float *x, int n_rot, const float *cs)
{
    int i = 0;
    for (; i + 8 <= n_rot; i += 8) {
        const __m256 ab = _mm256_loadu_ps(x + i), c_s = _mm256_loadu_ps(cs + i);
        const __m256 b = _mm256_mul_ps(_mm256_movehdup_ps(ab), _mm256_permute_ps(c_s, 0xB1)); /* b s, b c */
        _mm256_storeu_ps(x + i, _mm256_fmaddsub_ps(_mm256_moveldup_ps(ab), c_s, b));
    }
    return i / 2;
}

static int rope_halves(float *x, int half, const float *cs)
{
    int i = 0;
    for (; i + 8 <= half; i += 8) {
        const __m256 cs0 = _mm256_loadu_ps(cs + 2 * i), cs1 = _mm256_loadu_ps(cs + 2 * i + 8);
        const __m256 c = _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(_mm256_shuffle_ps(cs0, cs1, 0x88)), 0xD8));
        const __m256 s = _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(_mm256_shuffle_ps(cs0, cs1, 0xDD)), 0xD8));
        const __m256 a = _mm256_loadu_ps(x + i), b = _mm256_loadu_ps(x + half + i);
        _mm256_storeu_ps(x + i, _mm256_fmsub_ps(a, c, _mm256_mul_ps(b, s)));
        _mm256_storeu_ps(x + half + i, _mm256_fmadd_ps(a, s, _mm256_mul_ps(b, c)));
    }
    return i;
}

void wg_rope_avx2(float *x, int heads, int hd, int n_rot, const float *cs, int adjacent)
{
    const int half = n_rot / 2;
    for (int h = 0; h < heads; h++, x += hd)
        for (int i = adjacent ? rope_adjacent(x, 2 * half, cs) : rope_halves(x, half, cs); i < half; i++) {
            float *a = adjacent ? x + 2 * i : x + i, *b = adjacent ? a + 1 : a + half;
            const float a0 = *a, b0 = *b, c = cs[2 * i], s = cs[2 * i + 1];
            *a = fmaf(a0, c, -(b0 * s));
            *b = fmaf(a0, s, b0 * c);
        }
}

/* ---- keys and values into pages */
static void store_f16(char *to, const float *from, int n)
{
    int i = 0;
    for (; i + 8 <= n; i += 8)
        _mm_storeu_si128((void *)(to + 2 * i),
                         _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
    for (; i < n; i++) {
        const uint16_t h = wg_f32_to_f16(from[i]);
        memcpy(to + 2 * i, &h, 2);
    }
}

void wg_kv_store_avx2(const wg_kv_view *kv, int32_t slot, const float *k, const float *v)
{
    if (kv->type != WG_F16) {
        wg_kv_store_ref(kv, slot, k, v);
        return;
    }
    char *key = kv->pool + (wg_slot_at(kv, slot) - kv->pool);
    store_f16(key, k, kv->kv_dim);
    store_f16(key + kv->value_at, v, kv->kv_dim);
}

/* ---- element-wise */
void wg_swiglu_avx2(const float *gate, const float *up, float *y, int n)
{
    const __m256 one = _mm256_set1_ps(1.0f), sign = _mm256_set1_ps(-0.0f);
    int i = 0;
    for (; i + 8 <= n; i += 8) {
        const __m256 g = _mm256_loadu_ps(gate + i), u = _mm256_loadu_ps(up + i);
        _mm256_storeu_ps(y + i, _mm256_mul_ps(_mm256_div_ps(g, _mm256_add_ps(one, exp32x8(_mm256_xor_ps(g, sign)))), u));
    }
    wg_swiglu_ref(gate + i, up + i, y + i, n - i);
}

void wg_add_avx2(float *x, const float *y, int n)
{
    int i = 0;
    for (; i + 8 <= n; i += 8) _mm256_storeu_ps(x + i, _mm256_add_ps(_mm256_loadu_ps(x + i), _mm256_loadu_ps(y + i)));
    wg_add_ref(x + i, y + i, n - i);
}

void wg_exp32_avx2(const float *x, float *y, int n)
{
    int i = 0;
    for (; i + 8 <= n; i += 8) _mm256_storeu_ps(y + i, exp32x8(_mm256_loadu_ps(x + i)));
    wg_exp32_ref(x + i, y + i, n - i);
}

/* ---- rows of logits */
/* The largest element that is not NaN; -inf when there is none. */
static float largest(const float *x, int n)
{
    __m256 max[2] = { _mm256_set1_ps(-INFINITY), _mm256_set1_ps(-INFINITY) };
    float lane[8], m = -INFINITY;
    int i = 0;
    for (; i + 16 <= n; i += 16)
        for (int h = 0; h < 2; h++)
            max[h] = _mm256_max_ps(_mm256_loadu_ps(x + i + 8 * h), max[h]); /* NaN: the second operand */
    _mm256_storeu_ps(lane, _mm256_max_ps(max[0], max[1]));
    for (int l = 0; l < 8; l++) m = lane[l] > m ? lane[l] : m;
    for (; i < n; i++) m = x[i] > m ? x[i] : m;
    return m;
}

double wg_softmax64_avx2(const float *x, int n, double inv_temp, double *p)
{
    const double max = (double)largest(x, n);
    double lane[16];
    __m256d sum[4];
    int i = 0;
    for (int h = 0; h < 4; h++) sum[h] = _mm256_setzero_pd();
    for (; i + 16 <= n; i += 16)
        for (int h = 0; h < 4; h++) {
            const __m256d v = _mm256_cvtps_pd(_mm_loadu_ps(x + i + 4 * h));
            const __m256d e = exp64x4(_mm256_mul_pd(_mm256_sub_pd(v, _mm256_set1_pd(max)), _mm256_set1_pd(inv_temp)));
            _mm256_storeu_pd(p + i + 4 * h, e);
            sum[h] = _mm256_add_pd(sum[h], e);
        }
    for (int h = 0; h < 4; h++) _mm256_storeu_pd(lane + 4 * h, sum[h]);
    for (; i < n; i++) {
        p[i] = wg_exp64_of(((double)x[i] - max) * inv_temp);
        lane[i % 16] += p[i];
    }
    return wg_fold16_double(lane);
}

/* Which chunk has the largest element is seen in the one pass over memory; where in it, in the nearest cache. */
int wg_argmax_avx2(const float *x, int n)
{
    enum { CHUNK = 2048 };
    float max = -INFINITY;
    int i = 0;
    for (int at = 0; at < n; at += CHUNK) {
        const float here = largest(x + at, n - at < CHUNK ? n - at : CHUNK);
        if (here > max) {
            max = here;
            i = at;
        }
    }
    for (; i + 8 <= n; i += 8) {
        const int hit = _mm256_movemask_ps(_mm256_cmp_ps(_mm256_loadu_ps(x + i), _mm256_set1_ps(max), _CMP_EQ_OQ));
        if (hit) return i + __builtin_ctz((unsigned)hit);
    }
    for (; i < n; i++)
        if (x[i] == max) return i;
    return -1;
}

double wg_split_avx2(const float *x, int n, float bound, float max, float scale, int32_t *id, int room, int *count)
{
    double lane[16];
    __m256d sum[4];
    int i = 0, found = 0;
    for (int h = 0; h < 4; h++) sum[h] = _mm256_setzero_pd();
    for (; i + 16 <= n; i += 16)
        for (int h = 0; h < 2; h++) {
            const __m256 v = _mm256_loadu_ps(x + i + 8 * h), limit = _mm256_set1_ps(bound);
            const __m256 e = exp32x8(_mm256_mul_ps(_mm256_sub_ps(v, _mm256_set1_ps(max)), _mm256_set1_ps(scale)));
            const __m256 w = _mm256_and_ps(e, _mm256_cmp_ps(v, limit, _CMP_LT_OQ));
            sum[2 * h] = _mm256_add_pd(sum[2 * h], _mm256_cvtps_pd(_mm256_castps256_ps128(w)));
            sum[2 * h + 1] = _mm256_add_pd(sum[2 * h + 1], _mm256_cvtps_pd(_mm256_extractf128_ps(w, 1)));
            for (unsigned hit = (unsigned)_mm256_movemask_ps(_mm256_cmp_ps(v, limit, _CMP_GE_OQ)); hit; hit &= hit - 1, found++)
                if (found < room) id[found] = i + 8 * h + __builtin_ctz(hit);
        }
    for (int h = 0; h < 4; h++) _mm256_storeu_pd(lane + 4 * h, sum[h]);
    for (; i < n; i++)
        if (x[i] >= bound) {
            if (found < room) id[found] = i;
            found++;
        } else if (x[i] < bound) {
            lane[i % 16] += wg_exp32_of((x[i] - max) * scale);
        }
    *count = found;
    return wg_fold16_double(lane);
}

/* All bits set where 4 of 8 floats had them. */
INLINE __m256d wide4(__m128 mask) { return _mm256_castsi256_pd(_mm256_cvtepi32_epi64(_mm_castps_si128(mask))); }

INLINE void into_band(wg_band *b, int i, float x)
{
    if (b->n++ + 16 > b->room) return;
    b->id[b->n - 1] = i;
    b->x[b->n - 1] = x;
}

/* The steps (mass.h) of 4 weights; the mass of 4 lanes of them, which become 0. */
INLINE __m256i steps4(__m256d w)
{
    const __m256d one = _mm256_set1_pd(1.0);
    return _mm256_sub_epi64(_mm256_castpd_si256(_mm256_add_pd(w, one)), _mm256_castpd_si256(one));
}
static wg_mass take_steps(__m256i *sum)
{
    uint64_t lane[4];
    _mm256_storeu_si256((__m256i *)(void *)lane, *sum);
    *sum = _mm256_setzero_si256();
    return wg_mass_fold(lane, 4);
}

wg_mass wg_weigh64_avx2(const float *x, int n, float max, double inv_temp, double *p, wg_band *band)
{
    const __m256d top = _mm256_set1_pd((double)max), scale = _mm256_set1_pd(inv_temp);
    __m256i sum = _mm256_setzero_si256(), above = sum;
    wg_mass mass = 0;
    int i = 0;
    band->n = 0;
    band->above = 0;
    for (; i + 4 <= n; i += 4) {
        const __m128 v = _mm_loadu_ps(x + i), over = _mm_cmpgt_ps(v, _mm_set1_ps(band->high));
        const __m128 in = _mm_andnot_ps(over, _mm_cmpge_ps(v, _mm_set1_ps(band->low)));
        const __m256d all = exp64x4(_mm256_mul_pd(_mm256_sub_pd(_mm256_cvtps_pd(v), top), scale));
        const __m256d w = _mm256_and_pd(all, _mm256_cmp_pd(all, all, _CMP_ORD_Q));
        const __m256i steps = steps4(w);
        if (p) _mm256_storeu_pd(p + i, w);
        sum = _mm256_add_epi64(sum, steps);
        above = _mm256_add_epi64(above, _mm256_and_si256(_mm256_castpd_si256(wide4(over)), steps));
        for (unsigned hit = (unsigned)_mm_movemask_ps(in); hit; hit &= hit - 1) {
            const int k = i + __builtin_ctz(hit);
            into_band(band, k, x[k]);
        }
        if ((i / 4 + 1) % WG_MASS_PIECE == 0) {
            mass += take_steps(&sum);
            band->above += take_steps(&above);
        }
    }
    wg_band rest = { .low = band->low, .high = band->high };
    mass += take_steps(&sum) + wg_weigh64_ref(x + i, n - i, max, inv_temp, p ? p + i : NULL, &rest);
    band->above += take_steps(&above) + rest.above;
    for (; i < n; i++)
        if (x[i] >= band->low && !(x[i] > band->high)) into_band(band, i, x[i]);
    return mass;
}

/* Which of 4 elements, from i on, are in the prefix and heavy enough. */
INLINE __m256d kept4(__m128 v, __m256d w, int i, float edge, int last, double lightest)
{
    const __m128i at = _mm_add_epi32(_mm_set1_epi32(i), _mm_setr_epi32(0, 1, 2, 3));
    const __m128 early = _mm_castsi128_ps(_mm_cmpgt_epi32(_mm_set1_epi32(last), _mm_sub_epi32(at, _mm_set1_epi32(1))));
    const __m128 e = _mm_set1_ps(edge), in = _mm_or_ps(_mm_cmpgt_ps(v, e), _mm_and_ps(_mm_cmpeq_ps(v, e), early));
    return _mm256_and_pd(wide4(in), _mm256_cmp_pd(w, _mm256_set1_pd(lightest), _CMP_GE_OQ));
}

static int is_kept(float x, double p, int i, float edge, int last, double lightest)
{
    return (x > edge || (x == edge && i <= last)) && p >= lightest;
}

wg_mass wg_kept64_avx2(const float *x, const double *p, int n, float edge, int last, double lightest, int *count)
{
    __m256i sum = _mm256_setzero_si256();
    wg_mass mass = 0;
    int i = 0, kept = 0, rest;
    for (; i + 4 <= n; i += 4) {
        const __m256d w = _mm256_loadu_pd(p + i), in = kept4(_mm_loadu_ps(x + i), w, i, edge, last, lightest);
        sum = _mm256_add_epi64(sum, _mm256_and_si256(_mm256_castpd_si256(in), steps4(w)));
        kept += __builtin_popcount((unsigned)_mm256_movemask_pd(in));
        if ((i / 4 + 1) % WG_MASS_PIECE == 0) mass += take_steps(&sum);
    }
    mass += take_steps(&sum) + wg_kept64_ref(x + i, p + i, n - i, edge, last - i, lightest, &rest);
    *count = kept + rest;
    return mass;
}

void wg_keep64_avx2(const float *x, double *p, int n, float edge, int last, double lightest, double scale)
{
    int i = 0;
    for (; i + 4 <= n; i += 4) {
        const __m256d w = _mm256_loadu_pd(p + i), in = kept4(_mm_loadu_ps(x + i), w, i, edge, last, lightest);
        _mm256_storeu_pd(p + i, _mm256_and_pd(in, _mm256_mul_pd(w, _mm256_set1_pd(scale))));
    }
    for (; i < n; i++) p[i] = is_kept(x[i], p[i], i, edge, last, lightest) ? p[i] * scale : 0;
}
