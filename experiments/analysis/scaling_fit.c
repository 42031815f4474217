/* SPDX-License-Identifier: MIT
 * Least squares by the normal equations of centred terms: of at most two of them, beside the constant. */
#include "experiments/analysis/scaling_fit.h"

#include <math.h>

#include "experiments/base/stats.h"

#define SAME 1e-9 /* relative differences below it are none */

static double size_of(const wg_scaling_point *p) { return log(p->parameters); }
static double tokens_of(const wg_scaling_point *p) { return log(p->tokens); }
typedef double term_fn(const wg_scaling_point *p);

static wg_status check_points(wg_scaling_fit *f, const wg_scaling_point *p, int n, wg_error *err)
{
    *f = (wg_scaling_fit){ .points = n, .terms = 1 };
    for (int i = 0; i < n; i++) {
        if (!(p[i].alpha > 0 && p[i].alpha < 1) || !(p[i].parameters > 0) || p[i].tokens <= 0)
            return wg_fail(
                err, WG_EINVAL,
                "point %d of a fit has %g parameters, %g tokens and alpha %g; expected numbers above 0, and alpha below 1",
                i + 1, p[i].parameters, p[i].tokens, p[i].alpha);
        f->parameters_lo = i ? fmin(f->parameters_lo, p[i].parameters) : p[i].parameters;
        f->parameters_hi = i ? fmax(f->parameters_hi, p[i].parameters) : p[i].parameters;
        const bool known = (i == 0 || !isnan(f->tokens_lo)) && !isnan(p[i].tokens);
        f->tokens_lo = !known ? NAN : i ? fmin(f->tokens_lo, p[i].tokens) : p[i].tokens;
        f->tokens_hi = !known ? NAN : i ? fmax(f->tokens_hi, p[i].tokens) : p[i].tokens;
    }
    if (n == 0) return wg_fail(err, WG_EINVAL, "a fit of acceptance has no points; measure students of different sizes first");
    f->by_size = f->parameters_hi > f->parameters_lo * (1 + SAME);
    f->by_tokens = f->tokens_hi > f->tokens_lo * (1 + SAME);
    f->terms += f->by_size + f->by_tokens;
    if (f->terms == 1)
        return wg_fail(err, WG_EINVAL,
                       "%d point%s of one size: a fit of acceptance needs students of different sizes or training", n,
                       n == 1 ? "" : "s");
    if (n > f->terms) return WG_OK;
    return wg_fail(
        err, WG_EINVAL,
        "%d points: a fit of acceptance over %s needs at least %d, one more than it has terms; measure more students", n,
        f->by_size && f->by_tokens ? "size and tokens"
        : f->by_size               ? "size"
                                   : "tokens",
        f->terms + 1);
}

/* The terms that differ. */
static int terms_of(const wg_scaling_fit *f, term_fn *term[2])
{
    int n = 0;
    if (f->by_size) term[n++] = size_of;
    if (f->by_tokens) term[n++] = tokens_of;
    return n;
}

/* Inverts the matrix of sums of products of k (1 or 2) centred terms. False: they are in one proportion. */
static bool invert(int k, double m[2][2], double out[2][2])
{
    const double d = k == 1 ? m[0][0] : m[0][0] * m[1][1] - m[0][1] * m[1][0];
    if (!(d > SAME * (k == 1 ? 1e-9 : m[0][0] * m[1][1]))) return false;
    if (k == 1) out[0][0] = 1 / d;
    else {
        out[0][0] = m[1][1] / d, out[1][1] = m[0][0] / d;
        out[0][1] = out[1][0] = -m[0][1] / d;
    }
    return true;
}

wg_status wg_scaling_fit_points(wg_scaling_fit *f, const wg_scaling_point *p, int n, wg_error *err)
{
    term_fn *term[2];
    double sum[2][2] = { { 0 } }, with[2] = { 0 }, inverse[2][2] = { { 0 } }, slope[2] = { 0 }, y = 0, left = 0;
    WG_TRY(check_points(f, p, n, err));
    const int k = terms_of(f, term);
    for (int i = 0; i < n; i++) {
        y += log1p(-p[i].alpha) / n;
        for (int t = 0; t < k; t++) f->mean[t] += term[t](&p[i]) / n;
    }
    for (int i = 0; i < n; i++)
        for (int t = 0; t < k; t++) {
            const double x = term[t](&p[i]) - f->mean[t];
            with[t] += x * (log1p(-p[i].alpha) - y);
            for (int u = 0; u < k; u++) sum[t][u] += x * (term[u](&p[i]) - f->mean[u]);
        }
    if (!invert(k, sum, inverse))
        return wg_fail(
            err, WG_EINVAL,
            "%d points whose sizes and tokens grow in one proportion: what each of them does cannot be told; train one "
            "student on other numbers of tokens",
            n);
    f->constant = y;
    for (int t = 0; t < k; t++) {
        for (int u = 0; u < k; u++) {
            slope[t] += inverse[t][u] * with[u];
            f->inverse[t][u] = inverse[t][u];
        }
        f->constant -= slope[t] * f->mean[t];
    }
    f->size = f->by_size ? slope[0] : 0;
    f->tokens = f->by_tokens ? slope[k - 1] : 0;
    for (int i = 0; i < n; i++) {
        double law = f->constant;
        for (int t = 0; t < k; t++) law += slope[t] * term[t](&p[i]);
        left += (log1p(-p[i].alpha) - law) * (log1p(-p[i].alpha) - law);
    }
    f->deviation = sqrt(left / (n - f->terms));
    return WG_OK;
}

wg_scaling_alpha wg_scaling_predict(const wg_scaling_fit *f, double parameters, double tokens)
{
    const wg_scaling_point at = { .parameters = parameters, .tokens = tokens };
    term_fn *term[2];
    const int k = terms_of(f, term);
    double x[2] = { 0 }, law = f->constant, spread = 1 + 1.0 / f->points;
    for (int t = 0; t < k; t++) {
        x[t] = term[t](&at);
        law += (term[t] == size_of ? f->size : f->tokens) * x[t];
    }
    for (int t = 0; t < k; t++)
        for (int u = 0; u < k; u++) spread += (x[t] - f->mean[t]) * f->inverse[t][u] * (x[u] - f->mean[u]);
    const double half = wg_student_t(0.05, f->points - f->terms) * f->deviation * sqrt(spread);
    const bool far = parameters < f->parameters_lo * (1 - SAME) || parameters > f->parameters_hi * (1 + SAME),
               other = tokens < f->tokens_lo * (1 - SAME) || tokens > f->tokens_hi * (1 + SAME);
    return (wg_scaling_alpha){ fmax(0, -expm1(law)), fmax(0, -expm1(law + half)), fmax(0, -expm1(law - half)), far || other };
}
