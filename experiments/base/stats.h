/* SPDX-License-Identifier: MIT
 * Statistics of a run. The sampling unit is the prompt, because steps within a prompt are correlated. Headline numbers are
 * ratios of totals, never means of ratios; the jackknife interval of a ratio leaves out one prompt at a time, on both sides
 * of a pair together. */
#ifndef WG_EXPERIMENTS_BASE_STATS_H
#define WG_EXPERIMENTS_BASE_STATS_H

#include <jansson.h>
#include <stdbool.h>

enum { WG_INTERVAL_PROMPTS = 5 }; /* fewer prompts have no interval */

/* A ratio of totals over n prompts, (sum a / sum b) / (sum c / sum d); c and d may be NULL for sum a / sum b. */
typedef struct wg_ratio {
    const double *a, *b, *c, *d;
    int n;
} wg_ratio;

/* The value; NaN when a denominator is 0. */
double wg_ratio_value(const wg_ratio *r);

/* log(ratio), its jackknife variance, and the degrees of freedom of Student's t for (estimate - truth) / sqrt(variance). */
typedef struct wg_log_ratio {
    double log, variance, freedom;
} wg_log_ratio;

/* Estimates log(x), or log(x / y) where y is not NULL and has the same prompts. The pseudo-values of the jackknife (Tukey 1958)
 * are n L - (n-1) L(i), L(i) without prompt i. Degrees of freedom are the smallest of
 *   n - 1;
 *   m - 1, m = 1 / sum h_i^2 the effective number of prompts (Kish 1965), h_i prompt i's mean share of the totals;
 *   2 (sum z_i^2)^2 / sum z_i^4 (Satterthwaite 1946), z_i the centred pseudo-values;
 * and at least 1, since a variance that few prompts carry has as few degrees of freedom. A prompt whose values are all 0 has
 * not been measured and does not count. False with fewer than WG_INTERVAL_PROMPTS prompts, or when a total is not positive with
 * some prompt left out. */
bool wg_ratio_log(const wg_ratio *x, const wg_ratio *y, wg_log_ratio *out);

/* ---- differences between runs
 *
 * The jackknife over prompts assumes independent prompts. On a machine whose speed drifts, neighbours are not, and ratios of
 * runs differ by more than their prompts show. */

/* The standard deviation of log S between runs of an undisturbed machine (memory and code lie elsewhere), an assumption that
 * repeated runs replace; and the share of a drift that interleaving leaves (experiments.md: measured 0.06). */
#define WG_RUN_ERROR 0.01
#define WG_DRIFT_LEFT 0.1

/* Consecutive parts of a run, from which one run's drift is estimated. */
enum { WG_RUN_BLOCKS = 4 };

/* A variance of a log ratio and its degrees of freedom; INFINITY: an exact variance. */
typedef struct wg_between_runs {
    double variance, freedom;
} wg_between_runs;

/* The variance between runs of one run's speed-up. prompts: its totals by prompt; blocks: the same by block (WG_RUN_BLOCKS; a
 * block of zeros was not measured). It is the excess of the jackknife over blocks above that over prompts, plus WG_RUN_ERROR^2
 * + (WG_DRIFT_LEFT d)^2, d the log of the largest over the smallest a / b of a block (the baseline's seconds per token). With
 * fewer than two prompts a block there is no variance over blocks; drift slower than the run is not seen. freedom: the blocks';
 * INFINITY: unknown. */
wg_between_runs wg_ratio_between(const wg_ratio *prompts, const wg_ratio *blocks);

/* The 95 % interval exp(log +- t sqrt(variance)) of a ratio, with the variance between runs (NULL: none); false as
 * wg_ratio_log. Degrees of freedom: the smaller of those over prompts and of `between`, the former scaled up for the variance
 * that is known exactly. */
bool wg_ratio_run_interval(const wg_ratio *r, const wg_between_runs *between, double *lo, double *hi);

/* The 95 % interval over prompts alone: wg_ratio_run_interval without a variance between runs. */
bool wg_ratio_interval(const wg_ratio *r, double *lo, double *hi);

/* The 95 % interval of sum a / sum b over n prompts, where sum a may be 0 or negative (b >= 0): value +- t sqrt(variance), by
 * the jackknife of the ratio itself. Prompts with b = 0 do not count; false with fewer than WG_INTERVAL_PROMPTS others. */
bool wg_ratio_interval_additive(const double *a, const double *b, int n, double *lo, double *hi);

/* The interval as [lo, hi], or null; and ratio and interval as members NAME and NAME_ci of an object. */
json_t *wg_ratio_interval_json(const wg_ratio *r);
void wg_ratio_set_json(json_t *o, const char *name, const wg_ratio *r);
void wg_ratio_set_run_json(json_t *o, const char *name, const wg_ratio *r, const wg_between_runs *between);

/* Sorts v and returns its q-quantile, interpolated between order statistics (type 7); NaN for n == 0. */
double wg_quantile(double *v, int n, double q);

/* Student's t with `freedom` > 0 degrees of freedom, not necessarily a whole number: the probability of a value beyond +-t, and
 * the t for this probability (0 < chance <= 1). */
double wg_student_beyond(double t, double freedom);
double wg_student_t(double chance, double freedom);

/* The quantile of the normal distribution, 0 < p < 1. */
double wg_normal_quantile(double p);

#endif
