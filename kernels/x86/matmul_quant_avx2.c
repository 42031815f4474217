/* SPDX-License-Identifier: MIT
 * Products with quantised weights without a dot-product instruction. vpmaddubsw adds pairs of products in 16 bits: enough for
 * codes of at most 6 bits (63 * 127 * 2), not for bytes (255 * 127 * 2). There weights and inputs are split into even and odd
 * bytes as 16-bit numbers, and vpmaddwd adds exact pairs. */
#include "kernels/x86/codes_avx2.h"

#define TALL 4 /* 8 sums, and 4 halves of bytes */

/* Of bytes also as 16-bit numbers: [row][step of 4 inputs] -> even pair, odd pair. */
typedef struct inputs {
    const wg_q8_act *act;
    _Alignas(32) int16_t even[TALL][WG_ACT_BLOCKS * WG_QUANT_BLOCK / 2], odd[TALL][WG_ACT_BLOCKS * WG_QUANT_BLOCK / 2];
} inputs;

INLINE int is_wide(const int type) { return wg_code_zero(type) == 128; } /* codes of 8 bits */

static void take_inputs(int type, const wg_q8_act *a, int rows, int blocks, inputs *x)
{
    x->act = a;
    for (int m = 0; is_wide(type) && m < rows; m++)
        for (int b = 0; b < blocks; b++) {
            const __m256i q = _mm256_loadu_si256((const void *)(a[m].q + WG_QUANT_BLOCK * b));
            _mm256_store_si256((void *)(x->even[m] + WG_QUANT_BLOCK / 2 * b), _mm256_srai_epi16(_mm256_slli_epi16(q, 8), 8));
            _mm256_store_si256((void *)(x->odd[m] + WG_QUANT_BLOCK / 2 * b), _mm256_srai_epi16(q, 8));
        }
}

INLINE void add_step(const int type, const int T, const __m256i v[2], const inputs *x, int b, const int j, __m256i sum[TALL][2])
{
    __m256i even[2], odd[2];
    UNROLL_FOR(int i = 0; i < 2; i++) {
        even[i] = _mm256_and_si256(v[i], _mm256_set1_epi16(0xff));
        odd[i] = _mm256_srli_epi16(v[i], 8);
    }
    UNROLL_FOR(int m = 0; m < T; m++) {
        if (is_wide(type)) {
            const int at = WG_QUANT_BLOCK / 2 * b + 2 * j;
            const __m256i xe = four_at(x->even[m] + at), xo = four_at(x->odd[m] + at);
            UNROLL_FOR(int i = 0; i < 2; i++) {
                sum[m][i] = _mm256_add_epi32(sum[m][i], _mm256_madd_epi16(even[i], xe));
                sum[m][i] = _mm256_add_epi32(sum[m][i], _mm256_madd_epi16(odd[i], xo));
            }
        } else {
            const __m256i q = four_at(x->act[m].q + WG_QUANT_BLOCK * b + 4 * j), one = _mm256_set1_epi16(1);
            UNROLL_FOR(int i = 0; i < 2; i++)
                sum[m][i] = _mm256_add_epi32(sum[m][i], _mm256_madd_epi16(_mm256_maddubs_epi16(v[i], q), one));
        }
    }
}

#include "kernels/x86/matmul_quant_avx2.h"

void wg_matmul_quant_avx2(const wg_matrix *w, const void *act, int rows, float *y, size_t ldy, int p0, int p1)
{
    matmul_quant(w, act, rows, y, ldy, p0, p1);
}
