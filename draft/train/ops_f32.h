/* SPDX-License-Identifier: MIT
 * The operations of training in f32: included once by each instruction set's file, which names the table. */
#define REAL float
#define GEMM wg_gemm_f32
#define SQRT sqrtf
#define FMA fmaf
#define EXP wg_exp32_of
#include "draft/train/ops_text.h"
