/* SPDX-License-Identifier: MIT
 * The vocabulary of kernels/lanes/lanes16.h with 16-lane registers: sixteen lanes are one. Only for *_avx512.c files. */
#ifndef WG_KERNELS_X86_AVX512_H
#define WG_KERNELS_X86_AVX512_H

#include <immintrin.h>

#include "kernels/types.h"
#include "kernels/unroll.h"

enum { LANES = 16, PARTS = 1, IN_STEP = 8 };

typedef __m512 vec;
typedef __m512d dvec;
typedef __m512i svec;
typedef __mmask16 mask;
typedef __mmask8 dmask;

/* ---- floats */
INLINE vec v_all(float x) { return _mm512_set1_ps(x); }
INLINE vec v_fma(vec a, vec b, vec c) { return _mm512_fmadd_ps(a, b, c); }
INLINE vec v_fms(vec a, vec b, vec c) { return _mm512_fmsub_ps(a, b, c); }
INLINE vec v_larger(vec x, vec than) { return _mm512_max_ps(x, than); } /* NaN: the second operand */
INLINE vec v_clamp(vec x, float to) { return _mm512_min_ps(_mm512_max_ps(x, v_all(-to)), v_all(to)); }
INLINE vec v_abs(vec x) { return _mm512_abs_ps(x); }
INLINE void v_ask(const void *p) { _mm_prefetch(p, _MM_HINT_T1); }

INLINE mask v_first(int n) { return (mask)(n >= 16 ? 0xffffu : n <= 0 ? 0 : (1u << n) - 1); }
INLINE mask v_above(vec a, vec b) { return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ); }
INLINE mask v_atleast(vec a, vec b) { return _mm512_cmp_ps_mask(a, b, _CMP_GE_OQ); }
INLINE mask v_below(vec a, vec b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
INLINE mask v_equal(vec a, vec b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }
INLINE mask v_notbelow(vec a, vec b) { return _mm512_cmp_ps_mask(a, b, _CMP_NLT_UQ); }
INLINE mask m_and(mask a, mask b) { return a & b; }
INLINE mask m_or(mask a, mask b) { return a | b; }
INLINE mask m_without(mask a, mask b) { return a & (mask)~b; }
INLINE unsigned m_bits(mask m) { return m; }
INLINE vec v_keep(mask m, vec x) { return _mm512_maskz_mov_ps(m, x); }
INLINE vec v_pick(mask m, vec a, vec b) { return _mm512_mask_mov_ps(b, m, a); }
INLINE vec v_raise(mask m, vec p, vec t)
{
    return _mm512_castsi512_ps(
        _mm512_maskz_add_epi32(m, _mm512_castps_si512(p), _mm512_slli_epi32(_mm512_castps_si512(t), 23)));
}

/* Masked forms do not touch memory outside the mask. */
INLINE vec v_widen(const int type, __m256i h)
{
    if (type == WG_F16) return _mm512_cvtph_ps(h);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16));
}
INLINE vec v_load(const int type, const void *p)
{
    if (type == WG_F32) return _mm512_loadu_ps(p);
    if (type == WG_I8) return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(p)));
    if (type == WG_F8_E4M3) { /* codes; see wg_f8_to_f32. The sign is extended over bit 14 too, which must be 0 */
        const __m256i wide = _mm256_slli_epi16(_mm256_cvtepi8_epi16(_mm_loadu_si128(p)), 7);
        const __m256i half = _mm256_and_si256(wide, _mm256_set1_epi16((short)0xBFFF));
        return _mm512_mul_ps(_mm512_cvtph_ps(half), _mm512_set1_ps(0x1p8f));
    }
    return v_widen(type, _mm256_loadu_si256(p));
}
INLINE vec v_load_first(const int type, int n, const void *p)
{
    const mask m = v_first(n);
    if (type == WG_F32) return _mm512_maskz_loadu_ps(m, p);
    if (type == WG_I8) return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_maskz_loadu_epi8(m, p)));
    return v_widen(type, _mm256_maskz_loadu_epi16(m, p));
}
INLINE vec v_load_or(int n, const float *p, float rest) { return _mm512_mask_loadu_ps(v_all(rest), v_first(n), p); }
INLINE void v_store(float *p, vec x) { _mm512_storeu_ps(p, x); }
INLINE void v_store_first(float *p, int n, vec x) { _mm512_mask_storeu_ps(p, v_first(n), x); }
INLINE __m256i v_narrow(const int type, vec x)
{
    if (type == WG_F16) return _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    const __m512i u = _mm512_castps_si512(x), odd = _mm512_and_si512(_mm512_srli_epi32(u, 16), _mm512_set1_epi32(1));
    const __m512i up = _mm512_add_epi32(u, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    const __m512i h = _mm512_mask_or_epi32(up, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), u, _mm512_set1_epi32(0x400000));
    return _mm512_cvtepi32_epi16(_mm512_srli_epi32(h, 16));
}
INLINE void v_store_as(const int type, void *p, int n, vec x)
{
    if (type == WG_F32) _mm512_mask_storeu_ps(p, v_first(n), x);
    else _mm256_mask_storeu_epi16(p, v_first(n), v_narrow(type, x));
}

