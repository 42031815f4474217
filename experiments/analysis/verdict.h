/* SPDX-License-Identifier: MIT
 * Verdicts on the speed-ups of two samples of runs. The model of the speed-up S of a cell over the plain decoding that ran
 * between its requests:
 *
 *     log S(run, prompt) = log S + prompt + run + noise
 *
 * D = log(S_B / S_A) is estimated from totals. Its variance has two parts: over prompts, by the jackknife (both runs decode the
 * same prompts; noise included), and between runs, which one run cannot show.
 *
 * Between runs, with several runs of a sample: s^2 (1/k_A + 1/k_B), s^2 the variance of the runs' log S in their sample, pooled
 * over samples and cells. The cells of a run share a baseline that is as noisy as they are, so their errors correlate by 1/2,
 * and C cells with f degrees of freedom each have f C / (1 + (C - 1) / 4) together, instead of f C.
 *
 * Between runs, with one run of each: 2 WG_RUN_ERROR^2 + (WG_DRIFT_LEFT d)^2, d the log ratio of the two baselines' time per
 * token; or, where that is more, the first formula over the repeats inside the two runs. */
#ifndef WG_EXPERIMENTS_ANALYSIS_VERDICT_H
#define WG_EXPERIMENTS_ANALYSIS_VERDICT_H

#include <jansson.h>

#include "experiments/base/stats.h"

wg_between_runs wg_between_single_runs(double baseline_log_ratio);

/* `squares`: the sum over cells and runs of squared deviations of log S from the mean of its sample and cell; freedom: the
 * runs less the samples; k: how many runs of either sample are compared. The same for the repeats of single runs. */
wg_between_runs wg_between_repeated(double squares, int cells, int freedom, const int k[2]);

/* One comparison. An unknown prompts.variance (NaN) leaves everything unknown. */
typedef struct wg_contrast {
    wg_log_ratio prompts;    /* D, its variance over prompts */
    wg_between_runs between; /* variance between runs */
    int n;                   /* prompts */
    double p, holm;          /* set by wg_judge: two-sided, for this contrast alone and for all together */
} wg_contrast;

/* Half the 95 % interval of D, for this contrast alone: Student's t, degrees of freedom by Satterthwaite. */
double wg_contrast_half(const wg_contrast *c);

/* Sets p and, by Holm (1979), the adjusted holm of n contrasts: those with holm <= 0.05 are decided, and the chance that any of
 * them is wrong about equal speed-ups is at most 5 %. */
void wg_judge(wg_contrast *c, int n);

/* "faster", "slower", "undecided", or "unknown" without an interval. */
const char *wg_contrast_verdict(const wg_contrast *c);

/* The prompts with which a difference as large as the measured D is decided in 80 of 100 comparisons of `family` contrasts:
 *     n V / (D^2 / (z(1 - 0.025 / family) + z(0.8))^2 - W),
 * V the variance over the n prompts, W that between runs, z normal quantiles. NaN when W alone is too large. */
double wg_prompts_needed(const wg_contrast *c, int family);

#endif
