/* SPDX-License-Identifier: MIT
 * The operations of training in f32, compiled for avx2. */
#define OPS wg_ops_f32_avx2
#define OPS_NAME "f32 avx2"
#include "draft/train/ops_f32.h"