/* Adjacent pairs (a, b) rotated by pairs (cos, sin). */
INLINE vec v_turn(vec ab, vec cs)
{
    const vec b = _mm512_mul_ps(_mm512_movehdup_ps(ab), _mm512_permute_ps(cs, 0xB1)); /* b s, b c */
    return _mm512_fmaddsub_ps(_mm512_moveldup_ps(ab), cs, b);
}
INLINE void v_deal(vec a, vec b, vec *even, vec *odd)
{
    const __m512i at = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    *even = _mm512_permutex2var_ps(a, at, b);
    *odd = _mm512_permutex2var_ps(a, _mm512_add_epi32(at, _mm512_set1_epi32(1)), b);
}

INLINE float v_largest(vec x) { return _mm512_reduce_max_ps(x); }
INLINE float v_fold(vec v)
{
    const __m256 a = _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
    __m128 b = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    b = _mm_add_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_add_ss(b, _mm_shuffle_ps(b, b, 1)));
}

/* ---- folds of sixteen registers at once: four levels of adding halves of two */
enum { ADD, MAX };
INLINE vec join(const int op, vec a, vec b) { return op == ADD ? _mm512_add_ps(a, b) : _mm512_max_ps(a, b); }

/* lanes of a, b -> [a folded to 8 | b folded to 8] */
INLINE vec fold_pair(const int op, vec a, vec b)
{
    return join(op, _mm512_mask_blend_ps(0xFF00, a, b),
                _mm512_castpd_ps(_mm512_shuffle_f64x2(_mm512_castps_pd(a), _mm512_castps_pd(b), 0x4E)));
}

/* [a|b], [c|d] of 8 lanes each -> [a|c|b|d] of 4. */
INLINE vec fold_pairs(const int op, vec ab, vec cd)
{
    const vec crossed = _mm512_mask_blend_ps(0x0F0F, ab, cd);
    return join(op, _mm512_mask_blend_ps(0xF0F0, ab, cd),
                _mm512_castpd_ps(_mm512_permutex_pd(_mm512_castps_pd(crossed), 0x4E)));
}
INLINE vec fold_quad(const int op, const vec v[4])
{
    return fold_pairs(op, fold_pair(op, v[0], v[1]), fold_pair(op, v[2], v[3]));
}
INLINE vec fold_quads(const int op, const vec q[4])
{
    const __m512i order = _mm512_setr_epi32(0, 8, 4, 12, 1, 9, 5, 13, 2, 10, 6, 14, 3, 11, 7, 15);
    const vec low = join(op, _mm512_mask_blend_ps(0xCCCC, q[0], q[1]), _mm512_shuffle_ps(q[0], q[1], 0x4E));
    const vec high = join(op, _mm512_mask_blend_ps(0xCCCC, q[2], q[3]), _mm512_shuffle_ps(q[2], q[3], 0x4E));
    return _mm512_permutexvar_ps(order, join(op, _mm512_shuffle_ps(low, high, 0x88), _mm512_shuffle_ps(low, high, 0xDD)));
}

