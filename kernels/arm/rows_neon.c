/* SPDX-License-Identifier: MIT
 * Operations on single rows on 4-lane registers. */
#include "kernels/arm/neon.h"

#define LEVEL(op) wg_##op##_neon
#define AT_ONCE 1
#include "kernels/lanes/rows_lanes.h"
