/* SPDX-License-Identifier: MIT
 * Writing blocks of the K types, whose scales are found by a search. Private to kernels/. */
#ifndef WG_KERNELS_QUANTIZE_K_H
#define WG_KERNELS_QUANTIZE_K_H

#include <stddef.h>
#include <stdint.h>

/* n elements (whole blocks of 256) to blocks of q4_k or q6_k. The numbers must be finite. */
void wg_q4_k_from_f32(const float *src, uint8_t *dst, size_t n);
void wg_q6_k_from_f32(const float *src, uint8_t *dst, size_t n);

#endif
