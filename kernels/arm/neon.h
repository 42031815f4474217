/* SPDX-License-Identifier: MIT
 * The vocabulary of kernels/lanes/lanes16.h with 4-lane registers: sixteen lanes are four. Only for files of kernels/arm. */
#ifndef WG_KERNELS_ARM_NEON_H
#define WG_KERNELS_ARM_NEON_H

#include <arm_neon.h>
#include <string.h>

#include "kernels/types.h"
#include "kernels/unroll.h"

enum { LANES = 4, PARTS = 4, IN_STEP = 2 };

typedef float32x4_t vec;
typedef uint32x4_t mask; /* all bits of its lanes set */
typedef float64x2_t dvec;
typedef uint64x2_t dmask, svec, tally;

/* ---- floats */
INLINE vec v_all(float x) { return vdupq_n_f32(x); }
INLINE vec v_fma(vec a, vec b, vec c) { return vfmaq_f32(c, a, b); }
INLINE vec v_fms(vec a, vec b, vec c) { return vfmaq_f32(-c, a, b); }
INLINE vec v_larger(vec x, vec than) { return vbslq_f32(vcgtq_f32(x, than), x, than); } /* NaN in x is never larger */
INLINE vec v_clamp(vec x, float to) { return vminnmq_f32(vmaxnmq_f32(x, v_all(-to)), v_all(to)); }
INLINE vec v_abs(vec x) { return vabsq_f32(x); }
INLINE void v_ask(const void *p) { __builtin_prefetch(p); }

INLINE mask v_first(int n)
{
    static const int32_t lane[4] = { 0, 1, 2, 3 };
    return vcltq_s32(vld1q_s32(lane), vdupq_n_s32(n));
}
INLINE mask v_above(vec a, vec b) { return vcgtq_f32(a, b); }
INLINE mask v_atleast(vec a, vec b) { return vcgeq_f32(a, b); }
INLINE mask v_below(vec a, vec b) { return vcltq_f32(a, b); }
INLINE mask v_equal(vec a, vec b) { return vceqq_f32(a, b); }
INLINE mask v_notbelow(vec a, vec b) { return vmvnq_u32(vcltq_f32(a, b)); }
INLINE mask m_and(mask a, mask b) { return vandq_u32(a, b); }
INLINE mask m_or(mask a, mask b) { return vorrq_u32(a, b); }
INLINE mask m_without(mask a, mask b) { return vbicq_u32(a, b); }
INLINE unsigned m_bits(mask m)
{
    static const uint32_t bit[4] = { 1, 2, 4, 8 };
    return vaddvq_u32(vandq_u32(m, vld1q_u32(bit)));
}
INLINE vec v_keep(mask m, vec x) { return vreinterpretq_f32_u32(vandq_u32(m, vreinterpretq_u32_f32(x))); }
INLINE vec v_pick(mask m, vec a, vec b) { return vbslq_f32(m, a, b); }
INLINE vec v_raise(mask m, vec p, vec t)
{
    const uint32x4_t n = vshlq_n_u32(vreinterpretq_u32_f32(t), 23);
    return vreinterpretq_f32_u32(vandq_u32(m, vaddq_u32(vreinterpretq_u32_f32(p), n)));
}

