/* SPDX-License-Identifier: MIT
 * Operations on single rows on 4-lane registers. What does not fill the vectors is done as the reference does it. */
#include "kernels/arm/neon.h"

#include "kernels/key_walk.h"
#include "kernels/lanes.h"
#include "kernels/layout.h"
#include "kernels/variants.h"

/* ---- activations of quantised products */
static void quantise_block(const float *x, wg_q8_act *act, int b)
{
    const float32x4_t low = vdupq_n_f32(-WG_ACT_CLAMP), high = vdupq_n_f32(WG_ACT_CLAMP);
    float32x4_t v[8], max = vdupq_n_f32(0);
    UNROLL for (int i = 0; i < 8; i++) {
        v[i] = vminnmq_f32(vmaxnmq_f32(vld1q_f32(x + 4 * i), low), high);
        max = vmaxq_f32(max, vabsq_f32(v[i]));
    }
    const float da = wg_q8_scale(vmaxvq_f32(max)), inverse = da > 0 ? 1.0f / da : 0.0f;
    int16x8_t h[4];
    UNROLL for (int i = 0; i < 4; i++)
        h[i] = vcombine_s16(vmovn_s32(vcvtnq_s32_f32(vmulq_n_f32(v[2 * i], inverse))),
                            vmovn_s32(vcvtnq_s32_f32(vmulq_n_f32(v[2 * i + 1], inverse))));
    const int8x16_t first = vcombine_s8(vmovn_s16(h[0]), vmovn_s16(h[1])), last = vcombine_s8(vmovn_s16(h[2]), vmovn_s16(h[3]));
    vst1q_s8(act->q + b * WG_BLOCK, first);
    vst1q_s8(act->q + b * WG_BLOCK + 16, last);
    const int low_sum = vaddlvq_s8(first), sum = low_sum + vaddlvq_s8(last);
    act->ini[b] = WG_MAGIC_BITS - 128 * sum;
    act->da[b] = da;
    act->mda[b] = da * WG_MAGIC;
    act->das[b] = da * (float)sum;
    act->sum[b] = sum;
    act->low[b] = low_sum;
}

void wg_act_prepare_neon(int type, const float *x, size_t ldx, int rows, int k, void *act, int r0, int r1)
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

void wg_rmsnorm_neon(const float *x, size_t ldx, const float *weight, int dim, float eps, float *y, size_t ldy, int r0, int r1)
{
    for (int m = r0; m < r1; m++) {
        const float *from = x + (size_t)m * ldx;
        float *to = y + (size_t)m * ldy, lane[16];
        lanes16 sum = zero16();
        int i = 0;
        for (; i + 16 <= dim; i += 16) {
            const lanes16 v = load16(WG_F32, from + i);
            sum = fma16(sum, v, v);
        }
        store16(lane, sum);
        for (; i < dim; i++) lane[i % 16] = fmaf(from[i], from[i], lane[i % 16]);
        const float r = 1.0f / sqrtf(wg_fold16(lane) / (float)dim + eps);
        for (i = 0; i + 4 <= dim; i += 4)
            vst1q_f32(to + i, vmulq_f32(vmulq_n_f32(vld1q_f32(from + i), r), vld1q_f32(weight + i)));
        for (; i < dim; i++) to[i] = from[i] * r * weight[i];
    }
}

/* ---- rotary */
/* Four pairs, taken apart as they are loaded. */
static int rope_adjacent(float *x, int n_rot, const float *cs)
{
    int i = 0;
    for (; i + 8 <= n_rot; i += 8) {
        const float32x4x2_t ab = vld2q_f32(x + i), c_s = vld2q_f32(cs + i);
        const float32x4_t a = ab.val[0], b = ab.val[1], c = c_s.val[0], s = c_s.val[1];
        const float32x4x2_t to = { { vfmaq_f32(vnegq_f32(vmulq_f32(b, s)), a, c), vfmaq_f32(vmulq_f32(b, c), a, s) } };
        vst2q_f32(x + i, to);
    }
    return i / 2;
}

