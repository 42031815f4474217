/* SPDX-License-Identifier: MIT
 * Vector forms of the small specified pieces for 8-lane registers: sixteen lanes are two of them. Only for *_avx2.c files. */
#ifndef WG_KERNELS_X86_AVX2_H
#define WG_KERNELS_X86_AVX2_H

#include <immintrin.h>
#include <string.h>

#include "kernels/exp.h"
#include "kernels/types.h"
#include "kernels/unroll.h"

/* All bits set in the first n of 8 lanes. */
INLINE __m256i first8(int n)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

INLINE __m256 widen8(const int type, __m128i h)
{
    if (type == WG_F16) return _mm256_cvtph_ps(h);
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16));
}

/* 8 elements of a type as f32 (WG_I8: codes), and the first n of 8 with zeros behind them. */
INLINE __m256 load8(const int type, const void *p)
{
    if (type == WG_I8) return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(p)));
    if (type == WG_F8_E4M3) { /* codes; see wg_f8_to_f32. The sign is extended over bit 14 too, which is to be 0 */
        const __m128i wide = _mm_slli_epi16(_mm_cvtepi8_epi16(_mm_loadl_epi64(p)), 7);
        const __m128i half = _mm_and_si128(wide, _mm_set1_epi16((short)0xBFFF));
        return _mm256_mul_ps(_mm256_cvtph_ps(half), _mm256_set1_ps(0x1p8f));
    }
    return type == WG_F32 ? _mm256_loadu_ps(p) : widen8(type, _mm_loadu_si128(p));
}
INLINE __m256 load8_part(const int type, int n, const void *p)
{
    uint16_t h[8] = { 0 };
    if (type == WG_F32) return _mm256_maskload_ps(p, first8(n));
    if (type == WG_I8) {
        memcpy(h, p, (size_t)n);
        return load8(type, h);
    }
    memcpy(h, p, (size_t)n * 2);
    return widen8(type, _mm_loadu_si128((const void *)h));
}

/* kernels/exp.h on 8 lanes. */
INLINE __m256 exp32x8(__m256 x)
{
    const __m256 magic = _mm256_set1_ps(WG_EXP32_MAGIC);
    const __m256 t = _mm256_fmadd_ps(x, _mm256_set1_ps(WG_LOG2E32), magic), n = _mm256_sub_ps(t, magic);
    const __m256 r = _mm256_fmadd_ps(n, _mm256_set1_ps(-WG_LN2_LOW32), _mm256_fmadd_ps(n, _mm256_set1_ps(-WG_LN2_HIGH32), x));
    __m256 p = _mm256_fmadd_ps(_mm256_set1_ps(WG_EXP32_C6), r, _mm256_set1_ps(WG_EXP32_C5));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(WG_EXP32_C4));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(WG_EXP32_C3));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(WG_EXP32_C2));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0f));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0f));
    p = _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(p), _mm256_slli_epi32(_mm256_castps_si256(t), 23)));
    p = _mm256_and_ps(p, _mm256_cmp_ps(x, _mm256_set1_ps(WG_EXP32_LOW), _CMP_NLT_UQ));
    return _mm256_blendv_ps(p, _mm256_set1_ps(INFINITY), _mm256_cmp_ps(x, _mm256_set1_ps(WG_EXP32_HIGH), _CMP_GT_OQ));
}

/* kernels/exp.h on 4 doubles. */
INLINE __m256d exp64x4(__m256d x)
{
    const __m256d magic = _mm256_set1_pd(WG_EXP64_MAGIC);
    const __m256d t = _mm256_fmadd_pd(x, _mm256_set1_pd(WG_LOG2E64), magic), n = _mm256_sub_pd(t, magic);
    const __m256d r = _mm256_fmadd_pd(n, _mm256_set1_pd(-WG_LN2_LOW64), _mm256_fmadd_pd(n, _mm256_set1_pd(-WG_LN2_HIGH64), x));
    __m256d p = _mm256_fmadd_pd(_mm256_set1_pd(WG_EXP64_C11), r, _mm256_set1_pd(WG_EXP64_C10));
    p = _mm256_fmadd_pd(p, r, _mm256_set1_pd(WG_EXP64_C9));
    p = _mm256_fmadd_pd(p, r, _mm256_set1_pd(WG_EXP64_C8));
    p = _mm256_fmadd_pd(p, r, _mm256_set1_pd(WG_EXP64_C7));
    p = _mm256_fmadd_pd(p, r, _mm256_set1_pd(WG_EXP64_C6));
    p = _mm256_fmadd_pd(p, r, _mm256_set1_pd(WG_EXP64_C5));
    p = _mm256_fmadd_pd(p, r, _mm256_set1_pd(WG_EXP64_C4));
    p = _mm256_fmadd_pd(p, r, _mm256_set1_pd(WG_EXP64_C3));
    p = _mm256_fmadd_pd(p, r, _mm256_set1_pd(WG_EXP64_C2));
    p = _mm256_fmadd_pd(p, r, _mm256_set1_pd(1.0));
    p = _mm256_fmadd_pd(p, r, _mm256_set1_pd(1.0));
    p = _mm256_castsi256_pd(_mm256_add_epi64(_mm256_castpd_si256(p), _mm256_slli_epi64(_mm256_castpd_si256(t), 52)));
    p = _mm256_and_pd(p, _mm256_cmp_pd(x, _mm256_set1_pd(WG_EXP64_LOW), _CMP_NLT_UQ));
    return _mm256_blendv_pd(p, _mm256_set1_pd((double)INFINITY), _mm256_cmp_pd(x, _mm256_set1_pd(WG_EXP64_HIGH), _CMP_GT_OQ));
}

#endif
