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
 * and at least 1: a few long prompts, or a few that differ, carry the variance of as few. A prompt
 * whose values are all 0 has not been measured and does not count. False with fewer than WG_INTERVAL_PROMPTS prompts, or when a
 * total is not positive with some prompt left out. */
bool wg_ratio_log(const wg_ratio *x, const wg_ratio *y, wg_log_ratio *out);

/* ---- how runs differ

 * The jackknife over prompts takes prompts for independent. On a machine whose speed drifts neighbours are not, and the ratio
 * of one run is further from that of another than its prompts say. */

/* The standard deviation of log S between runs of an undisturbed machine (memory and code lie elsewhere), an assumption that
 * repeated runs replace; and the share of a drift that interleaving leaves (experiments.md: measured 0.06). */
#define WG_RUN_ERROR 0.01
#define WG_DRIFT_LEFT 0.1

/* Parts of a run that follow each other in time, for what the requests of one run can say of its drift. */
enum { WG_RUN_BLOCKS = 4 };

/* A variance of a log ratio and its degrees of freedom; INFINITY: known. */
typedef struct wg_between_runs {
    double variance, freedom;
} wg_between_runs;

/* Of the speed-up of one run, `prompts`, from the same totals by block, `blocks` (WG_RUN_BLOCKS; a block of zeros was not
 * measured): what the jackknife over blocks has more than that over prompts, and WG_RUN_ERROR^2 + (WG_DRIFT_LEFT d)^2, d the
 * logarithm of the largest a / b of a block over the smallest (the baseline's seconds per token). Runs of fewer than two
 * prompts a block have no variance over blocks, and a drift that is slower than the run is not seen by it. freedom: of the
 * interval, by the blocks; INFINITY where they say nothing. */
wg_between_runs wg_ratio_between(const wg_ratio *prompts, const wg_ratio *blocks);

/* The 95 % interval exp(log +- t sqrt(variance)) of a ratio, with what is known between runs (NULL: nothing); false as
 * wg_ratio_log. Degrees of freedom: the fewer of those over prompts and those of `between`, each with the known variance
 * counted. */
bool wg_ratio_run_interval(const wg_ratio *r, const wg_between_runs *between, double *lo, double *hi);

/* The 95 % interval over prompts alone: wg_ratio_run_interval without anything between runs. */
bool wg_ratio_interval(const wg_ratio *r, double *lo, double *hi);

/* The 95 % interval of sum a / sum b over n prompts, where sum a may be 0 or negative (b >= 0): value +- t sqrt(variance), by
 * the jackknife of the ratio itself. Prompts with b = 0 do not count; false with fewer than WG_INTERVAL_PROMPTS others. */
bool wg_ratio_interval_additive(const double *a, const double *b, int n, double *lo, double *hi);

/* The interval as [lo, hi], or null. And both in an object: NAME and NAME_ci. */
json_t *wg_ratio_interval_json(const wg_ratio *r);
void wg_ratio_set_json(json_t *o, const char *name, const wg_ratio *r);
void wg_ratio_set_run_json(json_t *o, const char *name, const wg_ratio *r, const wg_between_runs *between);

/* Sorts v and returns its q-quantile, interpolated between order statistics (type 7); NaN for n == 0. */
double wg_quantile(double *v, int n, double q);

/* Student's t with `freedom` > 0 degrees of freedom, not necessarily a whole number: the chance of a value beyond +-t, and the
 * t beyond which lies this chance (0 < chance <= 1). */
double wg_student_beyond(double t, double freedom);
double wg_student_t(double chance, double freedom);

/* The quantile of the normal distribution, 0 < p < 1. */
double wg_normal_quantile(double p);

#endif
