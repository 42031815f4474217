/* SPDX-License-Identifier: MIT
 * Vector forms of the small specified pieces: exp, lanes16 folds, element loads. Only for *_avx512.c files. */
#ifndef WG_KERNELS_X86_AVX512_H
#define WG_KERNELS_X86_AVX512_H

#include <immintrin.h>

#include "kernels/exp.h"
#include "kernels/types.h"
#include "kernels/unroll.h"

/* The first n of 16 (8) lanes. */
INLINE __mmask16 first16(int n) { return (__mmask16)(n >= 16 ? 0xffffu : n <= 0 ? 0 : (1u << n) - 1); }
INLINE __mmask8 first8(int n) { return (__mmask8)(n >= 8 ? 0xffu : n <= 0 ? 0 : (1u << n) - 1); }

/* 16 elements of a type as f32; 32-bit and 16-bit masked forms do not touch memory outside the mask. */
INLINE __m512 load16(const int type, const void *p)
{
    if (type == WG_F32) return _mm512_loadu_ps(p);
    if (type == WG_F8_E4M3) { /* codes; see wg_f8_to_f32. The sign is extended over bit 14 too, which is to be 0 */
        const __m256i wide = _mm256_slli_epi16(_mm256_cvtepi8_epi16(_mm_loadu_si128(p)), 7);
        const __m256i half = _mm256_and_si256(wide, _mm256_set1_epi16((short)0xBFFF));
        return _mm512_mul_ps(_mm512_cvtph_ps(half), _mm512_set1_ps(0x1p8f));
    }
    const __m256i h = _mm256_loadu_si256(p);
    if (type == WG_F16) return _mm512_cvtph_ps(h);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16));
}
INLINE __m512 load16_mask(const int type, __mmask16 mask, const void *p)
{
    if (type == WG_F32) return _mm512_maskz_loadu_ps(mask, p);
    const __m256i h = _mm256_maskz_loadu_epi16(mask, p);
    if (type == WG_F16) return _mm512_cvtph_ps(h);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16));
}

/* kernels/exp.h on 16 lanes, of x that are not above 88.7. */
INLINE __m512 exp32x16_low(__m512 x)
{
    const __m512 magic = _mm512_set1_ps(WG_EXP32_MAGIC);
    const __m512 t = _mm512_fmadd_ps(x, _mm512_set1_ps(WG_LOG2E32), magic), n = _mm512_sub_ps(t, magic);
    const __m512 r = _mm512_fmadd_ps(n, _mm512_set1_ps(-WG_LN2_LOW32), _mm512_fmadd_ps(n, _mm512_set1_ps(-WG_LN2_HIGH32), x));
    __m512 p = _mm512_fmadd_ps(_mm512_set1_ps(WG_EXP32_C6), r, _mm512_set1_ps(WG_EXP32_C5));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(WG_EXP32_C4));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(WG_EXP32_C3));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(WG_EXP32_C2));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f));
    p = _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(p), _mm512_slli_epi32(_mm512_castps_si512(t), 23)));
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, _mm512_set1_ps(WG_EXP32_LOW), _CMP_NLT_UQ), p);
}
INLINE __m512 exp32x16(__m512 x)
{
    const __mmask16 high = _mm512_cmp_ps_mask(x, _mm512_set1_ps(WG_EXP32_HIGH), _CMP_GT_OQ);
    return _mm512_mask_mov_ps(exp32x16_low(x), high, _mm512_set1_ps(INFINITY));
}

/* kernels/exp.h on 8 doubles. */
INLINE __m512d exp64x8(__m512d x)
{
    const __m512d magic = _mm512_set1_pd(WG_EXP64_MAGIC);
    const __m512d t = _mm512_fmadd_pd(x, _mm512_set1_pd(WG_LOG2E64), magic), n = _mm512_sub_pd(t, magic);
    const __m512d r = _mm512_fmadd_pd(n, _mm512_set1_pd(-WG_LN2_LOW64), _mm512_fmadd_pd(n, _mm512_set1_pd(-WG_LN2_HIGH64), x));
    __m512d p = _mm512_fmadd_pd(_mm512_set1_pd(WG_EXP64_C11), r, _mm512_set1_pd(WG_EXP64_C10));
    p = _mm512_fmadd_pd(p, r, _mm512_set1_pd(WG_EXP64_C9));
    p = _mm512_fmadd_pd(p, r, _mm512_set1_pd(WG_EXP64_C8));
    p = _mm512_fmadd_pd(p, r, _mm512_set1_pd(WG_EXP64_C7));
    p = _mm512_fmadd_pd(p, r, _mm512_set1_pd(WG_EXP64_C6));
    p = _mm512_fmadd_pd(p, r, _mm512_set1_pd(WG_EXP64_C5));
    p = _mm512_fmadd_pd(p, r, _mm512_set1_pd(WG_EXP64_C4));
    p = _mm512_fmadd_pd(p, r, _mm512_set1_pd(WG_EXP64_C3));
    p = _mm512_fmadd_pd(p, r, _mm512_set1_pd(WG_EXP64_C2));
    p = _mm512_fmadd_pd(p, r, _mm512_set1_pd(1.0));
    p = _mm512_fmadd_pd(p, r, _mm512_set1_pd(1.0));
    p = _mm512_castsi512_pd(_mm512_add_epi64(_mm512_castpd_si512(p), _mm512_slli_epi64(_mm512_castpd_si512(t), 52)));
    p = _mm512_maskz_mov_pd(_mm512_cmp_pd_mask(x, _mm512_set1_pd(WG_EXP64_LOW), _CMP_NLT_UQ), p);
    return _mm512_mask_mov_pd(p, _mm512_cmp_pd_mask(x, _mm512_set1_pd(WG_EXP64_HIGH), _CMP_GT_OQ), _mm512_set1_pd(INFINITY));
}

