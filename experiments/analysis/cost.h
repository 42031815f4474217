/* SPDX-License-Identifier: MIT
 * The cost model: what a pass of a model takes on this machine, fitted to a short calibration. The form is linear in what a
 * pass reads and does beyond its weights (METHODS C7), with a roofline that is measured instead of assumed:
 *
 *      T(rows, context, sequences) = base(rows) + key * rows * (context - near) + sequence * (sequences - 1)
 *
 * base: straight lines between the numbers of rows that were timed after `near` tokens, never falling; past the last the last
 * line goes on. It is flat while a pass is bound by the weights it reads and rises once it is bound by arithmetic. key: of one
 * row that sees one key more. sequence: of rows in one more sequence instead of one more row of the same.
 *
 * A prediction says what a step takes when its draft fares as known or assumed: tokens per pass over seconds per pass, against
 * plain decoding (METHODS C1). Its error is the calibration's, not that of the acceptance it was told. */
#ifndef WG_EXPERIMENTS_ANALYSIS_COST_H
#define WG_EXPERIMENTS_ANALYSIS_COST_H

#include <jansson.h>

#include "core/model/lm.h"

enum { WG_COST_KNOTS = 16 };

typedef struct wg_cost {
    int knots, rows[WG_COST_KNOTS]; /* ascending, the first is 1 */
    double seconds[WG_COST_KNOTS];
    double near, key, sequence;
    double error; /* of a pass, relative: 1.58 IQR / (median sqrt(n)) of repeats (McGill et al. 1978), the mean of the knots */
} wg_cost;

/* A pass that was timed: the median of its repeats and that median's relative error. */
typedef struct wg_timed {
    int rows, context, sequences;
    double seconds, error;
} wg_timed;

/* Fits the form. Timings of one sequence after the least context make the base; those further on `key` (by least squares
 * through the base), those of several sequences `sequence`. Neither is negative. EINVAL without a timing of one row. */
wg_status wg_cost_fit(wg_cost *c, const wg_timed *t, int n, wg_error *err);

/* Times passes of a model over up to `rows` rows, after few tokens and after `context`, of one sequence and of `sequences`
 * (1 .. 64), in a cache of its own, and fits. The model keeps its place in its own cache. Five rounds or more a size. */
wg_status wg_cost_measure(wg_cost *c, wg_lm *lm, int rows, int context, int sequences, wg_error *err);

double wg_cost_pass(const wg_cost *c, double rows, double context, double sequences); /* seconds */

json_t *wg_cost_json(const wg_cost *c);
bool wg_cost_read(const json_t *v, wg_cost *c); /* false: not what wg_cost_json writes */

/* Seconds of a step, by part. */
typedef struct wg_step_cost {
    double draft, verify, rest;
} wg_step_cost;

/* A speed-up over plain decoding, with the range that the errors of its parts leave. */
typedef struct wg_predicted {
    double speedup, lo, hi;
} wg_predicted;

/* What a calibration does not see: other clocks later, drafts that come dearer, costs that are not linear. As a logarithm, the
 * 95th percentile of |measured / predicted| over 163 cells that were published (results/README.md, "The cost model"). */
#define WG_COST_MODEL_ERROR 0.17

/* tau tokens in a step against one token in a plain step. step_error: relative, of draft and rest; pass_error: of passes. The
 * range adds the model's own error to theirs, as if independent. */
wg_predicted wg_cost_speedup(double tau, const wg_step_cost *step, const wg_step_cost *plain, double pass_error,
                             double step_error);

/* Why a measured speed-up is not the predicted one, in percent of the speed-up (as logarithms, so the parts add up to
 * `total`): each phase's share of the step's surprise, and the plain step's own. Positive: faster than predicted. */
typedef struct wg_residual {
    double draft, verify, rest, plain, total;
} wg_residual;
wg_residual wg_cost_residual(const wg_step_cost *predicted, const wg_step_cost *measured, double plain_predicted,
                             double plain_measured);

#endif
