/* SPDX-License-Identifier: MIT
 * Ratios of totals and their jackknife; Student's t by the incomplete beta function. */
#include "experiments/base/stats.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/base/json_number.h"

/* ---- distributions ----------------------------------------------------------------------------------------------- */

/* The continued fraction of the incomplete beta function (DLMF 8.17.22), by Lentz's method. */
static double beta_fraction(double a, double b, double x)
{
    double c = 1, d = 1 / (1 - (a + b) * x / (a + 1)), h = d;
    for (int m = 1; m < 1000; m++) {
        const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        d = 1 / (1 + even * d);
        c = 1 + even / c;
        h *= c * d;
        const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        d = 1 / (1 + odd * d);
        c = 1 + odd / c;
        h *= c * d;
        if (fabs(c * d - 1) < 1e-15) break;
    }
    return h;
}

/* I_x(a, b), regularised; y is 1 - x, given apart because it may be tiny. */
static double incomplete_beta(double a, double b, double x, double y)
{
    if (!(x > 0)) return 0;
    if (!(y > 0)) return 1;
    const double front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log(y));
    if (x < (a + 1) / (a + b + 2)) return front * beta_fraction(a, b, x) / a;
    return 1 - front * beta_fraction(b, a, y) / b;
}

double wg_student_beyond(double t, double freedom)
{
    const double all = freedom + t * t;
    if (isinf(t)) return 0;
    return incomplete_beta(freedom / 2, 0.5, freedom / all, t * t / all);
}

/* Bisection of log t; one degree of freedom has the largest t, about 2 / (pi chance). */
double wg_student_t(double chance, double freedom)
{
    double lo = -80, hi = 80;
    if (chance >= 1) return 0;
    for (int i = 0; i < 100; i++) {
        const double middle = (lo + hi) / 2;
        if (wg_student_beyond(exp(middle), freedom) > chance) lo = middle;
        else hi = middle;
    }
    return exp((lo + hi) / 2);
}

