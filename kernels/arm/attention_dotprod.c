/* SPDX-License-Identifier: MIT
 * Scores of a cache of 8-bit codes by sdot; nothing else gains from it. */
#include "kernels/arm/neon.h"

INLINE ivec i_dot(ivec sum, byte_vec k, byte_vec q) { return vdotq_s32(sum, k, q); }

#define LEVEL(op) wg_##op##_dotprod
#define SCORES_OF_CODES
#define OTHERWISE wg_attention_scores_neon
enum { SHARE = 2, SCORE_SUMS = 16, WIDE = 8, MANY_WIDE = 2, WIDE_ONE = 16, MANY = 2, APART = 0 };
#include "kernels/lanes/attention_lanes.h"
