/* SPDX-License-Identifier: MIT
 * Products with quantised weights by vpdpbusd on 8-lane registers (AVX-VNNI: processors without AVX-512). It multiplies
 * unsigned bytes with signed ones and adds four products to 32 bits without saturation: codes and inputs as they are packed. */
#include "kernels/variants.h"
#include "kernels/x86/quant_inputs_avx2.h"

static void take_pairs(int type, const wg_q8_act *a, int rows, int blocks, inputs *x)
{
    (void)type, (void)a, (void)rows, (void)blocks, (void)x;
}

INLINE void dots(const int type, const int T, const int V, const block *k, const int part, __m256i sum[TALL][WIDE])
{
    if (wg_is_sparse(type)) {
        sparse_dots(type, T, V, k, sum);
        return;
    }
    const int steps = STEPS / wg_block_sums(type);
    const inputs *x = k->x;
    const int b = k->b, bits = wg_code_bits(type);
    const int reload = bits < 6 && T + bits > 7; /* loads again for high halves: their registers are needed */
    const char *from = k->from, *q8 = (const char *)x->act[0].q + WG_QUANT_BLOCK * b;
    HOLD(q8); /* one address of all rows */
    UNROLL_FOR(int m = 0; m < T; m++)
        UNROLL_FOR(int i = 0; i < V; i++) sum[m][i] = _mm256_set1_epi32(x->start[part][m][b]);
    UNROLL_FOR(int j = steps * part; j < steps * (part + 1); j++) {
        __m256i v[WIDE];
        if (reload) HOLD(from);
        ask_ahead(k->ask, type, V, j);
        UNROLL_FOR(int i = 0; i < V; i++) v[i] = codes(type, from, k->fifth, j, i);
        UNROLL_FOR(int m = 0; m < T; m++) {
            const __m256i q = four_at(q8 + (size_t)m * sizeof x->act[0] + 4 * j);
            UNROLL_FOR(int i = 0; i < V; i++) sum[m][i] = _mm256_dpbusd_avx_epi32(sum[m][i], v[i], q);
        }
    }
}

#include "kernels/x86/matmul_quant_avx2.h"

void wg_matmul_avxvnni(const wg_matrix *w, const void *act, int rows, float *y, size_t ldy, int p0, int p1)
{
    if (wg_is_quantised(w->type)) matmul_quant(w, act, rows, y, ldy, p0, p1);
    else wg_matmul_avx2(w, act, rows, y, ldy, p0, p1);
}
