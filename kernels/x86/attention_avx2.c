/* SPDX-License-Identifier: MIT
 * Attention on 8-lane registers. */
#include "kernels/x86/avx2.h"

#define LEVEL(op) wg_##op##_avx2
enum { SHARE = 3, SCORE_SUMS = 12, WIDE = 4, MANY_WIDE = 3, WIDE_ONE = 8, MANY = 3, APART = 0 };
#include "kernels/lanes/attention_lanes.h"
