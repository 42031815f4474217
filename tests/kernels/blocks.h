/* SPDX-License-Identifier: MIT
 * Random blocks of any quantised type, including types that this project does not write: every bit pattern is a legal code
 * or small scale; only the f16 scales (and minima) are chosen, so that elements are about `size`. */
#ifndef WG_TESTS_KERNELS_BLOCKS_H
#define WG_TESTS_KERNELS_BLOCKS_H

#include <math.h>
#include <string.h>

#include "kernels/layout.h"

/* The deviation of elements of random code books when the block's scale is 1; 0: of another type. */
static inline float codebook_spread(int type)
{
    switch (type) {
    case WG_IQ1_S:
    case WG_IQ1_M: return 7;
    case WG_IQ2_XXS:
    case WG_IQ2_XS:
    case WG_IQ2_S: return 56;
    case WG_IQ3_XXS: return 155;
    case WG_IQ3_S: return 160;
    case WG_TQ1_0:
    case WG_TQ2_0: return 1;
    default: return 0;
    }
}

/* Writes the f16 scales of a row of n elements. */
static inline void set_scales(int type, float size, void *row, size_t n)
{
    const wg_type_info *t = wg_type_get(type);
    const size_t bytes = wg_type_size(t, n);
    unsigned char *p = row;
    for (size_t i = 0; type == WG_F8_E4M3 && i < bytes; i += (size_t)t->bytes) {
        const float scale32 = size / 140; /* standard deviation of codes that are alike likely */
        for (int j = 4; j < t->bytes; j++) p[i + (size_t)j] ^= wg_f8_is_nan(p[i + (size_t)j]); /* NaN: 448 */
        memcpy(p + i, &scale32, 4);
    }
    if (type == WG_F8_E4M3) return;
    /* standard deviation of the codes times the small scales; a minimum takes their mean away */
    const float book = codebook_spread(type);
    const int bits = wg_code_bits(type), table = wg_has_table(type), halves = wg_block_sums(type) == 2;
    const float spread = book > 0        ? book
                         : wg_is_k(type) ? (bits == 6          ? 1370
                                            : bits == 5        ? 530
                                            : table            ? 1233
                                            : !halves          ? 260
                                            : wg_has_min(type) ? 14
                                                               : 43)
                         : bits == 8     ? 74
                         : table         ? 70
                         : bits == 5     ? 9.2f
                                         : 4.6f;
    const float mean = halves ? -1.5f : bits == 4 ? -7.5f : -15.5f, sign = wg_is_k(type) ? -1 : 1;
    /* mxfp4: 2^(e - 128), of four neighbouring e one at random; values have deviation 5.9 */
    for (size_t i = 0; type == WG_MXFP4 && i < bytes; i += (size_t)t->bytes)
        p[i] = (unsigned char)(123 + p[i] % 4 + (int)lrintf(log2f(size)));
    const uint16_t scale[2] = { wg_f32_to_f16(size / spread), wg_f32_to_f16(size / spread * mean * sign) };
    for (size_t i = 0; type == WG_IQ1_M && i < bytes; i += (size_t)t->bytes) /* a digit in each word of scales, at the top */
        for (size_t j = 0; j < 4; j++)
            p[i + 49 + 2 * j] = (unsigned char)((p[i + 49 + 2 * j] & 15) | (scale[0] >> 4 * j & 15) << 4);
    for (size_t i = 0; i < bytes; i += (size_t)t->bytes) memcpy(p + i + t->scale_at, scale, (size_t)t->scales * 2);
}

/* row: n elements, whole blocks. Bytes depend on (seed, position) only. */
static inline void random_blocks(int type, uint64_t seed, float size, void *row, size_t n)
{
    unsigned char *p = row;
    for (size_t i = 0; i < wg_type_size(wg_type_get(type), n); i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        p[i] = (unsigned char)(seed >> 56);
    }
    set_scales(type, size, row, n);
}

/* The same with one code everywhere: 0xff is the largest of 4, 5 and 6 bits, 0x80 and 0x7f the ends of q8_0, 0 iq4_nl's. */
static inline void extreme_blocks(int type, int byte, float size, void *row, size_t n)
{
    memset(row, byte, wg_type_size(wg_type_get(type), n));
    unsigned char *p = row;
    for (size_t i = 0; wg_is_sparse(type) && i < n / 32; i++) /* the first two of every four: no code hides another */
        for (int j = 0; j < 4; j++) p[22 * i + 2 + (size_t)j] = j % 2 ? 0x55 : 0;
    set_scales(type, size, row, n);
}

#endif