/* 4 elements of a type as f32: WG_I8 and f8_e4m3: the values of codes. */
INLINE vec v_load(const int type, const void *p)
{
    if (type == WG_F32) return vreinterpretq_f32_u8(vld1q_u8(p));
    if (type == WG_I8 || type == WG_F8_E4M3) {
        int32_t four;
        memcpy(&four, p, 4);
        const int16x4_t code = vget_low_s16(vmovl_s8(vreinterpret_s8_s32(vdup_n_s32(four))));
        if (type == WG_I8) return vcvtq_f32_s32(vmovl_s16(code));
        /* see wg_f8_to_f32. The sign is extended over bit 14 too, which must be 0 */
        const uint16x4_t half = vand_u16(vreinterpret_u16_s16(vshl_n_s16(code, 7)), vdup_n_u16(0xBFFF));
        return vmulq_n_f32(vcvt_f32_f16(vreinterpret_f16_u16(half)), 0x1p8f);
    }
    const uint8x8_t h = vld1_u8(p);
    if (type == WG_F16) return vcvt_f32_f16(vreinterpret_f16_u8(h));
    return vreinterpretq_f32_u32(vshll_n_u16(vreinterpret_u16_u8(h), 16));
}
INLINE vec v_load_first(const int type, int n, const void *p)
{
    float part[4] = { 0 };
    n = n < 0 ? 0 : n > 4 ? 4 : n;
    memcpy(part, p, (size_t)n * (type == WG_F32 ? 4 : type == WG_I8 ? 1 : 2));
    return v_load(type, part);
}
INLINE vec v_load_or(int n, const float *p, float rest) { return v_pick(v_first(n), v_load_first(WG_F32, n, p), v_all(rest)); }
INLINE void v_store(float *p, vec x) { vst1q_f32(p, x); }
INLINE void v_store_first(float *p, int n, vec x)
{
    float part[4];
    vst1q_f32(part, x);
    if (n > 0) memcpy(p, part, (size_t)(n > 4 ? 4 : n) * sizeof *p);
}
INLINE void v_store_as(const int type, void *p, int n, vec x)
{
    if (type == WG_F32) {
        v_store_first(p, n, x);
        return;
    }
    uint16x4_t h = vreinterpret_u16_f16(vcvt_f16_f32(x));
    if (type == WG_BF16) { /* to nearest even; NaN stays a quiet NaN */
        const uint32x4_t u = vreinterpretq_u32_f32(x), odd = vandq_u32(vshrq_n_u32(u, 16), vdupq_n_u32(1));
        const uint32x4_t up = vaddq_u32(u, vaddq_u32(odd, vdupq_n_u32(0x7fff)));
        h = vshrn_n_u32(vbslq_u32(vceqq_f32(x, x), up, vorrq_u32(u, vdupq_n_u32(0x400000))), 16);
    }
    if (n > 0) memcpy(p, &h, (size_t)(n > 4 ? 4 : n) * 2);
}

/* Adjacent pairs (a, b) rotated by pairs (cos, sin). */
INLINE vec v_turn(vec ab, vec cs)
{
    static const uint32_t odd[4] = { 0, ~0u, 0, ~0u };
    const vec b = vtrn2q_f32(ab, ab) * vrev64q_f32(cs); /* b s, b c */
    return vfmaq_f32(vbslq_f32(vld1q_u32(odd), b, -b), vtrn1q_f32(ab, ab), cs);
}
INLINE void v_deal(vec a, vec b, vec *even, vec *odd)
{
    *even = vuzp1q_f32(a, b);
    *odd = vuzp2q_f32(a, b);
}

INLINE float v_largest(vec x) { return vmaxvq_f32(x); }
INLINE float v_fold(vec v)
{
    const float32x2_t b = vadd_f32(vget_low_f32(v), vget_high_f32(v));
    return vget_lane_f32(vpadd_f32(b, b), 0);
}

/* ---- folds of four registers at once: two levels of adding halves of two */
enum { ADD, MAX };
INLINE vec join(const int op, vec a, vec b) { return op == ADD ? vaddq_f32(a, b) : vmaxq_f32(a, b); }
INLINE vec fold_quad(const int op, const vec v[4])
{
    vec pair[2];
    UNROLL_FOR(int i = 0; i < 2; i++)
        pair[i] = join(op, vcombine_f32(vget_low_f32(v[2 * i]), vget_low_f32(v[2 * i + 1])),
                       vcombine_f32(vget_high_f32(v[2 * i]), vget_high_f32(v[2 * i + 1])));
    return join(op, vuzp1q_f32(pair[0], pair[1]), vuzp2q_f32(pair[0], pair[1]));
}
INLINE vec fold_quads(const int op, const vec q[1])
{
    (void)op;
    return q[0];
}

