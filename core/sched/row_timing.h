/* SPDX-License-Identifier: MIT
 * What a step costs now: a table that was measured when nothing else ran, corrected by what steps have taken since.
 *
 * The logarithm of the time of a pass over r rows is taken to be
 *
 *      log table[r] + common + own(r) + after e^(-k / LASTS) + noise
 *
 * `common` follows a random walk: other programs, clients of the same machine. own(r) is what the table has wrong about r rows
 * beside others; it is linear between some row counts (knots) and alike at neighbours. `after` is what drafts leave behind for
 * the k-th plain step after them, another thing each time: weights that have lost their place in a cache
 * (docs/performance.md). A Kalman filter (Kalman 1960) over these knows how sure each is, so that a machine that gets slower
 * while all passes have one size does not count as a slower size, and a size that is seen after a long time does not count as a
 * slower machine. Rows of a prompt cost less than others (they share keys, and most have no logits), so a step that has them
 * tells nothing of rows; nor do the first two after a sequence has ended, which take up to half as long again where its client
 * runs on the same processors.
 *
 * A draft is priced by its levels and tokens, by `common` and a factor of its own; what is read before it is priced as so many
 * tokens and by another one, since many at once are cheaper. `rest` is the mean of what a step takes besides: verification,
 * events, waking those who read them. A step that took far longer than its price counts as less, so a scheduler's pause moves
 * the prices little.
 *
 * Such prices are off, by more than the two best choices differ (docs/load.md): they are of usual steps, of which some take far
 * longer; the best of many lengths is often one that is priced too low; and a kind of steps that is only tried now and then is
 * a prediction. So what steps take of their prices is learned too, for plain steps and for those that draft: of a run of one
 * kind, and of the first steps of a run by the prices from before it. From one run to the next that is noise, and its mean is
 * what can be known (wg_row_timing_bias).
 *
 * Prices depend on times alone, never on tokens or probabilities. */
#ifndef WG_CORE_SCHED_ROW_TIMING_H
#define WG_CORE_SCHED_ROW_TIMING_H

#include "core/sched/row_budget.h"

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

/* What steps of a kind took of their prices. */
typedef struct wg_row_bias {
    double within; /* of those just before each, in a run */
    double across; /* first steps of a run, of the prices from before it */
    double runs;   /* that `across` is the mean of, by and by */
} wg_row_bias;

typedef struct wg_row_timing {
    wg_row_costs costs;            /* the prices; their table is `live` */
    double *live;                  /* (rows) owned */
    double *table;                 /* (rows) owned: as given */
    double level, token;           /* as given */
    double read;                   /* seconds of a token that a draft model reads, having missed it */
    int knot[WG_ROW_KNOTS], knots; /* row counts, rising from 1 to the table's last */
    double state[WG_ROW_STATES], covariance[WG_ROW_STATES][WG_ROW_STATES];
    double alike[WG_ROW_KNOTS]; /* the covariance of own at knots so far apart, before any step */
    double draft_spent, draft_tabled, read_spent, read_tabled, rest_sum, steps;
    int sequences;           /* of the last step without a prompt */
    int since_end;           /* steps since there were fewer than before; counted to 2 */
    int since_draft;         /* steps; 0: the last one; counted to 1000 */
    wg_row_bias bias[2];     /* of plain steps; of those that draft */
    int run;                 /* the kind of the last steps: 0, 1; -1: none yet */
    wg_row_costs before;     /* the prices from before this run, */
    double *before_pass;     /* (rows) owned: and their passes */
    double *hope;            /* (rows) owned: wg_row_timing_hope */
    double took, due, first; /* of the run's first steps: seconds, by `before`; how many; -1: no more */
} wg_row_timing;

wg_status wg_row_timing_open(wg_row_timing *t, const wg_row_costs *costs, wg_error *err); /* the table is copied; ENOMEM */
void wg_row_timing_close(wg_row_timing *t);
/* A step whose pass has no rows or was not timed tells nothing. Never allocates. O(rows + knots^2). */
void wg_row_timing_add(wg_row_timing *t, const wg_row_step *step);
/* By how much prices let drafts look better than they are, tokens per time beside plain decoding: below 1 if so. drafts: they
 * go on, and plain decoding is tried now and then; else the other way round. */
double wg_row_timing_bias(const wg_row_timing *t, bool drafts);

/* Into t->hope: passes as cheap as they may well be, their prices less two deviations each, beyond that of the size that is
 * known best. What is planned by these now and then finds out about sizes that only seem dear. O(rows). */
void wg_row_timing_hope(wg_row_timing *t);

#endif
