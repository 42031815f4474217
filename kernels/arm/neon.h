/* SPDX-License-Identifier: MIT
 * Vector forms of the small specified pieces for 4-lane registers: sixteen lanes are four of them. Only for files of
 * kernels/arm. */
#ifndef WG_KERNELS_ARM_NEON_H
#define WG_KERNELS_ARM_NEON_H

#include <arm_neon.h>
#include <string.h>

#include "kernels/exp.h"
#include "kernels/types.h"
#include "kernels/unroll.h"

/* The sixteen lanes of ops.h: lane 4 i + l is lane l of v[i]. */
typedef struct lanes16 {
    float32x4_t v[4];
} lanes16;

INLINE lanes16 zero16(void) { return (lanes16){ { vdupq_n_f32(0), vdupq_n_f32(0), vdupq_n_f32(0), vdupq_n_f32(0) } }; }

/* 4 elements of a float type as f32 (f8_e4m3: the values of codes). */
INLINE float32x4_t load4(const int type, const void *p)
{
    if (type == WG_F32) return vreinterpretq_f32_u8(vld1q_u8(p));
    if (type == WG_F8_E4M3) { /* codes; see wg_f8_to_f32. The sign is extended over bit 14 too, which is to be 0 */
        int32_t four;
        memcpy(&four, p, 4);
        const int16x4_t wide = vshl_n_s16(vget_low_s16(vmovl_s8(vreinterpret_s8_s32(vdup_n_s32(four)))), 7);
        const uint16x4_t half = vand_u16(vreinterpret_u16_s16(wide), vdup_n_u16(0xBFFF));
        return vmulq_n_f32(vcvt_f32_f16(vreinterpret_f16_u16(half)), 0x1p8f);
    }
    const uint8x8_t h = vld1_u8(p);
    if (type == WG_F16) return vcvt_f32_f16(vreinterpret_f16_u8(h));
    return vreinterpretq_f32_u32(vshll_n_u16(vreinterpret_u16_u8(h), 16));
}

/* 16 elements (WG_I8: codes), and the first n of 16 with zeros behind them. */
INLINE lanes16 load16(const int type, const void *p)
{
    lanes16 to;
    if (type == WG_I8) {
        const int8x16_t code = vld1q_s8(p);
        const int16x8_t low = vmovl_s8(vget_low_s8(code)), high = vmovl_high_s8(code);
        to.v[0] = vcvtq_f32_s32(vmovl_s16(vget_low_s16(low)));
        to.v[1] = vcvtq_f32_s32(vmovl_high_s16(low));
        to.v[2] = vcvtq_f32_s32(vmovl_s16(vget_low_s16(high)));
        to.v[3] = vcvtq_f32_s32(vmovl_high_s16(high));
    } else {
        UNROLL for (int i = 0; i < 4; i++) to.v[i] = load4(type, (const char *)p + 4 * i * (type == WG_F32 ? 4 : 2));
    }
    return to;
}
INLINE lanes16 load16_part(const int type, int n, const void *p)
{
    char part[64] = { 0 };
    memcpy(part, p, (size_t)n * (type == WG_F32 ? 4 : type == WG_I8 ? 1 : 2));
    return load16(type, part);
}

INLINE void store16(float *p, lanes16 x)
{
    UNROLL for (int i = 0; i < 4; i++) vst1q_f32(p + 4 * i, x.v[i]);
}
INLINE void store16_part(float *p, int n, lanes16 x)
{
    float part[16];
    store16(part, x);
    memcpy(p, part, (size_t)n * sizeof *p);
}

/* s + a * b, fused. */
INLINE lanes16 fma16(lanes16 s, lanes16 a, lanes16 b)
{
    UNROLL for (int i = 0; i < 4; i++) s.v[i] = vfmaq_f32(s.v[i], a.v[i], b.v[i]);
    return s;
}

/* All bits set in lanes 0 .. i of 4. */
INLINE uint32x4_t upto4(int i)
{
    static const int32_t lane[4] = { 0, 1, 2, 3 };
    return vcleq_s32(vld1q_s32(lane), vdupq_n_s32(i));
}

