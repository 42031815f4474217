/* SPDX-License-Identifier: MIT
 * The costs that a run measures before its timed part: passes of the target by a calibration (cost.h), drafting and the rest of
 * a step by the warm-up of each arm. cost.json of the folder stores them, so that a resumed run predicts with the same
 * numbers. */
#ifndef WG_EXPERIMENTS_RUN_CALIBRATE_H
#define WG_EXPERIMENTS_RUN_CALIBRATE_H

#include "core/engine/engine.h"
#include "experiments/analysis/cost.h"

enum { WG_WARM_STEPS = 64 };

/* The steps of an arm's warm-up. Seconds are a sequence's share of a step. */
typedef struct wg_warm {
    int n, rows; /* rows: most rows of one sequence in a pass, probes included */
    double draft[WG_WARM_STEPS], rest[WG_WARM_STEPS];
} wg_warm;

/* Adds a step of k sequences. seconds: the step's, without `measure`. rows: those of the largest sequence. */
void wg_warm_step(wg_warm *w, const wg_phases *step, double seconds, int k, int rows);

/* The costs of an arm's step besides the target's pass, in seconds: medians. first: the first draft of a request, which reads
 * the prompt. error: relative. */
typedef struct wg_arm_cost {
    double first, draft, rest, error;
} wg_arm_cost;
wg_arm_cost wg_warm_cost(const wg_warm *w);

/* The measured costs of a cell; `known` false: none. */
typedef struct wg_cell_cost {
    bool known;
    wg_cost pass;
    wg_arm_cost arm, plain;
    int batch;
} wg_cell_cost;

/* An entry of cost.json for a group: its target's passes and its arms; cell[i] is -1 for plain decoding. */
json_t *wg_calibration_json(int group, int batch, const wg_cost *pass, const int *cell, const wg_warm *warm, int arms);

/* The costs of a cell in a group, from the entries. */
wg_cell_cost wg_calibration_of(const json_t *groups, int group, int cell);

/* The outcome of a cell: tokens (tau) and rows (probes included) per pass, requests that drafted, passes, mean context in
 * tokens. wg_calibration_predict predicts the cell's speed-up from it; *step, *plain: predicted seconds. */
typedef struct wg_fared {
    double tau, rows, context, drafts, passes;
} wg_fared;
wg_predicted wg_calibration_predict(const wg_cell_cost *c, const wg_fared *f, wg_step_cost *step, wg_step_cost *plain);

#endif
