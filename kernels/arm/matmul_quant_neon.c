/* SPDX-License-Identifier: MIT
 * Products with quantised weights without a dot-product instruction. Products of bytes are added in 16 bits as long as they
 * fit: a lane takes `run` steps of them, and neighbouring lanes are added once before they become 32 bits. */
#include "kernels/arm/neon.h"

INLINE int32x4_t dot_codes(const int bits, const int steps, const int8x16_t *code, const int8_t *q, int32x4_t sum)
{
    /* 2 * run products: 128 * 127 * 2, 63 * 127 * 4, 31 * 127 * 8 and 15 * 127 * 16 are below 2^15 */
    const int fit = bits == 8 ? 1 : bits == 6 ? 2 : bits == 5 ? 4 : 8, run = fit < steps ? fit : steps;
    UNROLL_FOR(int j = 0; j < steps; j += run) {
        int16x8_t low, high; /* outputs 0 and 1, 2 and 3: four inputs each */
        UNROLL_FOR(int i = j; i < j + run; i++) {
            int32_t four;
            memcpy(&four, q + 4 * i, 4);
            const int8x16_t x = vreinterpretq_s8_s32(vdupq_n_s32(four));
            low = i == j ? vmull_s8(vget_low_s8(code[i]), vget_low_s8(x)) : vmlal_s8(low, vget_low_s8(code[i]), vget_low_s8(x));
            high = i == j ? vmull_high_s8(code[i], x) : vmlal_high_s8(high, code[i], x);
        }
        sum = vpadalq_s16(sum, vpaddq_s16(low, high));
    }
    return sum;
}

#include "kernels/arm/matmul_quant.h"
#include "kernels/variants.h"

void wg_matmul_neon(const wg_matrix *w, const void *act, int rows, float *y, size_t ldy, int p0, int p1)
{
    matmul(w, act, rows, y, ldy, p0, p1);
}
