/* SPDX-License-Identifier: MIT
 * What a step costs now: a table that was measured when nothing else ran, corrected by what steps have taken since.
 *
 * A pass over r rows is priced table[r] g own(r). g is the quotient of measured and tabled seconds over the last steps (other
 * programs, clients of the same machine, sequences that do not share their keys); own(r) that of r rows beside it, drawn
 * towards 1 by a few steps' weight and with time. The price of drafting has a factor of its own. `rest` is the mean of what a
 * step takes besides: verification, events, waking those who read them. A step that took far longer than its price counts as
 * SPIKE times it, so a scheduler's pause moves the prices little.
 *
 * Prices depend on times alone, never on tokens or probabilities. */
#ifndef WG_CORE_ENGINE_ROW_TIMING_H
#define WG_CORE_ENGINE_ROW_TIMING_H

#include "core/engine/row_budget.h"

/* Seconds of a step. */
typedef struct wg_row_step {
    int rows;    /* of the pass */
    int drafted; /* draft tokens, all sequences */
    int depth;   /* of the deepest draft */
    int read;    /* tokens that a draft model read first, having missed them while it was not asked */
    double draft, pass, rest;
} wg_row_step;

typedef struct wg_row_timing {
    wg_row_costs costs; /* the prices; their table is `live` */
    double *live;       /* (rows) owned */
    double *table;      /* (rows) owned: as given */
    double *ratio;      /* (rows) owned: sums of measured seconds over g table[r], with decay */
    double *seen;       /* (rows) owned: their weights */
    double level, token;
    double pass_spent, pass_tabled, draft_spent, draft_tabled, rest_sum, steps;
} wg_row_timing;

wg_status wg_row_timing_open(wg_row_timing *t, const wg_row_costs *costs, wg_error *err); /* the table is copied; ENOMEM */
void wg_row_timing_close(wg_row_timing *t);
/* A step whose pass has no rows or was not timed tells nothing. Never allocates. O(rows). */
void wg_row_timing_add(wg_row_timing *t, const wg_row_step *step);

#endif
