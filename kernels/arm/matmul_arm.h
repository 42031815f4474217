/* SPDX-License-Identifier: MIT
 * The parts of the matmul ops. Private to kernels/arm. */
#ifndef WG_KERNELS_ARM_MATMUL_ARM_H
#define WG_KERNELS_ARM_MATMUL_ARM_H

#include "kernels/ops.h"

void wg_matmul_float_neon(const wg_matrix *w, const void *act, int rows, float *y, size_t ldy, int p0, int p1);

#endif
