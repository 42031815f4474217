/* SPDX-License-Identifier: MIT
 * Four floats at once, in vectors that every compiler target here has: the same bits everywhere. For converting weights;
 * products have kernels of their own (lanes/). Private to kernels/. */
#ifndef WG_KERNELS_FOUR_H
#define WG_KERNELS_FOUR_H

#include <stdint.h>
#include <string.h>

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
static inline four four_smaller(four a, four b) { return four_choose(a < b, a, b); }
static inline four four_larger(four a, four b) { return four_choose(a > b, a, b); }

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

#endif
