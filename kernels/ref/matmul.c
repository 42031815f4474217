/* SPDX-License-Identifier: MIT
 * Float and quantised matmul, y = x W^T, one output at a time: the specification of every faster version. */
#include "kernels/layout.h"
#include "kernels/ref/dequant.h"
#include "kernels/variants.h"

#include <math.h>

static float element(const wg_matrix *w, int n, int k)
{
    const size_t at = ((size_t)(n / WG_PANEL) * (size_t)w->k + (size_t)k) * WG_PANEL + (size_t)(n % WG_PANEL);
    if (w->type == WG_F32) return ((const float *)w->data)[at];
    const uint16_t h = ((const uint16_t *)w->data)[at];
    return w->type == WG_F16 ? wg_f16_to_f32(h) : wg_bf16_to_f32(h);
}

/* acc = fma(w, x, acc), k ascending. */
static float dot_float(const wg_matrix *w, int n, const float *x)
{
    float acc = 0;
    for (int k = 0; k < w->k; k++) acc = fmaf(element(w, n, k), x[k], acc);
    return acc;
}

/* Blocks ascending: the chain of a block starts at 0, acc = fma(scale, its end, acc). */
static float dot_f8(const wg_matrix *w, int n, const float *x)
{
    float acc = 0;
    for (int b = 0; b < w->k / WG_F8_RUN; b++, x += WG_F8_RUN) {
        float scale, sum = 0;
        const uint8_t *code = wg_f8_read(w, n, b, &scale);
        for (int j = 0; j < WG_F8_RUN; j++) sum = fmaf(wg_f8_to_f32(code[j * WG_PANEL]), x[j], sum);
        acc = fmaf(scale, sum, acc);
    }
    return acc;
}

/* Blocks ascending, in a block its parts: acc = fma(i * da, scale, acc) with the exact integer dot i of a part; where the type
 * has minima, then its parts again: acc = fma(da * sum(q), min, acc). */
static float dot_quantised(const wg_matrix *w, int n, const wg_q8_act *act, size_t stride)
{
    const int parts = wg_block_sums(w->type), run = WG_QUANT_BLOCK / parts;
    float acc = 0;
    for (int b = 0; b < wg_blocks(w->k); b++) {
        const wg_q8_act *a = act + (size_t)(b / WG_ACT_BLOCKS) * stride;
        const int8_t *q = a->q + b % WG_ACT_BLOCKS * WG_QUANT_BLOCK;
        wg_weights32 v;
        wg_weights_read(w, n, b, &v);
        for (int part = 0; part < parts; part++) {
            int i = 0;
            for (int k = run * part; k < run * (part + 1); k++) i += v.value[k] * q[k];
            acc = fmaf((float)i * a->da[b % WG_ACT_BLOCKS], v.scale[part], acc);
        }
        for (int part = 0; wg_has_min(w->type) && part < parts; part++)
            acc = fmaf(wg_act_das(w->type, a, b % WG_ACT_BLOCKS, part), v.min[part], acc);
    }
    return acc;
}

void wg_matmul_ref(const wg_matrix *w, const void *act, int rows, float *y, size_t ldy, int p0, int p1)
{
    const int n1 = p1 * WG_PANEL < w->n ? p1 * WG_PANEL : w->n;
    for (int m = 0; m < rows; m++)
        for (int n = p0 * WG_PANEL; n < n1; n++) {
            float *to = y + (size_t)m * ldy + (size_t)n;
            if (w->type == WG_F8_E4M3) *to = dot_f8(w, n, (const float *)act + (size_t)m * (size_t)w->k);
            else if (wg_is_quantised(w->type))
                *to = dot_quantised(w, n, (const wg_q8_act *)act + wg_q8_act_at(m, wg_chunks(w->k)),
                                    (size_t)wg_group_rows(rows, m));
            else *to = dot_float(w, n, (const float *)act + (size_t)m * (size_t)w->k);
        }
}
