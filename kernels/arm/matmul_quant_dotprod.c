/* SPDX-License-Identifier: MIT
 * Products with quantised weights by sdot: a vector of 4 outputs x 4 inputs times one lane of a row's 16 inputs, so inputs are
 * never spread. */
#include "kernels/arm/neon.h"

INLINE int32x4_t dot_codes(const int bits, const int steps, const int8x16_t *code, const int8_t *q, int32x4_t sum)
{
    (void)bits;
    UNROLL_FOR(int j = 0; j < steps; j += 4) {
        const int8x16_t x = vld1q_s8(q + 4 * j);
        sum = vdotq_laneq_s32(sum, code[j], x, 0);
        sum = vdotq_laneq_s32(sum, code[j + 1], x, 1);
        sum = vdotq_laneq_s32(sum, code[j + 2], x, 2);
        sum = vdotq_laneq_s32(sum, code[j + 3], x, 3);
    }
    return sum;
}

#include "kernels/arm/matmul_quant.h"
#include "kernels/variants.h"

void wg_matmul_dotprod(const wg_matrix *w, const void *act, int rows, float *y, size_t ldy, int p0, int p1)
{
    matmul(w, act, rows, y, ldy, p0, p1);
}
