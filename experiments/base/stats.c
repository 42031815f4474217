/* SPDX-License-Identifier: MIT
 * Ratios of totals and their bootstrap. */
#include "experiments/base/stats.h"

#include <math.h>
#include <stdlib.h>

#include "kernels/philox.h"

typedef struct totals {
    double a, b, c, d;
} totals;

static void add(totals *t, const wg_ratio *r, int i, double w)
{
    t->a += w * r->a[i];
    t->b += w * r->b[i];
    if (r->c) t->c += w * r->c[i];
    if (r->c) t->d += w * r->d[i];
}

static double value(const totals *t, const wg_ratio *r)
{
    if (!(t->b > 0)) return NAN;
    if (!r->c) return t->a / t->b;
    return t->c > 0 && t->d > 0 ? t->a / t->b / (t->c / t->d) : NAN;
}

static totals total(const wg_ratio *r)
{
    totals t = { 0 };
    for (int i = 0; i < r->n; i++) add(&t, r, i, 1);
    return t;
}

double wg_ratio_value(const wg_ratio *r)
{
    const totals t = total(r);
    return value(&t, r);
}

double wg_normal_cdf(double x) { return 0.5 * erfc(-x * M_SQRT1_2); }

/* Newton's method from 0 on a bracket: the CDF is smooth and this is called twice per interval. */
double wg_normal_quantile(double p)
{
    double lo = -40, hi = 40, x = 0;
    for (int i = 0; i < 200 && hi - lo > 1e-14 * (1 + fabs(x)); i++) {
        const double f = wg_normal_cdf(x) - p;
        if (f > 0) hi = x;
        else lo = x;
        const double next = x - f * 2.5066282746310002 * exp(0.5 * x * x);
        x = next > lo && next < hi ? next : 0.5 * (lo + hi);
    }
    return x;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double sorted_quantile(const double *v, int n, double q)
{
    const double at = q * (n - 1);
    const int i = (int)floor(at);
    return i + 1 < n ? v[i] + (at - i) * (v[i + 1] - v[i]) : v[n - 1];
}

double wg_quantile(double *v, int n, double q)
{
    if (n == 0) return NAN;
    qsort(v, (size_t)n, sizeof *v, by_value);
    return sorted_quantile(v, n, q);
}

/* The statistic on resample k: n prompts drawn with replacement. Four words of Philox are two draws. */
static double resample(const wg_ratio *r, uint64_t seed, int k)
{
    totals t = { 0 };
    for (int i = 0; i < r->n; i += 2) {
        const wg_philox x = wg_philox_at(seed, (uint32_t)i / 2, (uint32_t)k, 0, 0);
        add(&t, r, (int)(wg_philox_double(x.v[0], x.v[1]) * r->n), 1);
        if (i + 1 < r->n) add(&t, r, (int)(wg_philox_double(x.v[2], x.v[3]) * r->n), 1);
    }
    return value(&t, r);
}

/* Acceleration: a sixth of the skewness of the leave-one-out values. */
static double acceleration(const wg_ratio *r)
{
    const totals all = total(r);
    double mean = 0, cube = 0, square = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < r->n; i++) {
            totals t = all;
            add(&t, r, i, -1);
            const double v = value(&t, r);
            if (!isfinite(v)) return 0;
            if (pass == 0) mean += v / r->n;
            else square += (mean - v) * (mean - v), cube += (mean - v) * (mean - v) * (mean - v);
        }
    return square > 0 ? cube / (6 * pow(square, 1.5)) : 0;
}

/* The corrected level at which BCa reads the resamples for a nominal level. */
static double corrected(double level, double bias, double a)
{
    const double z = bias + wg_normal_quantile(level), q = wg_normal_cdf(bias + z / (1 - a * z));
    return isfinite(q) ? q : level;
}

bool wg_ratio_interval(const wg_ratio *r, uint64_t seed, double *scratch, double *lo, double *hi)
{
    const double here = wg_ratio_value(r);
    if (r->n < 2 || !isfinite(here)) return false;
    int n = 0, below = 0, equal = 0;
    for (int k = 0; k < WG_RESAMPLES; k++) {
        const double v = resample(r, seed, k);
        if (!isfinite(v)) continue; /* a resample in which the baseline produced nothing */
        scratch[n++] = v;
        below += v < here;
        equal += v == here;
    }
    if (n < WG_RESAMPLES / 2) return false;
    qsort(scratch, (size_t)n, sizeof *scratch, by_value);
    const double share = (below + 0.5 * equal) / n;
    double q_lo = 0.025, q_hi = 0.975;
    if (share > 0 && share < 1) {
        const double bias = wg_normal_quantile(share), a = acceleration(r);
        q_lo = corrected(q_lo, bias, a);
        q_hi = corrected(q_hi, bias, a);
    }
    *lo = sorted_quantile(scratch, n, q_lo);
    *hi = sorted_quantile(scratch, n, q_hi);
    return true;
}