static int rope_halves(float *x, int half, const float *cs)
{
    int i = 0;
    for (; i + 4 <= half; i += 4) {
        const float32x4x2_t c_s = vld2q_f32(cs + 2 * i);
        const float32x4_t a = vld1q_f32(x + i), b = vld1q_f32(x + half + i), c = c_s.val[0], s = c_s.val[1];
        vst1q_f32(x + i, vfmaq_f32(vnegq_f32(vmulq_f32(b, s)), a, c));
        vst1q_f32(x + half + i, vfmaq_f32(vmulq_f32(b, c), a, s));
    }
    return i;
}

void wg_rope_neon(float *x, int heads, int hd, int n_rot, const float *cs, int adjacent)
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
    for (; i + 4 <= n; i += 4) vst1_u8((uint8_t *)to + 2 * i, vreinterpret_u8_f16(vcvt_f16_f32(vld1q_f32(from + i))));
    for (; i < n; i++) {
        const uint16_t h = wg_f32_to_f16(from[i]);
        memcpy(to + 2 * i, &h, 2);
    }
}

void wg_kv_store_neon(const wg_kv_view *kv, int32_t slot, const float *k, const float *v)
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
void wg_swiglu_neon(const float *gate, const float *up, float *y, int n)
{
    int i = 0;
    for (; i + 4 <= n; i += 4) {
        const float32x4_t g = vld1q_f32(gate + i), u = vld1q_f32(up + i);
        vst1q_f32(y + i, vmulq_f32(vdivq_f32(g, vaddq_f32(vdupq_n_f32(1.0f), exp32x4(vnegq_f32(g)))), u));
    }
    wg_swiglu_ref(gate + i, up + i, y + i, n - i);
}

void wg_add_neon(float *x, const float *y, int n)
{
    int i = 0;
    for (; i + 4 <= n; i += 4) vst1q_f32(x + i, vaddq_f32(vld1q_f32(x + i), vld1q_f32(y + i)));
    wg_add_ref(x + i, y + i, n - i);
}

void wg_exp32_neon(const float *x, float *y, int n)
{
    int i = 0;
    for (; i + 4 <= n; i += 4) vst1q_f32(y + i, exp32x4(vld1q_f32(x + i)));
    wg_exp32_ref(x + i, y + i, n - i);
}

/* ---- rows of logits: sixteen lanes of doubles are eight vectors */
typedef struct doubles16 {
    float64x2_t v[8];
} doubles16;

INLINE doubles16 zero_doubles(void)
{
    doubles16 to;
    UNROLL for (int h = 0; h < 8; h++) to.v[h] = vdupq_n_f64(0);
    return to;
}

INLINE void store_doubles(double *to, doubles16 x)
{
    UNROLL for (int h = 0; h < 8; h++) vst1q_f64(to + 2 * h, x.v[h]);
}

/* Half h of 4 floats as doubles; of 4 masks as masks of doubles; w where the mask is set, else 0. */
INLINE float64x2_t half_of(float32x4_t v, const int h) { return h ? vcvt_high_f64_f32(v) : vcvt_f64_f32(vget_low_f32(v)); }
INLINE uint64x2_t half_mask(uint32x4_t m, const int h)
{
    const int32x4_t s = vreinterpretq_s32_u32(m);
    return vreinterpretq_u64_s64(h ? vmovl_high_s32(s) : vmovl_s32(vget_low_s32(s)));
}
INLINE float64x2_t where(uint64x2_t mask, float64x2_t w)
{
    return vreinterpretq_f64_u64(vandq_u64(mask, vreinterpretq_u64_f64(w)));
}

/* The largest element that is not NaN; -inf when there is none. */
static float largest(const float *x, int n)
{
    lanes16 max;
    float lane[16], m = -INFINITY;
    int i = 0;
    UNROLL for (int h = 0; h < 4; h++) max.v[h] = vdupq_n_f32(-INFINITY);
    for (; i + 16 <= n; i += 16)
        UNROLL for (int h = 0; h < 4; h++) max.v[h] = larger4(vld1q_f32(x + i + 4 * h), max.v[h]);
    store16(lane, max);
    for (int l = 0; l < 16; l++) m = lane[l] > m ? lane[l] : m;
    for (; i < n; i++) m = x[i] > m ? x[i] : m;
    return m;
}

