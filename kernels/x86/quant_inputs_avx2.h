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
 * number in its chunk, and the address of ASKED lines to prefetch. Two tiles ask for all 17 lines of a block of q8_0. */
typedef struct block {
    const char *from, *fifth;
    const inputs *x;
    int b;
    const char *ask;
} block;
enum { ASKED = STEPS + 1 };

/* The prefetches of step j, into L2 and without a condition, which would keep steps from overlapping. */
INLINE void ask_ahead(const char *ask, const int j)
{
    _mm_prefetch(ask + 64 * j, _MM_HINT_T1);
    if (j == STEPS - 1) _mm_prefetch(ask + 64 * STEPS, _MM_HINT_T1);
}

/* A row alone waits for memory: AMD's hardware prefetcher is then faster than instructions, Intel's not (docs/kernels.md). */
static inline int asks(int rows) { return rows > 1 || __builtin_cpu_is("intel"); }

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

#endif
