/* SPDX-License-Identifier: MIT
 * The vocabulary of kernels/lanes/lanes16.h with 8-lane registers: sixteen lanes are two. Only for *_avx2.c and *_avxvnni.c
 * files. */
#ifndef WG_KERNELS_X86_AVX2_H
#define WG_KERNELS_X86_AVX2_H

#include <immintrin.h>
#include <string.h>

#include "kernels/types.h"
#include "kernels/unroll.h"

enum { LANES = 8, PARTS = 2, IN_STEP = 1 };

typedef __m256 vec, mask; /* a mask has all bits of its lanes set */
typedef __m256d dvec, dmask;
typedef __m256i svec, tally;

/* ---- floats */
INLINE vec v_all(float x) { return _mm256_set1_ps(x); }
INLINE vec v_fma(vec a, vec b, vec c) { return _mm256_fmadd_ps(a, b, c); }
INLINE vec v_fms(vec a, vec b, vec c) { return _mm256_fmsub_ps(a, b, c); }
INLINE vec v_larger(vec x, vec than) { return _mm256_max_ps(x, than); } /* NaN: the second operand */
INLINE vec v_clamp(vec x, float to) { return _mm256_min_ps(_mm256_max_ps(x, v_all(-to)), v_all(to)); }
INLINE vec v_abs(vec x) { return _mm256_andnot_ps(v_all(-0.0f), x); }
INLINE void v_ask(const void *p) { _mm_prefetch(p, _MM_HINT_T1); }

INLINE mask v_first(int n)
{
    const __m256i at = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_castsi256_ps(_mm256_cmpgt_epi32(_mm256_set1_epi32(n), at));
}
INLINE mask v_above(vec a, vec b) { return _mm256_cmp_ps(a, b, _CMP_GT_OQ); }
INLINE mask v_atleast(vec a, vec b) { return _mm256_cmp_ps(a, b, _CMP_GE_OQ); }
INLINE mask v_below(vec a, vec b) { return _mm256_cmp_ps(a, b, _CMP_LT_OQ); }
INLINE mask v_equal(vec a, vec b) { return _mm256_cmp_ps(a, b, _CMP_EQ_OQ); }
INLINE mask v_notbelow(vec a, vec b) { return _mm256_cmp_ps(a, b, _CMP_NLT_UQ); }
INLINE mask m_and(mask a, mask b) { return _mm256_and_ps(a, b); }
INLINE mask m_or(mask a, mask b) { return _mm256_or_ps(a, b); }
INLINE mask m_without(mask a, mask b) { return _mm256_andnot_ps(b, a); }
INLINE unsigned m_bits(mask m) { return (unsigned)_mm256_movemask_ps(m); }
INLINE vec v_keep(mask m, vec x) { return _mm256_and_ps(m, x); }
INLINE vec v_pick(mask m, vec a, vec b) { return _mm256_blendv_ps(b, a, m); }
INLINE vec v_raise(mask m, vec p, vec t)
{
    const __m256i n = _mm256_slli_epi32(_mm256_castps_si256(t), 23);
    return _mm256_and_ps(m, _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(p), n)));
}

