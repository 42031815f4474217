/* SPDX-License-Identifier: MIT
 * The pass cost: the time of a pass of a model on this machine, fitted to a short calibration. The form is linear in the
 * bytes and operations of a pass beyond its weights (methods.md, Expected speed), with a roofline that is measured, not
 * assumed:
 *
 *      T(rows, context, sequences) = base(rows) + key * rows * (context - near) + sequence * (sequences - 1)
 *
 * base: piecewise linear between the numbers of rows that were timed after `near` tokens, never decreasing; past the last
 * number the last segment is extended. It is flat while a pass is bound by the weights it reads and rises once it is bound
 * by arithmetic. key: the time of one row for one more key. sequence: the additional time of rows in one more sequence,
 * against rows of the same sequence.
 *
 * A prediction is the time of a step whose draft has a known or assumed acceptance: tokens per pass over seconds per pass,
 * against plain decoding (methods.md, Expected speed). Its error is the calibration's; the error of the acceptance is not
 * included. */
#ifndef WG_EXPERIMENTS_ANALYSIS_COST_H
#define WG_EXPERIMENTS_ANALYSIS_COST_H

#include <jansson.h>

#include "core/model/lm.h"

enum { WG_COST_KNOTS = 16 };

typedef struct wg_cost {
    int knots, rows[WG_COST_KNOTS]; /* ascending, the first is 1 */
    double seconds[WG_COST_KNOTS];
    double near, key, sequence;
    double error; /* relative error of a pass: 1.58 IQR / (median sqrt(n)) of repeats (McGill et al. 1978), mean over knots */
} wg_cost;

/* A timed pass: the median of its repeats and that median's relative error. */
typedef struct wg_timed {
    int rows, context, sequences;
    double seconds, error;
} wg_timed;

/* Fits the form. Timings of one sequence after the smallest context give `base`; those with a larger context give `key` (by
 * least squares through the base), those of several sequences `sequence`. Neither is negative. EINVAL without a timing of one
 * row. */
wg_status wg_cost_fit(wg_cost *c, const wg_timed *t, int n, wg_error *err);

/* Times passes of a model over up to `rows` rows, after few tokens and after `context`, of one sequence and of `sequences`
 * (1 .. 64), in a cache of its own, and fits. The model's own cache is unchanged. At least five rounds per size. */
wg_status wg_cost_measure(wg_cost *c, wg_lm *lm, int rows, int context, int sequences, wg_error *err);

double wg_cost_pass(const wg_cost *c, double rows, double context, double sequences); /* seconds */

json_t *wg_cost_json(const wg_cost *c);
bool wg_cost_read(const json_t *v, wg_cost *c); /* false: not the form of wg_cost_json */

/* Seconds of a step, by part. */
typedef struct wg_step_cost {
    double draft, verify, rest;
} wg_step_cost;

/* A speed-up over plain decoding, with the range given by the errors of its terms. */
typedef struct wg_predicted {
    double speedup, lo, hi;
} wg_predicted;

/* The error of the model itself, due to later clock changes, costlier drafts and nonlinear costs. As a logarithm, the 95th
 * percentile of |measured / predicted| over 163 published cells (results/README.md, "The cost model"). */
#define WG_COST_MODEL_ERROR 0.17

/* The speed-up with tau tokens per step against one token per plain step. step_error: relative, of draft and rest;
 * pass_error: of passes. The range combines these with the model's own error as independent errors. */
wg_predicted wg_cost_speedup(double tau, const wg_step_cost *step, const wg_step_cost *plain, double pass_error,
                             double step_error);

/* The deviation of a measured speed-up from the predicted one, in percent of the speed-up (as logarithms, so the terms add
 * up to `total`): each phase's share of the step's deviation, and the plain step's. Positive: faster than predicted. */
typedef struct wg_residual {
    double draft, verify, rest, plain, total;
} wg_residual;
wg_residual wg_cost_residual(const wg_step_cost *predicted, const wg_step_cost *measured, double plain_predicted,
                             double plain_measured);

#endif
