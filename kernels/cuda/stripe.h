/* SPDX-License-Identifier: MIT
 * Quantised matrices on a device: bytes of their layout, for the packer (kernels/cuda_pack.c) and the kernels.
 *
 * An (n, k) matrix is [n / 16] stripes of 16 outputs, a stripe [k / 128] records of WG_STEP blocks of 32 inputs; what is past n
 * or k is zeros. A warp multiplies a record with one mma.m16n8k32 a block: lane 4 g + t holds, in word 2 p + h of a block,
 * inputs 16 p + 4 t .. + 3 of output g + 8 h, low byte first. A record is
 *   codes   8 bits: [block][lane][4 words] of signed bytes
 *           fewer:  [block / 2][lane][block % 2][2 words], word h: low halves are word h (p = 0), high ones word 2 + h (p = 1)
 *   high    5 bits: [lane][block / 2] words: bit 8 i + 4 (block % 2) + j is bit 4 of byte i of word j
 *           6 bits: [lane][block] words: bits 8 i + 2 j .. + 1 are bits 4, 5 of byte i of word j
 *   scales  16 bytes for each g: f16 (mxfp4: bf16) d[2][WG_STEP] (outputs g, g + 8); K types: s8 scale[2][WG_STEP][2], of
 *           halves of a block; q2_k: u4 scale, u4 min[2][WG_STEP][2]; q4_k, q5_k: u8 scale[2][WG_STEP], min[2][WG_STEP]
 *   minima  q4_1, q5_1: 16 bytes for each g, f16 m[2][WG_STEP]
 *   wide    K types, for each g: f16 d[2], with minima f16 dmin[2]
 * All parts are whole lines of 16 bytes, so a record is copied as it lies. */
#ifndef WG_KERNELS_CUDA_STRIPE_H
#define WG_KERNELS_CUDA_STRIPE_H

#include "kernels/layout.h"

enum { WG_STRIPE = 16, WG_STEP = 4 };

/* The type whose records and kernels a quantised type has: q8_2of4 is q8_0 on a device, its zeros stored. */
WG_HD static inline int wg_stripe_type(int type) { return wg_is_sparse(type) ? WG_Q8_0 : type; }

WG_HD static inline int wg_step_high_at(int type) { return wg_code_bits(type) == 8 ? 2048 : 1024; }
WG_HD static inline int wg_step_scales_at(int type)
{
    return wg_step_high_at(type) + (wg_code_bits(type) == 5 ? 256 : wg_code_bits(type) == 6 ? 512 : 0);
}
WG_HD static inline int wg_step_minima_at(int type) { return wg_step_scales_at(type) + 128; }
WG_HD static inline int wg_step_wide_at(int type) { return wg_step_scales_at(type) + 128; }
WG_HD static inline int wg_step_bytes(int type)
{
    return wg_step_scales_at(type) + 128 + (wg_is_k(type) ? (wg_has_min(type) ? 64 : 32) : wg_has_min(type) ? 128 : 0);
}

WG_HD static inline int wg_steps(int k) { return (k / WG_QUANT_BLOCK + WG_STEP - 1) / WG_STEP; }
WG_HD static inline size_t wg_stripe_bytes(int type, int k) { return (size_t)wg_steps(k) * (size_t)wg_step_bytes(type); }

#endif
