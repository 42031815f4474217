/* SPDX-License-Identifier: MIT
 * Four floats at once, in vectors that every compiler target here has: the same bits everywhere. What x86-64 has one
 * instruction for, and compilers do not find, is written twice. For converting weights; products have kernels of their own
 * (lanes/). Private to kernels/. */
#ifndef WG_KERNELS_FOUR_H
#define WG_KERNELS_FOUR_H

#include <stdint.h>
#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

typedef float four __attribute__((vector_size(16)));
typedef int32_t mask4 __attribute__((vector_size(16)));

static inline four four_load(const float *x)
{
    four v;
    memcpy(&v, x, sizeof v);
    return v;
}

static inline four four_all(float x) { return (four){ x, x, x, x }; }
static inline float four_sum(four v) { return (v[0] + v[1]) + (v[2] + v[3]); }
static inline four four_choose(mask4 m, four a, four b) { return (four)(((mask4)a & m) | ((mask4)b & ~m)); }

/* a where it is smaller (larger) than b, else b: where one is NaN, and of two zeros. */
#ifdef __SSE2__
static inline four four_smaller(four a, four b) { return _mm_min_ps(a, b); }
static inline four four_larger(four a, four b) { return _mm_max_ps(a, b); }
#else
static inline four four_smaller(four a, four b) { return four_choose(a < b, a, b); }
static inline four four_larger(four a, four b) { return four_choose(a > b, a, b); }
#endif

/* To the nearest integer from low to high, ties to even. */
static inline four four_rounded(four x, float low, float high)
{
    const four big = four_all(0x1.8p23f);
    return (four_smaller(four_larger(x, four_all(low)), four_all(high)) + big) - big;
}

static inline four four_abs(four x) { return (four)((mask4)x & 0x7FFFFFFF); }
static inline float four_max(four v)
{
    const float a = v[0] > v[1] ? v[0] : v[1], b = v[2] > v[3] ? v[2] : v[3];
    return a > b ? a : b;
}

/* 16 numbers from 0 to 255, cut to whole ones, as bytes. */
static inline void four_to_bytes(const four v[4], uint8_t *to)
{
#ifdef __SSE2__
    const __m128i low = _mm_packs_epi32(_mm_cvttps_epi32(v[0]), _mm_cvttps_epi32(v[1]));
    const __m128i high = _mm_packs_epi32(_mm_cvttps_epi32(v[2]), _mm_cvttps_epi32(v[3]));
    _mm_storeu_si128((__m128i *)to, _mm_packus_epi16(low, high));
#else
    for (int i = 0; i < 16; i++) to[i] = (uint8_t)(int)v[i / 4][i % 4];
#endif
}

#endif
