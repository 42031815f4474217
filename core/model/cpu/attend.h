/* SPDX-License-Identifier: MIT
 * Attention of the rows of a layer on the threads of a pool: the stages of kernels/op_list.h, each one job whose items are
 * chunks of keys, slots, or slices of values. Sums are never split, so the bits are those of one thread and of one row. */
#ifndef WG_CORE_MODEL_CPU_ATTEND_H
#define WG_CORE_MODEL_CPU_ATTEND_H

#include "core/base/pool.h"
#include "kernels/ops.h"

/* Most rows of a call of wg_attend, and the floats of its room, for a model of so many query heads. */
int wg_attend_rows(int heads);
size_t wg_attend_floats(int heads);

/* a: q, out, keys, of and rows are set by the caller. pool == NULL: one thread. */
void wg_attend(const wg_ops *ops, wg_pool *pool, wg_attention *a, float *room);

#endif
