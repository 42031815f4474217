/* SPDX-License-Identifier: MIT
 * Pruning of weights by magnitude, within each row: the share that is smallest, or all but the N largest of every M
 * consecutive ones (Mishra et al. 2021, "Accelerating Sparse Deep Neural Networks"). Pruned weights are +0. */
#ifndef WG_CORE_FILE_PRUNE_H
#define WG_CORE_FILE_PRUNE_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/error.h"

enum { WG_PRUNE_OF = 32 };

/* {0}: nothing is pruned. */
typedef struct wg_prune {
    int keep, of; /* N and M of N:M; of 0: by share */
    double share; /* of a row's weights, below 1 */
} wg_prune;

#define WG_PRUNE_DOC "N:M (N of every M consecutive weights stay, such as 2:4), or a share of each row from 0 to 0.99, such as 0.5"

static inline bool wg_prune_any(const wg_prune *p) { return p->of > 0 || p->share > 0; }

/* Parses n bytes. EINVAL: what was expected. */
wg_status wg_prune_parse(wg_prune *out, const char *text, size_t n, wg_error *err);

/* Prunes k weights in place; of equal magnitudes the later ones go. NaN counts as the largest. k that is no multiple of M: what
 * is left over stays. room: (k) scratch. */
void wg_prune_row(const wg_prune *p, float *row, size_t k, float *room);

#endif
