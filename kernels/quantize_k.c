/* SPDX-License-Identifier: MIT
 * Quantising to q4_k and q6_k by least squares of blocks (their form: quant_blocks.c). Of each run of elements a scale (and
 * a minimum) is searched that makes the sum of squared errors small: for several widths of the grid the elements are rounded
 * to codes, and for these codes the best scale and minimum are those of the linear regression of the elements on the codes,
 * whose remaining error follows from the same sums. Then the scales of all runs are rounded to 6 or 8 bits, the codes follow,
 * and the two factors of the block are fitted once more to them. The least squares are unweighted: the error that is made
 * small is the one reported.
 *
 * Sums have four lanes in one order and nothing is contracted: the bits are the same on every machine. */
#include "kernels/quantize_k.h"

#include <math.h>
#include <string.h>

#include "kernels/four.h"
#include "kernels/types.h"

enum { BLOCK = 256 };

static int nearest(float x, int most)
{
    const float limited = x < 0 ? 0 : x > (float)most ? (float)most : x;
    return (int)lrintf(limited);
}

/* ---- q4_k: element = scale * code - min, code 0..15, min >= 0, in runs of 32 */

enum { RUNS4 = 8, RUN4 = 32, TOP4 = 15, SCALE4 = 63 };

typedef struct line {
    float scale, min;
    float gain; /* by how much the squared error is below that of zeros */
} line;

/* The sums of a regression of elements on codes. */
typedef struct sums {
    float q, qq, qx;
} sums;

static inline sums code_sums(const float *x, float low, float inverse)
{
    four q1 = four_all(0), q2 = q1, qx = q1;
    for (int i = 0; i < RUN4; i += 4) {
        const four v = four_load(x + i), q = four_rounded((v - four_all(low)) * four_all(inverse), 0, TOP4);
        q1 += q;
        q2 += q * q;
        qx += q * v;
    }
    return (sums){ four_sum(q1), four_sum(q2), four_sum(qx) };
}

/* The best scale and minimum for codes with these sums; x: the sum of the elements. */
static inline line regression(sums s, float x)
{
    const float det = RUN4 * s.qq - s.q * s.q;
    float scale = det > 0 ? (RUN4 * s.qx - s.q * x) / det : 0, low = det > 0 ? (s.qq * x - s.q * s.qx) / det : 0;
    if (!(low < 0)) { /* a minimum above zero has no code */
        low = 0;
        scale = s.qq > 0 ? s.qx / s.qq : 0;
    }
    return (line){ .scale = scale, .min = -low, .gain = scale * s.qx + low * x };
}

static line fit_run4(const float *x)
{
    enum { WIDTHS = 9, ROUNDS = 3 };
    four low4 = four_all(0), high4 = four_all(0), x4 = four_all(0);
    for (int i = 0; i < RUN4; i += 4) {
        const four v = four_load(x + i);
        low4 = four_smaller(v, low4);
        high4 = four_larger(v, high4);
        x4 += v;
    }
    const float low = fminf(fminf(low4[0], low4[1]), fminf(low4[2], low4[3])), total = four_sum(x4);
    const float range = fmaxf(fmaxf(high4[0], high4[1]), fmaxf(high4[2], high4[3])) - low;
    line best = { 0 };
    if (!(range > 0x1p-100f)) return best;
    for (int k = 0; k < WIDTHS; k++) {
        const float inverse = ((float)TOP4 - 1 + 0.25f * (float)k) / range;
        const line l = regression(code_sums(x, low, inverse), total);
        if (l.gain > best.gain) best = l;
    }
    for (int k = 0; k < ROUNDS && best.scale > 0; k++) { /* codes of the best line, and the line of these codes */
        const line l = regression(code_sums(x, -best.min, 1 / best.scale), total);
        if (!(l.gain > best.gain)) break;
        best = l;
    }
    return best;
}

/* The codes of a block for its factors and the scales and minima of its runs. */
static void set_codes4(const float *x, float d, float m, const uint8_t *scale, const uint8_t *min, float *code)
{
    for (int r = 0; r < RUNS4; r++) {
        const float step = d * (float)scale[r], low = m * (float)min[r], inverse = step > 0 ? 1 / step : 0;
        for (int i = 0; i < RUN4; i += 4) {
            const four q = four_rounded((four_load(x + RUN4 * r + i) + four_all(low)) * four_all(inverse), 0, TOP4);
            memcpy(code + RUN4 * r + i, &q, sizeof q);
        }
    }
}

