/* SPDX-License-Identifier: MIT
 * The search for a set of sub-layers that a draft can skip (the problem of Zhang et al. 2023, Draft & Verify, and Xia et al.
 * 2024, SWIFT), for any value function of a set. */
#ifndef WG_EXPERIMENTS_ANALYSIS_SKIP_SEARCH_H
#define WG_EXPERIMENTS_ANALYSIS_SKIP_SEARCH_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"

/* The value of a set: skip (layers) of WG_SKIP_* bits, as in a wg_layer_plan. Larger is better. */
typedef wg_status wg_skip_value(void *user, const uint8_t *skip, double *value, wg_error *err);

typedef struct wg_skip_problem {
    int layers;
    int size;      /* sub-layers in the set; 0: any number */
    long tries;    /* sets evaluated in the last stage; if there are not more sets, all are evaluated instead */
    uint64_t seed; /* seed of its draws */
    wg_skip_value *value;
    void *user;
} wg_skip_problem;

/* Fills best (layers), never with all or none of the sub-layers; *value: its value; *evaluated: the number of sets
 * evaluated. Deterministic. EINVAL: no layers, or a size that is not 1 .. all but one; ENOMEM; errors of value(). */
wg_status wg_skip_search(const wg_skip_problem *p, uint8_t *best, double *value, long *evaluated, wg_error *err);

/* Writes the layers with this bit as "2/5/7-9" into buf. */
const char *wg_skip_list(const uint8_t *skip, int layers, uint8_t bit, char *buf, size_t size);

#endif
