/* SPDX-License-Identifier: MIT
 * Codes, scales and minima of packed quantised blocks (kernels/layout.h) as vectors of 8 outputs. Only for *_avx2.c and
 * *_avxvnni.c. */
#ifndef WG_KERNELS_X86_CODES_AVX2_H
#define WG_KERNELS_X86_CODES_AVX2_H

#include <string.h>

#include "kernels/layout.h"
#include "kernels/x86/avx2.h"

INLINE __m256i four_at(const void *p)
{
    int32_t four;
    memcpy(&four, p, 4);
    return _mm256_set1_epi32(four);
}

/* Codes k = 4 j .. 4 j + 3 of the i-th 8 outputs from row r of the panel on. from: block + 4 r; fifth: block + r / 2. */
INLINE __m256i codes(const int type, const char *from, const char *fifth, const int j, const int i)
{
    const int bits = wg_code_bits(type);
    const char *at = from + wg_codes_at(type) + 32 * i;
    if (bits == 8) return _mm256_load_si256((const void *)(at + 128 * j));
    const __m256i two = _mm256_load_si256((const void *)(at + 128 * (j % 4)));
    const __m256i v = _mm256_and_si256(j < 4 ? two : _mm256_srli_epi16(two, 4), _mm256_set1_epi8(15));
    if (wg_has_table(type))
        return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(_mm_loadu_si128((const void *)wg_table_of(type))), v);
    if (bits == 4) return v;
    if (bits == 5) { /* byte i of the vector tests bit i of a word */
        const __m256i byte = _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
        const __m256i bit = _mm256_set1_epi64x((long long)0x8040201008040201ull);
        const __m256i four = four_at(fifth + wg_high_at(type) + 16 * j + 4 * i);
        const __m256i set = _mm256_cmpeq_epi8(_mm256_and_si256(_mm256_shuffle_epi8(four, byte), bit), bit);
        return _mm256_or_si256(v, _mm256_and_si256(set, _mm256_set1_epi8(16)));
    }
    const __m256i pairs = _mm256_load_si256((const void *)(from + wg_high_at(type) + 128 * (j / 4) + 32 * i));
    const __m256i moved = j % 4 == 0   ? _mm256_slli_epi16(pairs, 4)
                          : j % 4 == 1 ? _mm256_slli_epi16(pairs, 2)
                          : j % 4 == 2 ? pairs
                                       : _mm256_srli_epi16(pairs, 2);
    return _mm256_or_si256(v, _mm256_and_si256(moved, _mm256_set1_epi8(0x30)));
}

/* Of a sparse block, of the i-th 8 outputs: the codes 4 s .. 4 s + 3, signed, and which of the 16 inputs from 16 (s / 2) on
 * they belong to. */
INLINE __m256i sparse_codes(const int type, const char *from, const int s, const int i)
{
    return _mm256_load_si256((const void *)(from + wg_codes_at(type) + 128 * s + 32 * i));
}
INLINE __m256i sparse_places(const int type, const char *from, const int s, const int i)
{
    const __m256i place = _mm256_load_si256((const void *)(from + wg_high_at(type) + 32 * i));
    const __m256i two = _mm256_and_si256(_mm256_srli_epi16(place, 2 * s), _mm256_set1_epi8(3));
    return _mm256_or_si256(two, _mm256_set1_epi32(s % 2 ? 0x0C0C0808 : 0x04040000));
}

INLINE __m256 halves(const char *p) { return _mm256_cvtph_ps(_mm_load_si128((const void *)p)); }
INLINE __m256 brains(const char *p) /* bf16 */
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_load_si128((const void *)p)), 16));
}
INLINE __m256 bytes(const char *p) { return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const void *)p))); }

/* Scales and minima of a part (minima of K types as they are stored: they are subtracted), of 8 outputs from row r on. */
INLINE __m256 scales(const int type, const char *head, const char *block, const int part, int r)
{
    if (wg_scale_is_bf16(type)) return brains(block + 2 * r);
    if (!wg_is_k(type)) return halves(block + 2 * r);
    const __m256 wide = _mm256_mul_ps(halves(head + 2 * r), bytes(block + 32 * part + r));
    return wg_scale_unit(type) == 1 ? wide : _mm256_mul_ps(wide, _mm256_set1_ps(wg_scale_unit(type)));
}
INLINE __m256 minima(const int type, const char *head, const char *block, const int part, int r)
{
    if (!wg_is_k(type)) return halves(block + 64 + 2 * r);
    return _mm256_mul_ps(halves(head + 64 + 2 * r), bytes(block + wg_min_at(type, part) + r));
}

#endif
