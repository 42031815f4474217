/* SPDX-License-Identifier: MIT
 * Products with quantised weights by vpdpbusd on 8-lane registers (AVX-VNNI: processors without AVX-512). It multiplies
 * unsigned bytes with signed ones and adds four products to 32 bits without saturation: codes and inputs as they are packed. */
#include "kernels/x86/codes_avx2.h"
#include "kernels/variants.h"

#define TALL 6 /* 12 sums, 2 weights, 1 broadcast: all but one of the registers */

typedef struct inputs {
    const wg_q8_act *act;
} inputs;

static void take_inputs(int type, const wg_q8_act *a, int rows, int blocks, inputs *x)
{
    (void)type, (void)rows, (void)blocks;
    x->act = a;
}

INLINE void add_step(const int type, const int T, const __m256i v[2], const inputs *x, int b, const int j, __m256i sum[TALL][2])
{
    (void)type;
    UNROLL_FOR(int m = 0; m < T; m++) {
        const __m256i q = four_at(x->act[m].q + WG_QUANT_BLOCK * b + 4 * j);
        UNROLL_FOR(int i = 0; i < 2; i++) sum[m][i] = _mm256_dpbusd_avx_epi32(sum[m][i], v[i], q);
    }
}

#include "kernels/x86/matmul_quant_avx2.h"

void wg_matmul_avxvnni(const wg_matrix *w, const void *act, int rows, float *y, size_t ldy, int p0, int p1)
{
    if (wg_is_quantised(w->type)) matmul_quant(w, act, rows, y, ldy, p0, p1);
    else wg_matmul_avx2(w, act, rows, y, ldy, p0, p1);
}
