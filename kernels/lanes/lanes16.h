/* SPDX-License-Identifier: MIT
 * The sixteen lanes of ops.h over the registers of an instruction set. A level's header (kernels/x86/avx2.h, avx512.h,
 * kernels/arm/neon.h) is included first and defines the registers:
 *     LANES, PARTS       floats of a register; registers of sixteen lanes: LANES * PARTS is 16
 *     IN_STEP            most registers whose exponentials are computed side by side
 *     vec mask           LANES floats, and for each of them a yes or no; + - * / are the operators of C
 *     dvec dmask         LANES / 2 doubles, and for each of them a yes or no
 *     svec               LANES / 2 whole numbers of 64 bits
 *     tally              counts of dmask lanes
 *     v_all v_fma v_fms v_larger v_clamp v_abs     (fma: a b + c, fms: a b - c, fused; larger: NaN in the first never is)
 *     v_load(type, p) v_load_first(type, n, p) v_load_or(n, p, rest) v_store v_store_first(p, n, x) v_store_as(type, p, n, x)
 *                        n is clamped to 0 .. LANES; memory behind the first n elements is not touched
 *     v_first(n) v_above v_atleast v_below v_equal v_notbelow m_and m_or m_without m_bits v_keep v_pick
 *                        masks; keep: 0 where the mask is not set
 *     v_raise d_raise    p with the lowest bits of t added to its exponent where the mask is set, else 0
 *     v_turn v_deal      rotary pairs; the even and the odd elements of two registers
 *     v_fold v_largest d_fold fold_quad fold_quads join      folds of one register, and of LANES registers at once
 *     v_codes32          rounds 32 floats to bytes, with the sums of both halves
 *     v_ask              prefetch
 * This file builds the sixteen lanes, and exp, from them. Every function below returns the bits of kernels/ref. Private to
 * kernels/. */
#ifndef WG_KERNELS_LANES_LANES16_H
#define WG_KERNELS_LANES_LANES16_H

#include "kernels/exp.h"
#include "kernels/types.h"
#include "kernels/unroll.h"

typedef struct lanes16 {
    vec v[PARTS];
} lanes16; /* lane LANES i + l is lane l of v[i] */
typedef struct mask16 {
    mask m[PARTS];
} mask16;
typedef struct doubles16 {
    dvec v[2 * PARTS];
} doubles16;

#define EACH UNROLL_FOR(int i = 0; i < PARTS; i++)
#define EACH_DOUBLE UNROLL_FOR(int i = 0; i < 2 * PARTS; i++)

INLINE lanes16 all16(float x)
{
    lanes16 y;
    EACH y.v[i] = v_all(x);
    return y;
}

/* For complete registers n is a constant >= 16. */
#define WHOLE(n) (__builtin_constant_p(n) && (n) >= 16)

/* The first n of 16 elements; behind them `rest`, or zeros. */
INLINE lanes16 load16_or(int n, const float *p, float rest)
{
    lanes16 y;
    EACH y.v[i] = WHOLE(n) ? v_load(WG_F32, p + LANES * i) : v_load_or(n - LANES * i, p + LANES * i, rest);
    return y;
}
INLINE lanes16 load16(int n, const float *p)
{
    lanes16 y;
    EACH y.v[i] = WHOLE(n) ? v_load(WG_F32, p + LANES * i) : v_load_first(WG_F32, n - LANES * i, p + LANES * i);
    return y;
}
INLINE void store16(float *p, int n, lanes16 x)
{
    EACH
    {
        if (WHOLE(n)) v_store(p + LANES * i, x.v[i]);
        else v_store_first(p + LANES * i, n - LANES * i, x.v[i]);
    }
}

INLINE lanes16 add16(lanes16 x, lanes16 y)
{
    EACH x.v[i] = x.v[i] + y.v[i];
    return x;
}
INLINE lanes16 mul16(lanes16 x, lanes16 y)
{
    EACH x.v[i] = x.v[i] * y.v[i];
    return x;
}
INLINE lanes16 scale16(lanes16 x, float by)
{
    EACH x.v[i] = x.v[i] * v_all(by);
    return x;
}
INLINE lanes16 fma16(lanes16 a, lanes16 b, lanes16 c)
{
    EACH c.v[i] = v_fma(a.v[i], b.v[i], c.v[i]);
    return c;
}
INLINE lanes16 larger16(lanes16 x, lanes16 than)
{
    EACH x.v[i] = v_larger(x.v[i], than.v[i]);
    return x;
}
INLINE unsigned bits16(mask16 x)
{
    unsigned bits = 0;
    EACH bits |= m_bits(x.m[i]) << LANES * i;
    return bits;
}

/* fold_parts: the first folds, while there are several registers; then the whole fold; the largest, in any order. */
INLINE vec fold_parts(const int op, lanes16 x)
{
    UNROLL_FOR(int w = PARTS / 2; w; w /= 2)
        UNROLL_FOR(int i = 0; i < w; i++) x.v[i] = join(op, x.v[i], x.v[i + w]);
    return x.v[0];
}
INLINE float fold16(lanes16 x) { return v_fold(fold_parts(ADD, x)); }
INLINE float largest16(lanes16 x) { return v_largest(fold_parts(MAX, x)); }

