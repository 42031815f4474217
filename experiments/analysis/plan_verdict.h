/* SPDX-License-Identifier: MIT
 * The verdict whether speculation pays, from speed-ups of drafts over plain decoding on the same texts. */
#ifndef WG_EXPERIMENTS_ANALYSIS_PLAN_VERDICT_H
#define WG_EXPERIMENTS_ANALYSIS_PLAN_VERDICT_H

#include "experiments/analysis/verdict.h"

/* The least speed-up that is worth a draft. */
#define WG_PLAN_WORTH 1.05

/* One draft: tokens per second over plain decoding's, from totals, and its 95 % interval (NaN: none). */
typedef struct wg_plan_speed {
    double speedup, lo, hi;
    wg_contrast of; /* log of the speed-up; set by wg_plan_answer_of: p and holm */
} wg_plan_speed;

/* Computes the speed-up from seconds and tokens of n texts, by the draft and by plain decoding. The variance is that of the
 * jackknife over texts and WG_RUN_ERROR^2 between runs (verdict.h). */
wg_plan_speed wg_plan_speed_of(const double *seconds, const double *tokens, const double *plain_seconds,
                               const double *plain_tokens, int n);

/* UNDECIDED: neither of the others. SPECULATE: some draft is faster, by Holm's adjustment over all n, so its interval lies
 * above 1. PLAIN: the interval of every draft ends below WG_PLAN_WORTH. */
typedef enum wg_plan_answer { WG_PLAN_UNDECIDED, WG_PLAN_PLAIN, WG_PLAN_SPECULATE } wg_plan_answer;

/* *best: with SPECULATE the fastest of the drafts that are faster, else the one with the largest speed-up; -1: none was
 * measured. */
wg_plan_answer wg_plan_answer_of(wg_plan_speed *v, int n, int *best);

#endif
