/* SPDX-License-Identifier: MIT
 * Codes of 8 bits with a scale (kernels/q8.h) over registers of any width: of prepared activations and of a WG_KV_Q8 cache. */
#ifndef WG_KERNELS_LANES_CODES_LANES_H
#define WG_KERNELS_LANES_CODES_LANES_H

#include "kernels/lanes/lanes16.h"
#include "kernels/q8.h"

/* Converts n elements to codes in one or two blocks of 32, padded with zeros; returns their scale. sum: of the codes of the
 * elements i % 32 < 16, and of the others. */
INLINE float codes_of(const float *x, const int n, const int blocks, int8_t *code, int sum[2])
{
    lanes16 v[4], max;
    UNROLL_FOR(int k = 0; k < 2 * blocks; k++) {
        v[k] = load16(n - 16 * k, x + 16 * k);
        EACH
        {
            v[k].v[i] = v_clamp(v[k].v[i], WG_ACT_CLAMP);
            max.v[i] = k ? v_larger(v_abs(v[k].v[i]), max.v[i]) : v_abs(v[k].v[i]);
        }
    }
    const float d = wg_q8_scale(largest16(max)), inverse = d > 0 ? 1.0f / d : 0.0f;
    UNROLL_FOR(int k = 0; k < blocks; k++) {
        vec scaled[2 * PARTS];
        int half[2];
        UNROLL_FOR(int i = 0; i < 2 * PARTS; i++) scaled[i] = v[2 * k + i / PARTS].v[i % PARTS] * v_all(inverse);
        v_codes32(code + 32 * k, scaled, half);
        UNROLL_FOR(int i = 0; i < 2; i++) sum[i] = k ? sum[i] + half[i] : half[i];
    }
    return d;
}

#endif
