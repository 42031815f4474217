/* SPDX-License-Identifier: MIT
 * Operations on single rows on 16-lane registers. */
#include "kernels/x86/avx512.h"

#define LEVEL(op) wg_##op##_avx512
#define AT_ONCE 4
#include "kernels/lanes/rows_lanes.h"
