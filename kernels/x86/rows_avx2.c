/* SPDX-License-Identifier: MIT
 * Operations on single rows on 8-lane registers. */
#include "kernels/x86/avx2.h"

#define LEVEL(op) wg_##op##_avx2
#define AT_ONCE 1
#include "kernels/lanes/rows_lanes.h"