/* The factors that fit the codes best: element = d * (scale * code) - m * min. Left as they are where they would not be two
 * positive numbers. */
static void refit4(const float *x, const uint8_t *scale, const uint8_t *min, const float *code, float *d, float *m)
{
    float uu = 0, uv = 0, vv = 0, ux = 0, vx = 0;
    for (int r = 0; r < RUNS4; r++) {
        four q1 = four_all(0), q2 = q1, qx = q1, x1 = q1;
        for (int i = 0; i < RUN4; i += 4) {
            const four v = four_load(x + RUN4 * r + i), q = four_load(code + RUN4 * r + i);
            q1 += q;
            q2 += q * q;
            qx += q * v;
            x1 += v;
        }
        const float s = scale[r], l = min[r];
        uu += s * s * four_sum(q2);
        uv += s * l * four_sum(q1);
        vv += l * l * (float)RUN4;
        ux += s * four_sum(qx);
        vx += l * four_sum(x1);
    }
    const float det = uu * vv - uv * uv;
    float a, b;
    if (det > 1e-3f * uu * vv) {
        a = (ux * vv - uv * vx) / det;
        b = (uv * ux - uu * vx) / det;
    } else {
        a = uu > 0 ? (ux + *m * uv) / uu : 0;
        b = *m;
    }
    if (a > 0 && b >= 0 && a < 65504 && b < 65504) *d = a, *m = b;
}

static uint16_t half_of(float *x)
{
    const uint16_t h = wg_f32_to_f16(*x);
    *x = wg_f16_to_f32(h);
    return h;
}

/* 12 bytes for eight 6-bit scales and eight 6-bit minima. */
static void put_scales(const uint8_t *scale, const uint8_t *min, uint8_t *to)
{
    for (int s = 0; s < 4; s++) {
        to[s] = (uint8_t)(scale[s] | (scale[s + 4] >> 4) << 6);
        to[s + 4] = (uint8_t)(min[s] | (min[s + 4] >> 4) << 6);
        to[s + 8] = (uint8_t)((scale[s + 4] & 15) | (min[s + 4] & 15) << 4);
    }
}

static void block4(const float *x, uint8_t *dst)
{
    line run[RUNS4];
    uint8_t scale[RUNS4], min[RUNS4];
    float code[BLOCK], d = 0, m = 0;
    for (int r = 0; r < RUNS4; r++) {
        run[r] = fit_run4(x + RUN4 * r);
        d = fmaxf(d, run[r].scale);
        m = fmaxf(m, run[r].min);
    }
    d /= SCALE4, m /= SCALE4;
    half_of(&d), half_of(&m);
    for (int r = 0; r < RUNS4; r++) {
        scale[r] = (uint8_t)(d > 0 ? nearest(run[r].scale / d, SCALE4) : 0);
        min[r] = (uint8_t)(m > 0 ? nearest(run[r].min / m, SCALE4) : 0);
    }
    set_codes4(x, d, m, scale, min, code);
    refit4(x, scale, min, code, &d, &m);
    const uint16_t h[2] = { half_of(&d), half_of(&m) };
    set_codes4(x, d, m, scale, min, code);
    memcpy(dst, h, sizeof h);
    put_scales(scale, min, dst + 4);
    for (int g = 0; g < 4; g++)
        for (int l = 0; l < 32; l++) dst[16 + 32 * g + l] = (uint8_t)((int)code[64 * g + l] | (int)code[64 * g + l + 32] << 4);
}

void wg_q4_k_from_f32(const float *src, uint8_t *dst, size_t n)
{
    for (size_t b = 0; b < n / BLOCK; b++) block4(src + b * BLOCK, dst + b * 144);
}

/* ---- q6_k: element = scale * (code - 32), code 0..63, in runs of 16 */

enum { RUNS6 = 16, RUN6 = 16, ZERO6 = 32, SCALE6 = 127 };