INLINE vec v_widen(const int type, __m128i h)
{
    if (type == WG_F16) return _mm256_cvtph_ps(h);
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16));
}
INLINE vec v_load(const int type, const void *p)
{
    if (type == WG_F32) return _mm256_loadu_ps(p);
    if (type == WG_I8) return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(p)));
    if (type == WG_F8_E4M3) { /* codes; see wg_f8_to_f32. The sign is extended over bit 14 too, which must be 0 */
        const __m128i wide = _mm_slli_epi16(_mm_cvtepi8_epi16(_mm_loadl_epi64(p)), 7);
        const __m128i half = _mm_and_si128(wide, _mm_set1_epi16((short)0xBFFF));
        return _mm256_mul_ps(_mm256_cvtph_ps(half), _mm256_set1_ps(0x1p8f));
    }
    return v_widen(type, _mm_loadu_si128(p));
}
INLINE vec v_load_first(const int type, int n, const void *p)
{
    uint16_t h[8] = { 0 };
    if (type == WG_F32) return _mm256_maskload_ps(p, _mm256_castps_si256(v_first(n)));
    n = n < 0 ? 0 : n > 8 ? 8 : n;
    memcpy(h, p, (size_t)n * (type == WG_I8 ? 1 : 2));
    return v_load(type, h);
}
INLINE vec v_load_or(int n, const float *p, float rest)
{
    const mask m = v_first(n);
    return v_pick(m, _mm256_maskload_ps(p, _mm256_castps_si256(m)), v_all(rest));
}
INLINE void v_store(float *p, vec x) { _mm256_storeu_ps(p, x); }
INLINE void v_store_first(float *p, int n, vec x) { _mm256_maskstore_ps(p, _mm256_castps_si256(v_first(n)), x); }
INLINE __m128i v_narrow(const int type, vec x)
{
    if (type == WG_F16) return _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    const __m256i u = _mm256_castps_si256(x), odd = _mm256_and_si256(_mm256_srli_epi32(u, 16), _mm256_set1_epi32(1));
    const __m256i up = _mm256_add_epi32(u, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
    const __m256i nan = _mm256_or_si256(u, _mm256_set1_epi32(0x400000));
    const mask none = _mm256_cmp_ps(x, x, _CMP_UNORD_Q);
    const vec full = v_pick(none, _mm256_castsi256_ps(nan), _mm256_castsi256_ps(up));
    const __m256i h = _mm256_srli_epi32(_mm256_castps_si256(full), 16);
    return _mm_packus_epi32(_mm256_castsi256_si128(h), _mm256_extracti128_si256(h, 1));
}
INLINE void v_store_as(const int type, void *p, int n, vec x)
{
    if (type == WG_F32) {
        if (n >= 8) v_store(p, x);
        else v_store_first(p, n, x);
        return;
    }
    const __m128i h = v_narrow(type, x);
    if (n >= 8) _mm_storeu_si128(p, h);
    else if (n > 0) memcpy(p, &h, (size_t)n * 2);
}

/* Adjacent pairs (a, b) rotated by pairs (cos, sin). */
INLINE vec v_turn(vec ab, vec cs)
{
    const vec b = _mm256_mul_ps(_mm256_movehdup_ps(ab), _mm256_permute_ps(cs, 0xB1)); /* b s, b c */
    return _mm256_fmaddsub_ps(_mm256_moveldup_ps(ab), cs, b);
}
INLINE void v_deal(vec a, vec b, vec *even, vec *odd)
{
    *even = _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(_mm256_shuffle_ps(a, b, 0x88)), 0xD8));
    *odd = _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(_mm256_shuffle_ps(a, b, 0xDD)), 0xD8));
}

INLINE float v_largest(vec x)
{
    __m128 m = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    m = _mm_max_ps(m, _mm_movehl_ps(m, m));
    return _mm_cvtss_f32(_mm_max_ss(m, _mm_shuffle_ps(m, m, 1)));
}
INLINE float v_fold(vec v)
{
    __m128 b = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    b = _mm_add_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_add_ss(b, _mm_shuffle_ps(b, b, 1)));
}

/* ---- folds of eight registers at once: three levels of adding halves of two */
enum { ADD, MAX };
INLINE vec join(const int op, vec a, vec b) { return op == ADD ? _mm256_add_ps(a, b) : _mm256_max_ps(a, b); }

/* Four registers -> two lanes each: [v0 v0 v2 v2 | v1 v1 v3 v3]. */
INLINE vec fold_quad(const int op, const vec v[4])
{
    vec pair[2];
    UNROLL_FOR(int i = 0; i < 2; i++)
        pair[i] = join(op, _mm256_permute2f128_ps(v[2 * i], v[2 * i + 1], 0x20),
                       _mm256_permute2f128_ps(v[2 * i], v[2 * i + 1], 0x31));
    return join(op, _mm256_shuffle_ps(pair[0], pair[1], 0x44), _mm256_shuffle_ps(pair[0], pair[1], 0xEE));
}
INLINE vec fold_quads(const int op, const vec q[2])
{
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    const vec all = join(op, _mm256_shuffle_ps(q[0], q[1], 0x88), _mm256_shuffle_ps(q[0], q[1], 0xDD));
    return _mm256_permutevar8x32_ps(all, order);
}