/* Bisection; called a few times per comparison. */
double wg_normal_quantile(double p)
{
    double lo = -40, hi = 40;
    for (int i = 0; i < 100; i++) {
        const double middle = (lo + hi) / 2;
        if (0.5 * erfc(-middle * M_SQRT1_2) < p) lo = middle;
        else hi = middle;
    }
    return (lo + hi) / 2;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double wg_quantile(double *v, int n, double q)
{
    if (n == 0) return NAN;
    qsort(v, (size_t)n, sizeof *v, by_value);
    const double at = q * (n - 1);
    const int i = (int)floor(at);
    return i + 1 < n ? v[i] + (at - i) * (v[i + 1] - v[i]) : v[n - 1];
}

/* ---- ratios ------------------------------------------------------------------------------------------------------ */

static double total(const double *v, int n)
{
    double s = 0;
    for (int i = 0; i < n; i++) s += v[i];
    return s;
}

double wg_ratio_value(const wg_ratio *r)
{
    const double a = total(r->a, r->n), b = total(r->b, r->n);
    if (!(b > 0)) return NAN;
    if (!r->c) return a / b;
    const double c = total(r->c, r->n), d = total(r->d, r->n);
    return c > 0 && d > 0 ? a / b / (c / d) : NAN;
}

/* The series of a ratio or of a quotient of two, with the sign of their logarithms and their totals. */
enum { SERIES_MOST = 8 };
typedef struct series {
    const double *v[SERIES_MOST];
    double sign[SERIES_MOST], total[SERIES_MOST];
    int n;
} series;

static void add_series(series *s, const wg_ratio *r, double sign)
{
    const double *const v[] = { r->a, r->b, r->c, r->d };
    for (int k = 0; k < (r->c ? 4 : 2); k++) {
        s->v[s->n] = v[k];
        s->sign[s->n] = k == 0 || k == 3 ? sign : -sign;
        s->total[s->n++] = total(v[k], r->n);
    }
}

/* The logarithm without prompt i (-1: with all of them); not finite where a total is not positive. */
static double log_without(const series *s, int i)
{
    double sum = 0;
    for (int k = 0; k < s->n; k++) {
        const double rest = s->total[k] - (i < 0 ? 0 : s->v[k][i]);
        sum += rest > 0 ? s->sign[k] * log(rest) : NAN;
    }
    return sum;
}

/* The mean share of prompt i in the totals. */
static double share(const series *s, int i)
{
    double sum = 0;
    for (int k = 0; k < s->n; k++) sum += s->v[k][i] / s->total[k];
    return sum / s->n;
}

/* Degrees of freedom of n pseudo-values: stats.h has the formula. kish: sum of squared shares; square, fourth: sums of powers
 * of the centred pseudo-values. */
static double freedom_of(int n, double kish, double square, double fourth)
{
    const double few = fmin(n - 1, 1 / kish - 1);
    return fmax(1, fourth > 0 ? fmin(few, 2 * square * square / fourth) : few);
}

/* As wg_ratio_log, for at least `fewest` elements. */
static bool jackknife(const wg_ratio *x, const wg_ratio *y, int fewest, wg_log_ratio *out)
{
    series s = { .n = 0 };
    add_series(&s, x, 1);
    if (y) add_series(&s, y, -1);
    const double all = log_without(&s, -1);
    double sum = 0, kish = 0, square = 0, fourth = 0;
    int n = 0;
    if (!isfinite(all)) return false;
    for (int i = 0; i < x->n; i++) {
        const double h = share(&s, i);
        if (h == 0) continue;
        n++;
        sum += log_without(&s, i);
        kish += h * h;
    }
    if (n < fewest) return false;
    for (int i = 0; i < x->n; i++) {
        const double z = share(&s, i) > 0 ? (n - 1) * (sum / n - log_without(&s, i)) : 0;
        square += z * z;
        fourth += z * z * z * z;
    }
    if (!isfinite(square)) return false;
    *out = (wg_log_ratio){ .log = all, .variance = square / (n - 1) / n, .freedom = freedom_of(n, kish, square, fourth) };
    return true;
}

bool wg_ratio_log(const wg_ratio *x, const wg_ratio *y, wg_log_ratio *out) { return jackknife(x, y, WG_INTERVAL_PROMPTS, out); }

wg_between_runs wg_ratio_between(const wg_ratio *prompts, const wg_ratio *blocks)
{
    double least = INFINITY, most = 0, known = WG_RUN_ERROR * WG_RUN_ERROR;
    wg_log_ratio v, b;
    for (int i = 0; i < blocks->n; i++) {
        if (!(blocks->b[i] > 0)) continue;
        least = fmin(least, blocks->a[i] / blocks->b[i]);
        most = fmax(most, blocks->a[i] / blocks->b[i]);
    }
    if (least > 0 && most > least) known += WG_DRIFT_LEFT * WG_DRIFT_LEFT * log(most / least) * log(most / least);
    if (prompts->n < 2 * blocks->n || !wg_ratio_log(prompts, NULL, &v) || !jackknife(blocks, NULL, 3, &b) ||
        b.variance <= v.variance)
        return (wg_between_runs){ known, INFINITY };
    const double whole = (b.variance + known) / b.variance;
    return (wg_between_runs){ b.variance - v.variance + known, b.freedom * whole * whole };
}

bool wg_ratio_run_interval(const wg_ratio *r, const wg_between_runs *between, double *lo, double *hi)
{
    const wg_between_runs w = between ? *between : (wg_between_runs){ 0, INFINITY };
    wg_log_ratio e;
    if (!wg_ratio_log(r, NULL, &e)) return false;
    const double both = e.variance + w.variance, whole = e.variance > 0 ? both / e.variance : INFINITY;
    const double freedom = fmin(fmin(e.freedom * whole * whole, w.freedom), 1e6); /* more is the normal distribution */
    const double half = wg_student_t(0.05, freedom) * sqrt(both);
    *lo = exp(e.log - half);
    *hi = exp(e.log + half);
    return true;
}

bool wg_ratio_interval(const wg_ratio *r, double *lo, double *hi) { return wg_ratio_run_interval(r, NULL, lo, hi); }

bool wg_ratio_interval_additive(const double *a, const double *b, int n, double *lo, double *hi)
{
    const double of = total(a, n), by = total(b, n);
    double sum = 0, kish = 0, square = 0, fourth = 0;
    int counted = 0;
    for (int i = 0; i < n; i++) {
        if (!(b[i] > 0)) continue;
        counted++;
        sum += (of - a[i]) / (by - b[i]);
        kish += b[i] / by * (b[i] / by);
    }
    if (counted < WG_INTERVAL_PROMPTS || !isfinite(sum)) return false;
    for (int i = 0; i < n; i++) {
        const double z = b[i] > 0 ? (counted - 1) * (sum / counted - (of - a[i]) / (by - b[i])) : 0;
        square += z * z;
        fourth += z * z * z * z;
    }
    const double half = wg_student_t(0.05, freedom_of(counted, kish, square, fourth)) * sqrt(square / (counted - 1) / counted);
    *lo = of / by - half;
    *hi = of / by + half;
    return true;
}

static json_t *interval_json(const wg_ratio *r, const wg_between_runs *between)
{
    double lo, hi;
    if (!wg_ratio_run_interval(r, between, &lo, &hi)) return json_null();
    return json_pack("[o,o]", wg_json_number(lo), wg_json_number(hi));
}

json_t *wg_ratio_interval_json(const wg_ratio *r) { return interval_json(r, NULL); }

void wg_ratio_set_json(json_t *o, const char *name, const wg_ratio *r) { wg_ratio_set_run_json(o, name, r, NULL); }

void wg_ratio_set_run_json(json_t *o, const char *name, const wg_ratio *r, const wg_between_runs *between)
{
    char ci[64];
    snprintf(ci, sizeof ci, "%s_ci", name);
    json_object_set_new(o, name, wg_json_number(wg_ratio_value(r)));
    json_object_set_new(o, ci, interval_json(r, between));
}