/* The best scale for the codes that this one gives, and the gain of it. */
static inline float scale_for(const float *x, float inverse, float *gain)
{
    four q2 = four_all(0), qx = q2;
    for (int i = 0; i < RUN6; i += 4) {
        const four v = four_load(x + i), q = four_rounded(v * four_all(inverse), -ZERO6, ZERO6 - 1);
        q2 += q * q;
        qx += q * v;
    }
    const float qq = four_sum(q2), scale = qq > 0 ? four_sum(qx) / qq : 0;
    *gain = scale * four_sum(qx);
    return scale;
}

/* The element of largest magnitude gets the code 0, the one that has no opposite. */
static float fit_run6(const float *x)
{
    enum { WIDTHS = 9, ROUNDS = 2 };
    float most = 0, best = 0, gained = 0, gain;
    for (int i = 0; i < RUN6; i++)
        if (fabsf(x[i]) > fabsf(most)) most = x[i];
    if (!(fabsf(most) > 0x1p-100f)) return 0;
    for (int k = 0; k < WIDTHS; k++) {
        const float scale = scale_for(x, -((float)ZERO6 - 1 + 0.25f * (float)k) / most, &gain);
        if (gain > gained) best = scale, gained = gain;
    }
    for (int k = 0; k < ROUNDS && best != 0; k++) {
        const float scale = scale_for(x, 1 / best, &gain);
        if (!(gain > gained)) break;
        best = scale, gained = gain;
    }
    return best;
}

static void set_codes6(const float *x, float d, const int8_t *scale, float *code)
{
    for (int r = 0; r < RUNS6; r++) {
        const float step = d * (float)scale[r], inverse = step != 0 ? 1 / step : 0;
        for (int i = 0; i < RUN6; i += 4) {
            const four q = four_rounded(four_load(x + RUN6 * r + i) * four_all(inverse), -ZERO6, ZERO6 - 1);
            memcpy(code + RUN6 * r + i, &q, sizeof q);
        }
    }
}

static float refit6(const float *x, float d, const int8_t *scale, const float *code)
{
    float uu = 0, ux = 0;
    for (int r = 0; r < RUNS6; r++) {
        four q2 = four_all(0), qx = q2;
        for (int i = 0; i < RUN6; i += 4) {
            const four v = four_load(x + RUN6 * r + i), q = four_load(code + RUN6 * r + i);
            q2 += q * q;
            qx += q * v;
        }
        const float s = scale[r];
        uu += s * s * four_sum(q2);
        ux += s * four_sum(qx);
    }
    const float better = uu > 0 ? ux / uu : 0;
    return better > 0 && better < 65504 ? better : d;
}

static void block6(const float *x, uint8_t *dst)
{
    float run[RUNS6], code[BLOCK], d = 0;
    int8_t scale[RUNS6];
    uint8_t q[BLOCK];
    for (int r = 0; r < RUNS6; r++) {
        run[r] = fit_run6(x + RUN6 * r);
        d = fmaxf(d, fabsf(run[r]));
    }
    d /= SCALE6;
    half_of(&d);
    for (int r = 0; r < RUNS6; r++) {
        const int n = d > 0 ? nearest(fabsf(run[r]) / d, SCALE6) : 0;
        scale[r] = (int8_t)(run[r] < 0 ? -n : n);
    }
    set_codes6(x, d, scale, code);
    d = refit6(x, d, scale, code);
    const uint16_t h = half_of(&d);
    set_codes6(x, d, scale, code);
    for (int i = 0; i < BLOCK; i++) q[i] = (uint8_t)((int)code[i] + ZERO6);
    for (int half = 0; half < 2; half++)
        for (int l = 0; l < 32; l++) {
            const uint8_t *c = q + 128 * half + l;
            dst[64 * half + l] = (uint8_t)((c[0] & 15) | (c[64] & 15) << 4);
            dst[64 * half + l + 32] = (uint8_t)((c[32] & 15) | (c[96] & 15) << 4);
            dst[128 + 32 * half + l] = (uint8_t)(c[0] >> 4 | (c[32] >> 4) << 2 | (c[64] >> 4) << 4 | (c[96] >> 4) << 6);
        }
    memcpy(dst + 192, scale, sizeof scale);
    memcpy(dst + 208, &h, sizeof h);
}

void wg_q6_k_from_f32(const float *src, uint8_t *dst, size_t n)
{
    for (size_t b = 0; b < n / BLOCK; b++) block6(src + b * BLOCK, dst + b * 210);
}
