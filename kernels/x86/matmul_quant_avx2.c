/* SPDX-License-Identifier: MIT
 * Products with quantised weights without a dot-product instruction. Codes of at most 6 bits: vpmaddubsw adds pairs of
 * products with inputs in 16 bits; they are summed there for as many steps as fit and then widened. Pairs of bytes do not fit
 * (255 * 127 * 2): their even and odd ones become 16-bit numbers, as the inputs', and vpmaddwd adds exact pairs. Codes of
 * q8_2of4 are signed, and their signs go to the inputs that are picked for them (quant_inputs_avx2.h). */
#include "kernels/x86/quant_inputs_avx2.h"

INLINE int is_wide(const int type) { return wg_code_zero(type) == 128; } /* codes of 8 bits */

/* Steps of a part whose sums fit 16 bits: each has at most 2 * 127 * the largest code. */
INLINE int steps_of_16(const int type)
{
    const int bits = wg_code_bits(type);
    return bits == 4 ? STEPS / wg_block_sums(type) : bits == 5 ? 4 : 2;
}

static void take_pairs(int type, const wg_q8_act *a, int rows, int blocks, inputs *x)
{
    for (int m = 0; is_wide(type) && !wg_is_sparse(type) && m < rows; m++)
        for (int b = 0; b < blocks; b++) {
            const __m256i q = _mm256_loadu_si256((const void *)(a[m].q + WG_QUANT_BLOCK * b));
            _mm256_store_si256((void *)x->pairs[m][b][0], _mm256_srai_epi16(_mm256_slli_epi16(q, 8), 8));
            _mm256_store_si256((void *)x->pairs[m][b][1], _mm256_srai_epi16(q, 8));
        }
}

INLINE void add_bytes(const int type, const int T, const int V, const block *k, const int part, __m256i sum[TALL][WIDE])
{
    const int steps = STEPS / wg_block_sums(type), start = steps * part;
    const inputs *x = k->x;
    const char *from = k->from, *pairs = (const char *)x->pairs[0][k->b];
    const int b = k->b;
    HOLD(pairs); /* one address of all rows */
    UNROLL_FOR(int j = start; j < start + steps; j++)
        UNROLL_FOR(int odd = 0; odd < 2; odd++) {
            __m256i v[WIDE];
            if (T > 1) HOLD(from); /* loads again for odd bytes: their registers are needed */
            if (!odd) ask_ahead(k->ask, type, V, j);
            UNROLL_FOR(int i = 0; i < V; i++) {
                v[i] = codes(type, from, k->fifth, j, i);
                v[i] = odd ? _mm256_srli_epi16(v[i], 8) : _mm256_and_si256(v[i], _mm256_set1_epi16(0xff));
            }
            UNROLL_FOR(int m = 0; m < T; m++) {
                const __m256i q =
                    four_at(pairs + (size_t)m * sizeof x->pairs[0] + sizeof x->pairs[0][0][0] * (size_t)odd + 4 * j);
                UNROLL_FOR(int i = 0; i < V; i++) {
                    const __m256i before = j > start || odd ? sum[m][i] : _mm256_set1_epi32(x->start[part][m][b]);
                    sum[m][i] = sum32(before, _mm256_madd_epi16(v[i], q));
                }
            }
        }
}

INLINE void add_codes(const int type, const int T, const int V, const block *k, const int part, __m256i sum[TALL][WIDE])
{
    const int fit = steps_of_16(type), steps = STEPS / wg_block_sums(type), start = steps * part;
    const inputs *x = k->x;
    const char *from = k->from, *q8 = (const char *)x->act[0].q + WG_QUANT_BLOCK * k->b;
    const int b = k->b;
    HOLD(q8); /* one address of all rows */
    UNROLL_FOR(int first = start; first < start + steps; first += fit) {
        __m256i s[TALL][WIDE];
        UNROLL_FOR(int j = first; j < first + fit; j++) {
            __m256i v[WIDE];
            HOLD(from); /* loads again for high halves: their registers are needed */
            ask_ahead(k->ask, type, V, j);
            UNROLL_FOR(int i = 0; i < V; i++) v[i] = codes(type, from, k->fifth, j, i);
            UNROLL_FOR(int m = 0; m < T; m++) {
                const __m256i q = four_at(q8 + (size_t)m * sizeof x->act[0] + 4 * j);
                UNROLL_FOR(int i = 0; i < V; i++) {
                    const __m256i pairs = _mm256_maddubs_epi16(v[i], q);
                    s[m][i] = j == first ? pairs : sum16(s[m][i], pairs);
                }
            }
        }
        UNROLL_FOR(int m = 0; m < T; m++)
            UNROLL_FOR(int i = 0; i < V; i++) {
                const __m256i before = first == start ? _mm256_set1_epi32(x->start[part][m][b]) : sum[m][i];
                sum[m][i] = sum32(before, _mm256_madd_epi16(s[m][i], _mm256_set1_epi16(1)));
            }
    }
}

INLINE void dots(const int type, const int T, const int V, const block *k, const int part, __m256i sum[TALL][WIDE])
{
    if (wg_is_sparse(type)) sparse_dots(type, T, V, k, sum);
    else if (is_wide(type)) add_bytes(type, T, V, k, part, sum);
    else add_codes(type, T, V, k, part, sum);
}

#include "kernels/x86/matmul_quant_avx2.h"

void wg_matmul_quant_avx2(const wg_matrix *w, const void *act, int rows, float *y, size_t ldy, int p0, int p1)
{
    matmul_quant(w, act, rows, y, ldy, p0, p1);
}
