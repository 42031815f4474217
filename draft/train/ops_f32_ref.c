/* SPDX-License-Identifier: MIT
 * The operations of training in f32, for any processor. */
#define OPS wg_ops_f32_ref
#define OPS_NAME "f32 ref"
#include "draft/train/ops_f32.h"