double wg_softmax64_neon(const float *x, int n, double inv_temp, double *p)
{
    const double max = (double)largest(x, n);
    double lane[16];
    doubles16 sum = zero_doubles();
    int i = 0;
    for (; i + 16 <= n; i += 16)
        UNROLL for (int h = 0; h < 8; h++) {
            const float64x2_t v = vcvt_f64_f32(vld1_f32(x + i + 2 * h));
            const float64x2_t e = exp64x2(vmulq_n_f64(vsubq_f64(v, vdupq_n_f64(max)), inv_temp));
            vst1q_f64(p + i + 2 * h, e);
            sum.v[h] = vaddq_f64(sum.v[h], e);
        }
    store_doubles(lane, sum);
    for (; i < n; i++) {
        p[i] = wg_exp64_of(((double)x[i] - max) * inv_temp);
        lane[i % 16] += p[i];
    }
    return wg_fold16_double(lane);
}

/* Which chunk has the largest element is seen in the one pass over memory; where in it, in the nearest cache. */
int wg_argmax_neon(const float *x, int n)
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
    while (i + 4 <= n && !vmaxvq_u32(vceqq_f32(vld1q_f32(x + i), vdupq_n_f32(max)))) i += 4;
    for (; i < n; i++)
        if (x[i] == max) return i;
    return -1;
}

