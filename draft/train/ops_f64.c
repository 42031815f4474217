/* SPDX-License-Identifier: MIT
 * The operations of training in double, for finite differences. */
#define REAL double
#define OPS wg_ops_f64
#define OPS_NAME "f64"
#define GEMM wg_gemm_f64
#define SQRT sqrt
#define FMA fma
#define EXP wg_exp64_of
#define LOG log
#include "draft/train/ops_text.h"