/* ---- doubles */
INLINE dvec d_all(double x) { return _mm512_set1_pd(x); }
INLINE dvec d_fma(dvec a, dvec b, dvec c) { return _mm512_fmadd_pd(a, b, c); }
INLINE dvec d_half(vec v, const int h) { return _mm512_cvtps_pd(h ? _mm512_extractf32x8_ps(v, 1) : _mm512_castps512_ps256(v)); }
INLINE dvec d_add_where(dvec sum, mask m, vec v, const int h)
{
    return _mm512_mask_add_pd(sum, (dmask)(m >> 8 * h), sum, d_half(v, h));
}
INLINE dmask d_first(int n) { return (dmask)(n >= 8 ? 0xffu : n <= 0 ? 0 : (1u << n) - 1); }
INLINE dvec d_load(const double *p) { return _mm512_loadu_pd(p); }
INLINE dvec d_load_first(int n, const double *p) { return _mm512_maskz_loadu_pd(d_first(n), p); }
INLINE void d_store(double *p, dvec x) { _mm512_storeu_pd(p, x); }
INLINE void d_store_first(double *p, int n, dvec x) { _mm512_mask_storeu_pd(p, d_first(n), x); }
INLINE dmask d_atleast(dvec a, dvec b) { return _mm512_cmp_pd_mask(a, b, _CMP_GE_OQ); }
INLINE dmask d_notbelow(dvec a, dvec b) { return _mm512_cmp_pd_mask(a, b, _CMP_NLT_UQ); }
INLINE dmask d_half_mask(mask m, const int h) { return (dmask)(m >> 8 * h); }
INLINE dmask d_also_atleast(dmask m, dvec a, dvec b) { return _mm512_mask_cmp_pd_mask(m, a, b, _CMP_GE_OQ); }
INLINE dvec d_keep(dmask m, dvec x) { return _mm512_maskz_mov_pd(m, x); }
INLINE dvec d_raise(dmask m, dvec p, dvec t)
{
    return _mm512_castsi512_pd(
        _mm512_maskz_add_epi64(m, _mm512_castpd_si512(p), _mm512_slli_epi64(_mm512_castpd_si512(t), 52)));
}
INLINE double d_fold(dvec v)
{
    const __m256d a = _mm256_add_pd(_mm512_castpd512_pd256(v), _mm512_extractf64x4_pd(v, 1));
    const __m128d b = _mm_add_pd(_mm256_castpd256_pd128(a), _mm256_extractf128_pd(a, 1));
    return _mm_cvtsd_f64(_mm_add_sd(b, _mm_unpackhi_pd(b, b)));
}

/* ---- whole numbers of 64 bits */
INLINE svec s_zero(void) { return _mm512_setzero_si512(); }
INLINE svec s_bits(dvec x) { return _mm512_castpd_si512(x); }
INLINE svec s_add(svec a, svec b) { return _mm512_add_epi64(a, b); }
INLINE svec s_sub(svec a, svec b) { return _mm512_sub_epi64(a, b); }
INLINE svec s_add_where(svec sum, dmask m, svec x) { return _mm512_mask_add_epi64(sum, m, sum, x); }
INLINE void s_store(uint64_t *p, svec x) { _mm512_storeu_si512(p, x); }

typedef int tally;
INLINE tally tally_none(void) { return 0; }
INLINE tally tally_add(tally n, dmask m) { return n + __builtin_popcount(m); }
INLINE int tally_sum(tally n) { return n; }

/* ---- operations of rows_lanes.h */

/* Elements that `in` selects, from index i on, packed in registers: stores that pack on their way are slow on some machines. */
#define LANES_PACK
INLINE void v_pack(mask in, vec x, int i, int32_t *id, float *to)
{
    const __m512i count16 = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    _mm512_storeu_si512(id, _mm512_maskz_compress_epi32(in, _mm512_add_epi32(_mm512_set1_epi32(i), count16)));
    _mm512_storeu_ps(to, _mm512_maskz_compress_ps(in, x));
}

INLINE int sum_bytes(__m128i q)
{
    const __m128i two = _mm_sad_epu8(_mm_xor_si128(q, _mm_set1_epi8(-128)), _mm_setzero_si128()); /* of q + 128, by eight */
    return _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_unpackhi_epi64(two, two))) - 16 * 128;
}
INLINE void v_codes32(int8_t *to, const vec x[2], int sum[2])
{
    UNROLL_FOR(int i = 0; i < 2; i++) {
        const __m128i q = _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(x[i]));
        _mm_storeu_si128((void *)(to + 16 * i), q);
        sum[i] = sum_bytes(q);
    }
}

#endif
