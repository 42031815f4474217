/* SPDX-License-Identifier: MIT
 * What a step costs now: a table that was measured when nothing else ran, corrected by what steps have taken since.
 *
 * The logarithm of the time of a pass over r rows is taken to be
 *
 *      log table[r] + common + own(r) + after e^(-k / LASTS) + noise
 *
 * `common` follows a random walk: other programs, clients of the same machine. own(r) is what the table has wrong about r rows
 * beside others; it is linear between some row counts (knots) and alike at neighbours. `after` is what a prompt leaves behind
 * for the k-th step after it, and drafts for the k-th plain one, another thing each time: weights that have lost their place
 * in a cache (docs/performance.md). A Kalman filter (Kalman 1960) over these knows how sure each is, so that a machine that
 * gets slower while all passes have one size does not count as a slower size, and a size that is seen after a long time does
 * not count as a slower machine.
 *
 * A draft is priced by its levels and tokens, by `common` and a factor of its own. `rest` is the mean of what a step takes
 * besides: verification, events, waking those who read them. A step that took far longer than its price counts as less, so a
 * scheduler's pause moves the prices little. Prices depend on times alone, never on tokens or probabilities. */
#ifndef WG_CORE_ENGINE_ROW_TIMING_H
#define WG_CORE_ENGINE_ROW_TIMING_H

#include "core/engine/row_budget.h"

/* States of the filter: own at WG_ROW_KNOTS knots follows the first two. */
enum { WG_ROW_COMMON = 0, WG_ROW_AFTER = 1, WG_ROW_OWN = 2, WG_ROW_KNOTS = 16, WG_ROW_STATES = WG_ROW_OWN + WG_ROW_KNOTS };

/* Seconds of a step. */
typedef struct wg_row_step {
    int rows;    /* of the pass */
    int prompt;  /* of prompts, in this pass or in one before it */
    int drafted; /* draft tokens, all sequences */
    int depth;   /* of the deepest draft */
    int read;    /* tokens that a draft model read first, having missed them while it was not asked */
    double draft, pass, rest;
} wg_row_step;

typedef struct wg_row_timing {
    wg_row_costs costs; /* the prices; their table is `live` */
    double *live;       /* (rows) owned */
    double *table;      /* (rows) owned: as given */
    double level, token;
    int knot[WG_ROW_KNOTS], knots; /* row counts, rising from 1 to the table's last */
    double state[WG_ROW_STATES], covariance[WG_ROW_STATES][WG_ROW_STATES];
    double alike[WG_ROW_KNOTS]; /* the covariance of own at knots so far apart, before any step */
    double draft_spent, draft_tabled, rest_sum, steps;
    int since_draft, since_prompt; /* steps; 0: the last one; counted to 1000 */
} wg_row_timing;

wg_status wg_row_timing_open(wg_row_timing *t, const wg_row_costs *costs, wg_error *err); /* the table is copied; ENOMEM */
void wg_row_timing_close(wg_row_timing *t);
/* A step whose pass has no rows or was not timed tells nothing. Never allocates. O(rows + knots^2). */
void wg_row_timing_add(wg_row_timing *t, const wg_row_step *step);

#endif
