/* SPDX-License-Identifier: MIT
 * Codes, scales and minima of packed quantised blocks (kernels/layout.h) as vectors of 16 outputs. Only for *_avx512.c. */
#ifndef WG_KERNELS_X86_CODES_AVX512_H
#define WG_KERNELS_X86_CODES_AVX512_H

#include <string.h>

#include "kernels/layout.h"
#include "kernels/x86/avx512.h"

/* Codes k = 4 j .. 4 j + 3 of the outputs 16 h .. 16 h + 15 of a block. */
INLINE __m512i codes(const int type, const char *block, const int j, const int h)
{
    const int bits = wg_code_bits(type);
    const char *at = block + wg_codes_at(type) + 64 * h, *high = block + wg_high_at(type);
    if (bits == 8) return _mm512_load_si512(at + 128 * j);
    const __m512i two = _mm512_load_si512(at + 128 * (j % 4)), low = _mm512_set1_epi8(15);
    const __m512i v = _mm512_and_si512(j < 4 ? two : _mm512_srli_epi16(two, 4), low);
    if (wg_has_table(type))
        return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(_mm_loadu_si128((const void *)wg_table_of(type))), v);
    if (bits == 4) return v;
    if (bits == 5) {
        uint64_t fifth;
        memcpy(&fifth, high + 16 * j + 8 * h, sizeof fifth);
        return _mm512_mask_add_epi8(v, (__mmask64)fifth, v, _mm512_set1_epi8(16));
    }
    const __m512i pairs = _mm512_load_si512(high + 128 * (j / 4) + 64 * h), mask = _mm512_set1_epi8(0x30);
    const __m512i moved = j % 4 == 0   ? _mm512_slli_epi16(pairs, 4)
                          : j % 4 == 1 ? _mm512_slli_epi16(pairs, 2)
                          : j % 4 == 2 ? pairs
                                       : _mm512_srli_epi16(pairs, 2);
    return _mm512_ternarylogic_epi64(v, moved, mask, 0xF8); /* v | (moved & mask) */
}

/* Of a sparse block: the codes 4 s .. 4 s + 3 of the outputs 16 h .. 16 h + 15, signed, and which of the 16 inputs from
 * 16 (s / 2) on they belong to. */
INLINE __m512i sparse_codes(const int type, const char *block, const int s, const int h)
{
    return _mm512_load_si512(block + wg_codes_at(type) + 128 * s + 64 * h);
}
INLINE __m512i sparse_places(const int type, const char *block, const int s, const int h)
{
    const __m512i place = _mm512_load_si512(block + wg_high_at(type) + 64 * h), two = _mm512_set1_epi8(3);
    const __m512i first = _mm512_set1_epi32(s % 2 ? 0x0C0C0808 : 0x04040000);
    return _mm512_ternarylogic_epi64(first, _mm512_srli_epi16(place, 2 * s), two, 0xF8); /* first | (place & two) */
}

INLINE __m512 halves(const char *p) { return _mm512_cvtph_ps(_mm256_load_si256((const void *)p)); }
INLINE __m512 brains(const char *p) /* bf16 */
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_load_si256((const void *)p)), 16));
}

/* Scales of a part, of the outputs 16 h .. 16 h + 15. */
INLINE __m512 scales(const int type, const char *head, const char *block, const int part, const int h)
{
    if (!wg_is_k(type)) return wg_scale_is_bf16(type) ? brains(block + 32 * h) : halves(block + 32 * h);
    const __m128i small = _mm_load_si128((const void *)(block + 32 * part + 16 * h));
    const __m512 wide = _mm512_mul_ps(halves(head + 32 * h), _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(small)));
    return wg_scale_unit(type) == 1 ? wide : _mm512_mul_ps(wide, _mm512_set1_ps(wg_scale_unit(type)));
}

/* Minima of a part; those of the K types as they are stored: they are subtracted. */
INLINE __m512 minima(const int type, const char *head, const char *block, const int part, const int h)
{
    if (!wg_is_k(type)) return halves(block + 64 + 32 * h);
    const __m128i small = _mm_load_si128((const void *)(block + wg_min_at(type, part) + 16 * h));
    return _mm512_mul_ps(halves(head + 64 + 32 * h), _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(small)));
}

#endif
