/* SPDX-License-Identifier: MIT
 * GGUF's types of 1 to 3 bits: blocks of 256 elements whose codes are indices of a code book (iq1_s, iq1_m, iq2_xxs, iq2_xs,
 * iq2_s, iq3_xxs, iq3_s) or ternary digits (tq1_0, tq2_0). Read as blocks of 4-bit codes. Private to kernels/. */
#ifndef WG_KERNELS_CODEBOOKS_H
#define WG_KERNELS_CODEBOOKS_H

#include <stdint.h>

#include "kernels/quant_blocks.h"

/* (codebook_table.c) Of iq1 and iq2 two bits for each of 8 elements, of iq3 three bits for each of 4: which value, the first
 * element lowest. */
extern const uint16_t wg_book_iq1[2048], wg_book_iq2_xxs[256], wg_book_iq2_xs[512], wg_book_iq2_s[1024], wg_book_iq3_xxs[256],
    wg_book_iq3_s[512];

#define WG_CODEBOOK_CASE(id, ...) case WG_##id:
static inline int wg_is_codebook(int type)
{
    switch (type) {
        WG_CODEBOOK_TYPES(WG_CODEBOOK_CASE) return 1;
    default: return 0;
    }
}

/* wg_block_read of these types. */
int wg_codebook_read(int type, const uint8_t *p, wg_block *out);

#endif
