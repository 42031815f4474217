/* SPDX-License-Identifier: MIT
 * Variance between runs, Student's t and Holm's adjustment. */
#include "experiments/analysis/verdict.h"

#include <math.h>

wg_between_runs wg_between_single_runs(double d)
{
    const double left = WG_DRIFT_LEFT * d;
    return (wg_between_runs){ 2 * WG_RUN_ERROR * WG_RUN_ERROR + left * left, INFINITY };
}

wg_between_runs wg_between_repeated(double squares, int cells, int freedom, const int k[2])
{
    const double s2 = squares / ((double)cells * freedom);
    return (wg_between_runs){ s2 * (1. / k[0] + 1. / k[1]), freedom * cells / (1 + (cells - 1) / 4.) };
}

static double variance(const wg_contrast *c) { return c->prompts.variance + c->between.variance; }

static double freedom(const wg_contrast *c)
{
    const double v = c->prompts.variance, w = c->between.variance, both = v + w;
    const double spread = v * v / c->prompts.freedom + w * w / c->between.freedom;
    return spread > 0 ? fmin(both * both / spread, 1e6) : 1e6; /* more is the normal distribution */
}

double wg_contrast_half(const wg_contrast *c) { return wg_student_t(0.05, freedom(c)) * sqrt(variance(c)); }

void wg_judge(wg_contrast *c, int n)
{
    int known = 0;
    for (int i = 0; i < n; i++) {
        const double v = variance(&c[i]);
        c[i].p = v > 0 ? wg_student_beyond(c[i].prompts.log / sqrt(v), freedom(&c[i])) : isnan(v) ? NAN : c[i].prompts.log == 0;
        c[i].holm = NAN;
        known += isfinite(c[i].p);
    }
    double least = 0;
    for (int rank = 0; rank < known; rank++) {
        int next = -1; /* the smallest p that is not adjusted yet */
        for (int i = 0; i < n; i++)
            if (isfinite(c[i].p) && isnan(c[i].holm) && (next < 0 || c[i].p < c[next].p)) next = i;
        least = fmin(1, fmax(least, (known - rank) * c[next].p));
        c[next].holm = least;
    }
}

const char *wg_contrast_verdict(const wg_contrast *c)
{
    if (isnan(c->holm)) return "unknown";
    return c->holm > 0.05 ? "undecided" : c->prompts.log > 0 ? "faster" : "slower";
}

double wg_prompts_needed(const wg_contrast *c, int family)
{
    const double d = c->prompts.log, z = wg_normal_quantile(1 - 0.025 / family) + wg_normal_quantile(0.8);
    const double room = d * d / (z * z) - c->between.variance;
    return room > 0 ? ceil(c->n * c->prompts.variance / room) : NAN;
}
