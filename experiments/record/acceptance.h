/* SPDX-License-Identifier: MIT
 * The acceptance rates of the draft tokens of a cell or a request (METHODS D1). */
#ifndef WG_EXPERIMENTS_RECORD_ACCEPTANCE_H
#define WG_EXPERIMENTS_RECORD_ACCEPTANCE_H

#include <jansson.h>

#include "core/engine/seq.h"

/* sum min(p, q) summed over the positions of a text at which a token was drafted, rules and policies aside (teacher_pass.h). A sum
 * that is NaN: not measured. */
typedef struct wg_taught {
    double sum;
    long n;
} wg_taught;

/* Each of the usual definitions of acceptance under its own name (results/README.md); null where nothing was drafted. */
json_t *wg_acceptance_json(const wg_counts *c);

/* The number of steps that accepted 0, 1, 2 ... draft tokens, up to the greatest depth drafted. */
json_t *wg_acceptance_histogram(const wg_counts *c);

#endif
