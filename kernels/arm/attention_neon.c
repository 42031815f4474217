/* SPDX-License-Identifier: MIT
 * Attention for every type of cache, without a dot-product instruction: two products of codes fit 16 bits (127 * 127 * 2), as
 * no code is -128. */
#include "kernels/arm/neon.h"

INLINE ivec i_dot(ivec sum, byte_vec k, byte_vec q)
{
    return vpadalq_s16(sum, vmlal_high_s8(vmull_s8(vget_low_s8(k), vget_low_s8(q)), k, q));
}

#define LEVEL(op) wg_##op##_neon
enum { SHARE = 2, SCORE_SUMS = 16, WIDE = 8, MANY_WIDE = 2, WIDE_ONE = 16, MANY = 2, APART = 0 };
#include "kernels/lanes/attention_lanes.h"
