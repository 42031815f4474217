/* SPDX-License-Identifier: MIT
 * The operations of training in f32, compiled for avx512. */
#define OPS wg_ops_f32_avx512
#define OPS_NAME "f32 avx512"
#include "draft/train/ops_f32.h"
