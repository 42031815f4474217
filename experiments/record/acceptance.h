/* SPDX-License-Identifier: MIT
 * The acceptance rate of a cell's or a request's draft tokens, under each of the names it is reported by (METHODS D1). */
#ifndef WG_EXPERIMENTS_RECORD_ACCEPTANCE_H
#define WG_EXPERIMENTS_RECORD_ACCEPTANCE_H

#include <jansson.h>

#include "core/engine/seq.h"

/* Every usual definition of acceptance, each under its own name (results/README.md); null where nothing was drafted. */
json_t *wg_acceptance_json(const wg_counts *c);

/* How many steps kept 0, 1, 2 ... draft tokens, up to the deepest that was offered. */
json_t *wg_acceptance_histogram(const wg_counts *c);

#endif