/* The same of eight registers in step: a chain of dependent operations each, eight of them keep the multipliers busy. Of x that
 * are not above 709; NaN gives 0. */
INLINE void exp64x64_low(__m512d x[8])
{
    static const double c[] = { WG_EXP64_C10, WG_EXP64_C9, WG_EXP64_C8, WG_EXP64_C7, WG_EXP64_C6, WG_EXP64_C5,
                                WG_EXP64_C4,  WG_EXP64_C3, WG_EXP64_C2, 1.0,         1.0 };
    const __m512d magic = _mm512_set1_pd(WG_EXP64_MAGIC);
    __m512d t[8], r[8], p[8];
    __mmask8 some[8];
    UNROLL for (int h = 0; h < 8; h++) t[h] = _mm512_fmadd_pd(x[h], _mm512_set1_pd(WG_LOG2E64), magic);
    UNROLL for (int h = 0; h < 8; h++) p[h] = _mm512_sub_pd(t[h], magic);
    UNROLL for (int h = 0; h < 8; h++) r[h] = _mm512_fmadd_pd(p[h], _mm512_set1_pd(-WG_LN2_HIGH64), x[h]);
    UNROLL for (int h = 0; h < 8; h++) r[h] = _mm512_fmadd_pd(p[h], _mm512_set1_pd(-WG_LN2_LOW64), r[h]);
    UNROLL for (int h = 0; h < 8; h++) some[h] = _mm512_cmp_pd_mask(x[h], _mm512_set1_pd(WG_EXP64_LOW), _CMP_GE_OQ);
    UNROLL for (int h = 0; h < 8; h++) p[h] = _mm512_set1_pd(WG_EXP64_C11);
    UNROLL for (int k = 0; k < 11; k++)
        UNROLL for (int h = 0; h < 8; h++) p[h] = _mm512_fmadd_pd(p[h], r[h], _mm512_set1_pd(c[k]));
    UNROLL for (int h = 0; h < 8; h++) {
        const __m512i n = _mm512_slli_epi64(_mm512_castpd_si512(t[h]), 52);
        x[h] = _mm512_castsi512_pd(_mm512_maskz_add_epi64(some[h], _mm512_castpd_si512(p[h]), n));
    }
}

/* Four registers in step, of x that are not above 88.7. */
INLINE void exp32x64_low(__m512 x[4])
{
    static const float c[] = { WG_EXP32_C5, WG_EXP32_C4, WG_EXP32_C3, WG_EXP32_C2, 1.0f, 1.0f };
    const __m512 magic = _mm512_set1_ps(WG_EXP32_MAGIC);
    __m512 t[4], r[4], p[4];
    __mmask16 some[4];
    UNROLL for (int h = 0; h < 4; h++) t[h] = _mm512_fmadd_ps(x[h], _mm512_set1_ps(WG_LOG2E32), magic);
    UNROLL for (int h = 0; h < 4; h++) p[h] = _mm512_sub_ps(t[h], magic);
    UNROLL for (int h = 0; h < 4; h++) r[h] = _mm512_fmadd_ps(p[h], _mm512_set1_ps(-WG_LN2_HIGH32), x[h]);
    UNROLL for (int h = 0; h < 4; h++) r[h] = _mm512_fmadd_ps(p[h], _mm512_set1_ps(-WG_LN2_LOW32), r[h]);
    UNROLL for (int h = 0; h < 4; h++) some[h] = _mm512_cmp_ps_mask(x[h], _mm512_set1_ps(WG_EXP32_LOW), _CMP_NLT_UQ);
    UNROLL for (int h = 0; h < 4; h++) p[h] = _mm512_set1_ps(WG_EXP32_C6);
    UNROLL for (int k = 0; k < 6; k++)
        UNROLL for (int h = 0; h < 4; h++) p[h] = _mm512_fmadd_ps(p[h], r[h], _mm512_set1_ps(c[k]));
    UNROLL for (int h = 0; h < 4; h++) {
        const __m512i n = _mm512_slli_epi32(_mm512_castps_si512(t[h]), 23);
        x[h] = _mm512_castsi512_ps(_mm512_maskz_add_epi32(some[h], _mm512_castps_si512(p[h]), n));
    }
}

/* The lanes16 fold: l += l+8, l+4, l+2, l+1. */
INLINE float fold16(__m512 v)
{
    const __m256 a = _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
    __m128 b = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    b = _mm_add_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_add_ss(b, _mm_shuffle_ps(b, b, 1)));
}

/* Lanes 0-7 and 8-15. */
INLINE double fold16_double(__m512d low, __m512d high)
{
    const __m512d v = _mm512_add_pd(low, high);
    const __m256d a = _mm256_add_pd(_mm512_castpd512_pd256(v), _mm512_extractf64x4_pd(v, 1));
    const __m128d b = _mm_add_pd(_mm256_castpd256_pd128(a), _mm256_extractf128_pd(a, 1));
    return _mm_cvtsd_f64(_mm_add_sd(b, _mm_unpackhi_pd(b, b)));
}

#endif
