/* SPDX-License-Identifier: MIT
 * Statistics of a run. The sampling unit is the prompt, because steps within a prompt are correlated. Headline numbers are
 * ratios of totals, never means of ratios; a bootstrap interval resamples prompts, both sides of a pair together. */
#ifndef WG_EXPERIMENTS_BASE_STATS_H
#define WG_EXPERIMENTS_BASE_STATS_H

#include <stdbool.h>
#include <stdint.h>

enum { WG_RESAMPLES = 2000 };

/* A ratio of totals over n prompts, (sum a / sum b) / (sum c / sum d); c and d may be NULL for sum a / sum b. */
typedef struct wg_ratio {
    const double *a, *b, *c, *d;
    int n;
} wg_ratio;

/* The value; NaN when a denominator is 0. */
double wg_ratio_value(const wg_ratio *r);

/* The 95 % interval by the bias-corrected and accelerated bootstrap (Efron 1987) over prompts, all series resampled together.
 * Draws are Philox at (seed; resample, draw), so an interval is a function of its data. False with fewer than two prompts or
 * when the statistic is undefined on them. `scratch` holds WG_RESAMPLES doubles. */
bool wg_ratio_interval(const wg_ratio *r, uint64_t seed, double *scratch, double *lo, double *hi);

/* Sorts v and returns its q-quantile, interpolated between order statistics (type 7); NaN for n == 0. */
double wg_quantile(double *v, int n, double q);

/* The normal distribution and its inverse (0 < p < 1). */
double wg_normal_cdf(double x);
double wg_normal_quantile(double p);

#endif