/* ---- doubles */
INLINE dvec d_all(double x) { return _mm256_set1_pd(x); }
INLINE dvec d_fma(dvec a, dvec b, dvec c) { return _mm256_fmadd_pd(a, b, c); }
INLINE dvec d_half(vec v, const int h) { return _mm256_cvtps_pd(h ? _mm256_extractf128_ps(v, 1) : _mm256_castps256_ps128(v)); }
INLINE dvec d_add_where(dvec sum, mask m, vec v, const int h) { return _mm256_add_pd(sum, d_half(v_keep(m, v), h)); }
INLINE __m256i d_first(int n) { return _mm256_cmpgt_epi64(_mm256_set1_epi64x(n), _mm256_setr_epi64x(0, 1, 2, 3)); }
INLINE dvec d_load(const double *p) { return _mm256_loadu_pd(p); }
INLINE dvec d_load_first(int n, const double *p) { return _mm256_maskload_pd(p, d_first(n)); }
INLINE void d_store(double *p, dvec x) { _mm256_storeu_pd(p, x); }
INLINE void d_store_first(double *p, int n, dvec x) { _mm256_maskstore_pd(p, d_first(n), x); }
INLINE dmask d_atleast(dvec a, dvec b) { return _mm256_cmp_pd(a, b, _CMP_GE_OQ); }
INLINE dmask d_notbelow(dvec a, dvec b) { return _mm256_cmp_pd(a, b, _CMP_NLT_UQ); }
INLINE dmask d_half_mask(mask m, const int h)
{
    const __m128 half = h ? _mm256_extractf128_ps(m, 1) : _mm256_castps256_ps128(m);
    return _mm256_castsi256_pd(_mm256_cvtepi32_epi64(_mm_castps_si128(half)));
}
INLINE dmask d_also_atleast(dmask m, dvec a, dvec b) { return _mm256_and_pd(m, d_atleast(a, b)); }
INLINE dvec d_keep(dmask m, dvec x) { return _mm256_and_pd(m, x); }
INLINE dvec d_raise(dmask m, dvec p, dvec t)
{
    const __m256i n = _mm256_slli_epi64(_mm256_castpd_si256(t), 52);
    return _mm256_and_pd(m, _mm256_castsi256_pd(_mm256_add_epi64(_mm256_castpd_si256(p), n)));
}
INLINE double d_fold(dvec v)
{
    const __m128d b = _mm_add_pd(_mm256_castpd256_pd128(v), _mm256_extractf128_pd(v, 1));
    return _mm_cvtsd_f64(_mm_add_sd(b, _mm_unpackhi_pd(b, b)));
}

/* ---- whole numbers of 64 bits */
INLINE svec s_zero(void) { return _mm256_setzero_si256(); }
INLINE svec s_bits(dvec x) { return _mm256_castpd_si256(x); }
INLINE svec s_add(svec a, svec b) { return _mm256_add_epi64(a, b); }
INLINE svec s_sub(svec a, svec b) { return _mm256_sub_epi64(a, b); }
INLINE svec s_add_where(svec sum, dmask m, svec x) { return s_add(sum, _mm256_and_si256(_mm256_castpd_si256(m), x)); }
INLINE void s_store(uint64_t *p, svec x) { _mm256_storeu_si256((void *)p, x); }

INLINE tally tally_none(void) { return s_zero(); }
INLINE tally tally_add(tally n, dmask m) { return s_sub(n, _mm256_castpd_si256(m)); }
INLINE int tally_sum(tally n)
{
    uint64_t lane[4];
    s_store(lane, n);
    return (int)(lane[0] + lane[1] + lane[2] + lane[3]);
}

/* ---- operations of rows_lanes.h */
INLINE void v_codes32(int8_t *to, const vec x[4], int sum[2])
{
    __m256i q[4];
    UNROLL_FOR(int i = 0; i < 4; i++) q[i] = _mm256_cvtps_epi32(x[i]);
    const __m256i bytes = _mm256_packs_epi16(_mm256_packs_epi32(q[0], q[1]), _mm256_packs_epi32(q[2], q[3]));
    _mm256_storeu_si256((void *)to, _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7)));
    /* pairs, then halves: element 0 is the sum of q[0], q[1], element 1 of the others */
    const __m256i s8 = _mm256_hadd_epi32(_mm256_add_epi32(q[0], q[1]), _mm256_add_epi32(q[2], q[3]));
    __m128i s = _mm_add_epi32(_mm256_castsi256_si128(s8), _mm256_extracti128_si256(s8, 1));
    s = _mm_hadd_epi32(s, s);
    sum[0] = _mm_cvtsi128_si32(s);
    sum[1] = _mm_extract_epi32(s, 1);
}

/* ---- attention over codes: products of 64 codes of a key and a query, in any lanes of whole numbers */
typedef __m256i byte_vec, ivec;
INLINE byte_vec i_load(const int8_t *p) { return _mm256_loadu_si256((const void *)p); }
INLINE ivec i_zero(void) { return _mm256_setzero_si256(); }

/* |k| times (q with the signs of k): pairs of products stay below 2^15, because no code is -128. */
INLINE ivec i_dot(ivec sum, byte_vec k, byte_vec q)
{
    const __m256i pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(k), _mm256_sign_epi8(q, k));
    return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}

/* Eight sums of lanes, as floats. */
INLINE vec i_fold(const ivec v[8])
{
    const __m256i low = _mm256_hadd_epi32(_mm256_hadd_epi32(v[0], v[1]), _mm256_hadd_epi32(v[2], v[3]));
    const __m256i high = _mm256_hadd_epi32(_mm256_hadd_epi32(v[4], v[5]), _mm256_hadd_epi32(v[6], v[7]));
    return _mm256_cvtepi32_ps(
        _mm256_add_epi32(_mm256_permute2x128_si256(low, high, 0x20), _mm256_permute2x128_si256(low, high, 0x31)));
}

#endif