/* x where it is larger: NaN in x never is. */
INLINE float32x4_t larger4(float32x4_t x, float32x4_t max) { return vbslq_f32(vcgtq_f32(x, max), x, max); }

/* kernels/exp.h on 4 lanes. */
INLINE float32x4_t exp32x4(float32x4_t x)
{
    const float32x4_t magic = vdupq_n_f32(WG_EXP32_MAGIC), one = vdupq_n_f32(1.0f);
    const float32x4_t t = vfmaq_f32(magic, x, vdupq_n_f32(WG_LOG2E32)), n = vsubq_f32(t, magic);
    const float32x4_t r = vfmaq_f32(vfmaq_f32(x, n, vdupq_n_f32(-WG_LN2_HIGH32)), n, vdupq_n_f32(-WG_LN2_LOW32));
    float32x4_t p = vfmaq_f32(vdupq_n_f32(WG_EXP32_C5), vdupq_n_f32(WG_EXP32_C6), r);
    p = vfmaq_f32(vdupq_n_f32(WG_EXP32_C4), p, r);
    p = vfmaq_f32(vdupq_n_f32(WG_EXP32_C3), p, r);
    p = vfmaq_f32(vdupq_n_f32(WG_EXP32_C2), p, r);
    p = vfmaq_f32(one, p, r);
    p = vfmaq_f32(one, p, r);
    p = vreinterpretq_f32_u32(vaddq_u32(vreinterpretq_u32_f32(p), vshlq_n_u32(vreinterpretq_u32_f32(t), 23)));
    p = vbslq_f32(vcltq_f32(x, vdupq_n_f32(WG_EXP32_LOW)), vdupq_n_f32(0), p);
    return vbslq_f32(vcgtq_f32(x, vdupq_n_f32(WG_EXP32_HIGH)), vdupq_n_f32(INFINITY), p);
}

/* kernels/exp.h on 2 doubles. */
INLINE float64x2_t exp64x2(float64x2_t x)
{
    const float64x2_t magic = vdupq_n_f64(WG_EXP64_MAGIC), one = vdupq_n_f64(1.0);
    const float64x2_t t = vfmaq_f64(magic, x, vdupq_n_f64(WG_LOG2E64)), n = vsubq_f64(t, magic);
    const float64x2_t r = vfmaq_f64(vfmaq_f64(x, n, vdupq_n_f64(-WG_LN2_HIGH64)), n, vdupq_n_f64(-WG_LN2_LOW64));
    float64x2_t p = vfmaq_f64(vdupq_n_f64(WG_EXP64_C10), vdupq_n_f64(WG_EXP64_C11), r);
    p = vfmaq_f64(vdupq_n_f64(WG_EXP64_C9), p, r);
    p = vfmaq_f64(vdupq_n_f64(WG_EXP64_C8), p, r);
    p = vfmaq_f64(vdupq_n_f64(WG_EXP64_C7), p, r);
    p = vfmaq_f64(vdupq_n_f64(WG_EXP64_C6), p, r);
    p = vfmaq_f64(vdupq_n_f64(WG_EXP64_C5), p, r);
    p = vfmaq_f64(vdupq_n_f64(WG_EXP64_C4), p, r);
    p = vfmaq_f64(vdupq_n_f64(WG_EXP64_C3), p, r);
    p = vfmaq_f64(vdupq_n_f64(WG_EXP64_C2), p, r);
    p = vfmaq_f64(one, p, r);
    p = vfmaq_f64(one, p, r);
    p = vreinterpretq_f64_u64(vaddq_u64(vreinterpretq_u64_f64(p), vshlq_n_u64(vreinterpretq_u64_f64(t), 52)));
    p = vbslq_f64(vcltq_f64(x, vdupq_n_f64(WG_EXP64_LOW)), vdupq_n_f64(0), p);
    return vbslq_f64(vcgtq_f64(x, vdupq_n_f64(WG_EXP64_HIGH)), vdupq_n_f64((double)INFINITY), p);
}

#endif
