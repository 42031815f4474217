/* SPDX-License-Identifier: MIT
 * What the tiles of matmul_quant_avx2.h read beside weights, and their sums. Only for *_avx2.c and *_avxvnni.c files. */
#ifndef WG_KERNELS_X86_QUANT_INPUTS_AVX2_H
#define WG_KERNELS_X86_QUANT_INPUTS_AVX2_H

#include "kernels/x86/codes_avx2.h"
#include "kernels/x86/matmul_x86.h"

enum {
    TALL = 6, /* rows of the tallest tile: 12 sums, 2 weights, 1 broadcast, 1 product are all registers */
    WIDE = 4, /* vectors of a tile of one row; of taller ones 2 */
    STEPS = WG_QUANT_BLOCK / 4,
};

/* A chunk of the inputs of a tile's rows. The starts of the sums of each part; of codes of 8 bits, where there is no
 * vpdpbusd, the inputs as 16-bit numbers: [row][block][even or odd k]. */
typedef struct inputs {
    const wg_q8_act *act;
    int32_t start[2][TALL][WG_ACT_BLOCKS];
#ifndef __AVXVNNI__
    _Alignas(32) int16_t pairs[TALL][WG_ACT_BLOCKS][2][WG_QUANT_BLOCK / 2];
#endif
} inputs;

/* A block, as a tile reads it: codes of the tile's outputs and their fifth bits (codes_avx2.h), the tile's inputs, the block's
 * number in its chunk, and the first of the lines to prefetch meanwhile. */
typedef struct block {
    const char *from, *fifth;
    const inputs *x;
    int b;
    const char *ask;
} block;

/* Lines that a block of 8 V outputs prefetches. */
INLINE int asked(const int type, const int V) { return V == WIDE ? share_lines(type) : (share_lines(type) + 1) / 2; }

/* The prefetches of step j, into L1: in the order of addresses, in which the hardware prefetcher goes on with them, evenly over
 * the steps, and without a condition, which would keep steps from overlapping. */
INLINE void ask_ahead(const char *ask, const int type, const int V, const int j)
{
    const int lines = asked(type, V);
    UNROLL_FOR(int l = lines * j / STEPS; l < lines * (j + 1) / STEPS; l++) _mm_prefetch(ask + 64 * l, _MM_HINT_T0);
}

/* a + b, in this place: gcc 12 would regroup the additions of a block and keep its products in memory until the end. */
INLINE __m256i sum32(__m256i a, __m256i b)
{
    __m256i s = _mm256_add_epi32(a, b);
    __asm__("" : "+x"(s));
    return s;
}
INLINE __m256i sum16(__m256i a, __m256i b)
{
    __m256i s = _mm256_add_epi16(a, b);
    __asm__("" : "+x"(s));
    return s;
}

/* sum + the products of four unsigned bytes w, at most 128, with four inputs x. */
INLINE __m256i sum_fours(__m256i sum, __m256i w, __m256i x)
{
#ifdef __AVXVNNI__
    return _mm256_dpbusd_avx_epi32(sum, w, x);
#else
    return sum32(sum, _mm256_madd_epi16(_mm256_maddubs_epi16(w, x), _mm256_set1_epi16(1))); /* pairs: 2 * 128 * 127 */
#endif
}

/* The dots of a sparse block: a byte shuffle takes from 16 inputs those that 8 outputs have codes for, with the codes' signs.
 * Vectors of outputs one after the other, because the weights of a step take three registers. */
INLINE void sparse_dots(const int type, const int T, const int V, const block *k, __m256i sum[TALL][WIDE])
{
    UNROLL_FOR(int i = 0; i < V; i++) {
        UNROLL_FOR(int m = 0; m < T; m++) sum[m][i] = _mm256_set1_epi32(WG_MAGIC_BITS);
        UNROLL_FOR(int s = 0; s < WG_SPARSE_STEPS; s++) {
            const __m256i q = sparse_codes(type, k->from, s, i), places = sparse_places(type, k->from, s, i);
            const __m256i w = _mm256_abs_epi8(q);
            if (i < 2) ask_ahead(k->ask, type, V, WG_SPARSE_STEPS * i + s);
            UNROLL_FOR(int m = 0; m < T; m++) {
                const void *from = k->x->act[m].q + WG_QUANT_BLOCK * k->b + 16 * (s / 2);
                const __m256i x = _mm256_broadcastsi128_si256(_mm_loadu_si128(from));
                sum[m][i] = sum_fours(sum[m][i], w, _mm256_sign_epi8(_mm256_shuffle_epi8(x, places), q));
            }
        }
    }
}

#endif