/* ---- doubles */
INLINE dvec d_all(double x) { return vdupq_n_f64(x); }
INLINE dvec d_fma(dvec a, dvec b, dvec c) { return vfmaq_f64(c, a, b); }
INLINE dvec d_half(vec v, const int h) { return h ? vcvt_high_f64_f32(v) : vcvt_f64_f32(vget_low_f32(v)); }
INLINE dvec d_add_where(dvec sum, mask m, vec v, const int h) { return vaddq_f64(sum, d_half(v_keep(m, v), h)); }
INLINE dvec d_load(const double *p) { return vld1q_f64(p); }
INLINE dvec d_load_first(int n, const double *p)
{
    return n >= 2 ? vld1q_f64(p) : n == 1 ? vsetq_lane_f64(*p, vdupq_n_f64(0), 0) : vdupq_n_f64(0);
}
INLINE void d_store(double *p, dvec x) { vst1q_f64(p, x); }
INLINE void d_store_first(double *p, int n, dvec x)
{
    if (n >= 2) vst1q_f64(p, x);
    else if (n == 1) *p = vgetq_lane_f64(x, 0);
}
INLINE dmask d_atleast(dvec a, dvec b) { return vcgeq_f64(a, b); }
INLINE dmask d_notbelow(dvec a, dvec b) { return veorq_u64(vcltq_f64(a, b), vdupq_n_u64(~(uint64_t)0)); }
INLINE dmask d_half_mask(mask m, const int h)
{
    const int32x4_t s = vreinterpretq_s32_u32(m);
    return vreinterpretq_u64_s64(h ? vmovl_high_s32(s) : vmovl_s32(vget_low_s32(s)));
}
INLINE dmask d_also_atleast(dmask m, dvec a, dvec b) { return vandq_u64(m, vcgeq_f64(a, b)); }
INLINE dvec d_keep(dmask m, dvec x) { return vreinterpretq_f64_u64(vandq_u64(m, vreinterpretq_u64_f64(x))); }
INLINE dvec d_raise(dmask m, dvec p, dvec t)
{
    const uint64x2_t n = vshlq_n_u64(vreinterpretq_u64_f64(t), 52);
    return vreinterpretq_f64_u64(vandq_u64(m, vaddq_u64(vreinterpretq_u64_f64(p), n)));
}
INLINE double d_fold(dvec v) { return vgetq_lane_f64(v, 0) + vgetq_lane_f64(v, 1); }

/* ---- whole numbers of 64 bits */
INLINE svec s_zero(void) { return vdupq_n_u64(0); }
INLINE svec s_bits(dvec x) { return vreinterpretq_u64_f64(x); }
INLINE svec s_add(svec a, svec b) { return vaddq_u64(a, b); }
INLINE svec s_sub(svec a, svec b) { return vsubq_u64(a, b); }
INLINE svec s_add_where(svec sum, dmask m, svec x) { return vaddq_u64(sum, vandq_u64(m, x)); }
INLINE void s_store(uint64_t *p, svec x) { vst1q_u64(p, x); }

INLINE tally tally_none(void) { return s_zero(); }
INLINE tally tally_add(tally n, dmask m) { return s_sub(n, m); }
INLINE int tally_sum(tally n) { return (int)vaddvq_u64(n); }

/* ---- operations of rows_lanes.h */
INLINE void v_codes32(int8_t *to, const vec x[8], int sum[2])
{
    int16x8_t h[4];
    UNROLL_FOR(int i = 0; i < 4; i++)
        h[i] = vcombine_s16(vmovn_s32(vcvtnq_s32_f32(x[2 * i])), vmovn_s32(vcvtnq_s32_f32(x[2 * i + 1])));
    UNROLL_FOR(int i = 0; i < 2; i++) {
        const int8x16_t q = vcombine_s8(vmovn_s16(h[2 * i]), vmovn_s16(h[2 * i + 1]));
        vst1q_s8(to + 16 * i, q);
        sum[i] = vaddlvq_s8(q);
    }
}

/* ---- attention over codes: products of a key's and a query's codes, in any lanes of whole numbers; i_dot is the level's */
typedef int8x16_t byte_vec;
typedef int32x4_t ivec;
INLINE byte_vec i_load(const int8_t *p) { return vld1q_s8(p); }
INLINE ivec i_zero(void) { return vdupq_n_s32(0); }
INLINE vec i_fold(const ivec v[4]) { return vcvtq_f32_s32(vpaddq_s32(vpaddq_s32(v[0], v[1]), vpaddq_s32(v[2], v[3]))); }

#endif
