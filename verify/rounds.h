/* SPDX-License-Identifier: MIT
 * Rejection in rounds, one sibling after the other: what `rejection`, `without_replacement` and `lenience` have in common. */
#ifndef WG_VERIFY_ROUNDS_H
#define WG_VERIFY_ROUNDS_H

#include "verify/walk.h"

/* Let r_1 = p and q_i the law of the ith sibling given those before it (fixed: the point at it; iid: q; without replacement: q
 * without the earlier siblings, normalised). Accept x_i with probability min(1, r_i(x_i) / (l q_i(x_i))), else
 * r_{i+1} = norm((r_i - l q_i)+). When no sibling is left, `next` is drawn from the last r. l = 1: lossless. */
int wg_settle_rounds(const wg_crossing *c, double lenience, int32_t *next);

#endif