double wg_split_neon(const float *x, int n, float bound, float max, float scale, int32_t *id, int room, int *count)
{
    double lane[16];
    doubles16 sum = zero_doubles();
    int i = 0, found = 0;
    for (; i + 16 <= n; i += 16)
        UNROLL for (int h = 0; h < 4; h++) {
            const float32x4_t v = vld1q_f32(x + i + 4 * h), limit = vdupq_n_f32(bound);
            const float32x4_t e = exp32x4(vmulq_n_f32(vsubq_f32(v, vdupq_n_f32(max)), scale));
            const uint32x4_t below = vcltq_f32(v, limit);
            const float32x4_t w = vreinterpretq_f32_u32(vandq_u32(below, vreinterpretq_u32_f32(e)));
            sum.v[2 * h] = vaddq_f64(sum.v[2 * h], half_of(w, 0));
            sum.v[2 * h + 1] = vaddq_f64(sum.v[2 * h + 1], half_of(w, 1));
            if (!vmaxvq_u32(vcgeq_f32(v, limit))) continue;
            for (int at = i + 4 * h; at < i + 4 * h + 4; at++)
                if (x[at] >= bound) {
                    if (found < room) id[found] = at;
                    found++;
                }
        }
    store_doubles(lane, sum);
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

INLINE void into_band(wg_band *b, int i, float x)
{
    if (b->n++ + 16 > b->room) return;
    b->id[b->n - 1] = i;
    b->x[b->n - 1] = x;
}

/* The steps (mass.h) of 2 weights; the mass of 4 lanes of them, which become 0. */
INLINE uint64x2_t steps2(float64x2_t w)
{
    return vsubq_u64(vreinterpretq_u64_f64(vaddq_f64(w, vdupq_n_f64(1.0))), vdupq_n_u64(WG_MASS_BITS_OF_ONE));
}
static wg_mass take_steps(uint64x2_t sum[2])
{
    uint64_t lane[4];
    for (int k = 0; k < 2; k++) {
        vst1q_u64(lane + 2 * k, sum[k]);
        sum[k] = vdupq_n_u64(0);
    }
    return wg_mass_fold(lane, 4);
}

wg_mass wg_weigh64_neon(const float *x, int n, float max, double inv_temp, double *p, wg_band *band)
{
    uint64x2_t sum[2] = { vdupq_n_u64(0), vdupq_n_u64(0) }, above[2] = { vdupq_n_u64(0), vdupq_n_u64(0) };
    wg_mass mass = 0;
    int i = 0;
    band->n = 0;
    band->above = 0;
    for (; i + 4 <= n; i += 4) {
        const float32x4_t v = vld1q_f32(x + i);
        const uint32x4_t over = vcgtq_f32(v, vdupq_n_f32(band->high));
        const uint32x4_t in = vbicq_u32(vcgeq_f32(v, vdupq_n_f32(band->low)), over);
        UNROLL for (int k = 0; k < 2; k++) {
            const float64x2_t e = exp64x2(vmulq_n_f64(vsubq_f64(half_of(v, k), vdupq_n_f64((double)max)), inv_temp));
            const float64x2_t w = where(vceqq_f64(e, e), e);
            if (p) vst1q_f64(p + i + 2 * k, w);
            sum[k] = vaddq_u64(sum[k], steps2(w));
            above[k] = vaddq_u64(above[k], vandq_u64(half_mask(over, k), steps2(w)));
        }
        if ((i / 4 + 1) % WG_MASS_PIECE == 0) {
            mass += take_steps(sum);
            band->above += take_steps(above);
        }
        if (!vmaxvq_u32(in)) continue;
        for (int j = i; j < i + 4; j++)
            if (x[j] >= band->low && !(x[j] > band->high)) into_band(band, j, x[j]);
    }
    wg_band rest = { .low = band->low, .high = band->high };
    mass += take_steps(sum) + wg_weigh64_ref(x + i, n - i, max, inv_temp, p ? p + i : NULL, &rest);
    band->above += take_steps(above) + rest.above;
    for (; i < n; i++)
        if (x[i] >= band->low && !(x[i] > band->high)) into_band(band, i, x[i]);
    return mass;
}

/* Which of 4 elements, from i on, are in the prefix. */
INLINE uint32x4_t prefix4(float32x4_t v, int i, float edge, int last)
{
    const float32x4_t e = vdupq_n_f32(edge);
    return vorrq_u32(vcgtq_f32(v, e), vandq_u32(vceqq_f32(v, e), upto4(last - i)));
}

/* And heavy enough. */
INLINE uint64x2_t heavy(uint64x2_t in, float64x2_t w, double lightest)
{
    return vandq_u64(in, vcgeq_f64(w, vdupq_n_f64(lightest)));
}

static int is_kept(float x, double p, int i, float edge, int last, double lightest)
{
    return (x > edge || (x == edge && i <= last)) && p >= lightest;
}

wg_mass wg_kept64_neon(const float *x, const double *p, int n, float edge, int last, double lightest, int *count)
{
    uint64x2_t sum[2] = { vdupq_n_u64(0), vdupq_n_u64(0) }, minus = vdupq_n_u64(0);
    wg_mass mass = 0;
    int i = 0, rest;
    for (; i + 4 <= n; i += 4) {
        const uint32x4_t prefix = prefix4(vld1q_f32(x + i), i, edge, last);
        UNROLL for (int k = 0; k < 2; k++) {
            const float64x2_t w = vld1q_f64(p + i + 2 * k);
            const uint64x2_t in = heavy(half_mask(prefix, k), w, lightest);
            sum[k] = vaddq_u64(sum[k], vandq_u64(in, steps2(w)));
            minus = vaddq_u64(minus, in);
        }
        if ((i / 4 + 1) % WG_MASS_PIECE == 0) mass += take_steps(sum);
    }
    mass += take_steps(sum) + wg_kept64_ref(x + i, p + i, n - i, edge, last - i, lightest, &rest);
    *count = rest - (int)vaddvq_u64(minus);
    return mass;
}

void wg_keep64_neon(const float *x, double *p, int n, float edge, int last, double lightest, double scale)
{
    int i = 0;
    for (; i + 4 <= n; i += 4) {
        const uint32x4_t prefix = prefix4(vld1q_f32(x + i), i, edge, last);
        UNROLL for (int k = 0; k < 2; k++) {
            const float64x2_t w = vld1q_f64(p + i + 2 * k);
            vst1q_f64(p + i + 2 * k, where(heavy(half_mask(prefix, k), w, lightest), vmulq_n_f64(w, scale)));
        }
    }
    for (; i < n; i++) p[i] = is_kept(x[i], p[i], i, edge, last, lightest) ? p[i] * scale : 0;
}
