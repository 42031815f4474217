/* SPDX-License-Identifier: MIT
 * What a run learns about costs before it measures: passes of the target from a calibration (cost.h), drafting and the rest of
 * a step from each arm's warm-up. Kept in cost.json of the folder, so that a resumed run predicts with the same numbers. */
#ifndef WG_EXPERIMENTS_RUN_CALIBRATE_H
#define WG_EXPERIMENTS_RUN_CALIBRATE_H

#include "core/engine/engine.h"
#include "experiments/analysis/cost.h"

enum { WG_WARM_STEPS = 64 };

/* The steps of an arm's warm-up; seconds are shares of a sequence, as everywhere. */
typedef struct wg_warm {
    int n, rows; /* rows: the most that one sequence had in a pass, probes among them */
    double draft[WG_WARM_STEPS], rest[WG_WARM_STEPS];
} wg_warm;

/* Adds a step of k sequences. seconds: of all of it but `measure`. rows: of the sequence that had most. */
void wg_warm_step(wg_warm *w, const wg_phases *step, double seconds, int k, int rows);

/* An arm's step beside the target's pass: medians. first: of a request's first draft, which reads the prompt. */
typedef struct wg_arm_cost {
    double first, draft, rest, error;
} wg_arm_cost;
wg_arm_cost wg_warm_cost(const wg_warm *w);

/* All that is known of a cell; `known` false: nothing. */
typedef struct wg_cell_cost {
    bool known;
    wg_cost pass;
    wg_arm_cost arm, plain;
    int batch;
} wg_cell_cost;

/* A group's entry of cost.json: its target's passes and its arms, cell[i] -1 for plain decoding. */
json_t *wg_calibration_json(int group, int batch, const wg_cost *pass, const int *cell, const wg_warm *warm, int arms);

/* What the entries say of a cell in a group. */
wg_cell_cost wg_calibration_of(const json_t *groups, int group, int cell);

/* A prediction for a cell that fared like this: `rows` (probes too) and `tau` of a pass, `drafts` requests in `passes` passes,
 * after `context` tokens on average. *step, *plain: the seconds that were predicted. */
typedef struct wg_fared {
    double tau, rows, context, drafts, passes;
} wg_fared;
wg_predicted wg_calibration_predict(const wg_cell_cost *c, const wg_fared *f, wg_step_cost *step, wg_step_cost *plain);

#endif