/* ---- doubles */
INLINE doubles16 widen16(lanes16 x)
{
    doubles16 y;
    EACH_DOUBLE y.v[i] = d_half(x.v[i / 2], i % 2);
    return y;
}
INLINE doubles16 zero_doubles(void)
{
    doubles16 y;
    EACH_DOUBLE y.v[i] = d_all(0);
    return y;
}
INLINE double fold16_double(doubles16 x)
{
    UNROLL_FOR(int w = PARTS; w; w /= 2)
        UNROLL_FOR(int i = 0; i < w; i++) x.v[i] = x.v[i] + x.v[i + w];
    return d_fold(x.v[0]);
}
INLINE dvec load_doubles(int n, const double *p, int i) /* register i of 16 doubles */
{
    const int at = LANES / 2 * i;
    return WHOLE(n) ? d_load(p + at) : d_load_first(n - at, p + at);
}
INLINE void store_doubles(double *p, int n, int i, dvec x)
{
    const int at = LANES / 2 * i;
    if (WHOLE(n)) d_store(p + at, x);
    else d_store_first(p + at, n - at, x);
}

/* The steps of weights (mass.h). */
INLINE svec steps_of(dvec w) { return s_sub(s_bits(w + d_all(1.0)), s_bits(d_all(1.0))); }

/* ---- kernels/exp.h. Chains of dependent operations: IN_STEP registers together keep the multipliers busy. */

/* n registers, of x that are not above 88.7; NaN stays NaN. */
INLINE void exp32_low(vec *x, const int n)
{
    static const float c[] = { WG_EXP32_C5, WG_EXP32_C4, WG_EXP32_C3, WG_EXP32_C2, 1.0f, 1.0f };
    const int H = n < IN_STEP ? n : IN_STEP;
    UNROLL_FOR(int at = 0; at < n; at += H, x += H) {
        vec t[IN_STEP], r[IN_STEP], p[IN_STEP];
        mask some[IN_STEP];
        UNROLL_FOR(int h = 0; h < H; h++) t[h] = v_fma(x[h], v_all(WG_LOG2E32), v_all(WG_EXP32_MAGIC));
        UNROLL_FOR(int h = 0; h < H; h++) p[h] = t[h] - v_all(WG_EXP32_MAGIC);
        UNROLL_FOR(int h = 0; h < H; h++) r[h] = v_fma(p[h], v_all(-WG_LN2_HIGH32), x[h]);
        UNROLL_FOR(int h = 0; h < H; h++) r[h] = v_fma(p[h], v_all(-WG_LN2_LOW32), r[h]);
        UNROLL_FOR(int h = 0; h < H; h++) some[h] = v_notbelow(x[h], v_all(WG_EXP32_LOW));
        UNROLL_FOR(int h = 0; h < H; h++) p[h] = v_all(WG_EXP32_C6);
        UNROLL_FOR(int k = 0; k < 6; k++)
            UNROLL_FOR(int h = 0; h < H; h++) p[h] = v_fma(p[h], r[h], v_all(c[k]));
        UNROLL_FOR(int h = 0; h < H; h++) x[h] = v_raise(some[h], p[h], t[h]);
    }
}

/* exp of sixteen lanes, any x. */
INLINE lanes16 exp16(lanes16 x)
{
    mask16 high;
    EACH high.m[i] = v_above(x.v[i], v_all(WG_EXP32_HIGH));
    exp32_low(x.v, PARTS);
    EACH x.v[i] = v_pick(high.m[i], v_all(INFINITY), x.v[i]);
    return x;
}

/* n registers of doubles, of x that are not above 709; NaN gives 0, or with keep_nan NaN. */
INLINE void exp64_low(dvec *x, const int n, const int keep_nan)
{
    static const double c[] = { WG_EXP64_C10, WG_EXP64_C9, WG_EXP64_C8, WG_EXP64_C7, WG_EXP64_C6, WG_EXP64_C5,
                                WG_EXP64_C4,  WG_EXP64_C3, WG_EXP64_C2, 1.0,         1.0 };
    const int H = n < IN_STEP ? n : IN_STEP;
    UNROLL_FOR(int at = 0; at < n; at += H, x += H) {
        dvec t[IN_STEP], r[IN_STEP], p[IN_STEP];
        dmask some[IN_STEP];
        UNROLL_FOR(int h = 0; h < H; h++) t[h] = d_fma(x[h], d_all(WG_LOG2E64), d_all(WG_EXP64_MAGIC));
        UNROLL_FOR(int h = 0; h < H; h++) p[h] = t[h] - d_all(WG_EXP64_MAGIC);
        UNROLL_FOR(int h = 0; h < H; h++) r[h] = d_fma(p[h], d_all(-WG_LN2_HIGH64), x[h]);
        UNROLL_FOR(int h = 0; h < H; h++) r[h] = d_fma(p[h], d_all(-WG_LN2_LOW64), r[h]);
        UNROLL_FOR(int h = 0; h < H; h++)
            some[h] = keep_nan ? d_notbelow(x[h], d_all(WG_EXP64_LOW)) : d_atleast(x[h], d_all(WG_EXP64_LOW));
        UNROLL_FOR(int h = 0; h < H; h++) p[h] = d_all(WG_EXP64_C11);
        UNROLL_FOR(int k = 0; k < 11; k++)
            UNROLL_FOR(int h = 0; h < H; h++) p[h] = d_fma(p[h], r[h], d_all(c[k]));
        UNROLL_FOR(int h = 0; h < H; h++) x[h] = d_raise(some[h], p[h], t[h]);
    }
}

#endif
