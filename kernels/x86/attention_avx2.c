/* SPDX-License-Identifier: MIT
 * Attention of one row on 8-lane registers. */
#include "kernels/x86/avx2.h"

#define LEVEL(op) wg_##op##_avx2
enum { SHARE = 2, SCORE_SUMS = 8, WIDE = 4, MANY_WIDE = 2, WIDE_ONE = 8, MANY = 2, APART = 0 };
#include "kernels/lanes/attention_lanes.h"
