/* SPDX-License-Identifier: MIT
 * The rotary angles of a model (RoPE; Su et al. 2021) with the scalings of its hyper-parameters: linear, by
 * divisors of frequencies (llama3, longrope), YaRN (Peng et al. 2023). */
#ifndef WG_CORE_MODEL_ROTARY_H
#define WG_CORE_MODEL_ROTARY_H

#include "core/base/pool.h"
#include "core/model/arch.h"
#include "kernels/ops.h"

/* Pair i turns by position * frequency[i], and is multiplied by magnitude. */
typedef struct wg_rotary {
    int pairs;
    double magnitude;
    double frequency[WG_MAX_HEAD / 2];
} wg_rotary;

/* Those of layers with a window, or of the others. divisor: (n_rot / 2) of the frequencies, of the file. */
void wg_rotary_of(const wg_arch *a, bool windowed, const float *divisor, wg_rotary *out);

/* cs: (positions, pairs, 2), cos and sin of each angle, times the magnitude. Split over the pool. */
void wg_rotary_angles(const wg_rotary *r, int positions, wg_pool *pool, float *cs);

#endif
