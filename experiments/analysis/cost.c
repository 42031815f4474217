/* SPDX-License-Identifier: MIT
 * Fitting and prediction; cost_measure.c has the timing. */
#include "experiments/analysis/cost.h"

#include <math.h>
#include <string.h>

/* The base: the timings of one sequence after the smallest context, in the order of their rows. */
static void take_base(wg_cost *c, const wg_timed *t, int n)
{
    double error = 0;
    for (int i = 0; i < n; i++) {
        if (t[i].sequences != 1 || t[i].context != (int)c->near || c->knots == WG_COST_KNOTS) continue;
        int k = c->knots++;
        for (; k > 0 && c->rows[k - 1] > t[i].rows; k--) c->rows[k] = c->rows[k - 1], c->seconds[k] = c->seconds[k - 1];
        c->rows[k] = t[i].rows;
        c->seconds[k] = t[i].seconds;
        error += t[i].error;
    }
    for (int k = 1; k < c->knots; k++) c->seconds[k] = fmax(c->seconds[k], c->seconds[k - 1]);
    c->error = c->knots ? error / c->knots : 0;
}

wg_status wg_cost_fit(wg_cost *c, const wg_timed *t, int n, wg_error *err)
{
    *c = (wg_cost){ .near = INFINITY };
    for (int i = 0; i < n; i++)
        if (t[i].sequences == 1 && t[i].context < c->near) c->near = t[i].context;
    take_base(c, t, n);
    if (c->knots == 0 || c->rows[0] != 1 || !(c->seconds[0] > 0))
        return wg_fail(err, WG_EINVAL, "a cost model needs the time of a pass over one row");
    double xy = 0, xx = 0, extra = 0;
    int several = 0;
    for (int i = 0; i < n; i++) { /* y = key x, x = rows * additional keys */
        const double x = t[i].rows * (t[i].context - c->near), y = t[i].seconds - wg_cost_pass(c, t[i].rows, c->near, 1);
        if (t[i].sequences != 1 || !(x > 0)) continue;
        xy += x * y;
        xx += x * x;
    }
    c->key = xx > 0 ? fmax(0, xy / xx) : 0;
    for (int i = 0; i < n; i++) {
        if (t[i].sequences < 2) continue;
        extra += (t[i].seconds - wg_cost_pass(c, t[i].rows, t[i].context, 1)) / (t[i].sequences - 1);
        several++;
    }
    c->sequence = several ? fmax(0, extra / several) : 0;
    return WG_OK;
}

double wg_cost_pass(const wg_cost *c, double rows, double context, double sequences)
{
    int k = 1;
    while (k + 1 < c->knots && rows > c->rows[k]) k++;
    double base = c->seconds[0];
    if (c->knots > 1) {
        const double slope = (c->seconds[k] - c->seconds[k - 1]) / (c->rows[k] - c->rows[k - 1]);
        base = c->seconds[k - 1] + slope * (rows - c->rows[k - 1]);
    }
    return base + c->key * rows * fmax(0, context - c->near) + c->sequence * fmax(0, sequences - 1);
}

json_t *wg_cost_json(const wg_cost *c)
{
    json_t *rows = json_array(), *ms = json_array();
    for (int k = 0; k < c->knots; k++) {
        json_array_append_new(rows, json_integer(c->rows[k]));
        json_array_append_new(ms, json_real(c->seconds[k] * 1e3));
    }
    return json_pack("{s:o, s:o, s:f, s:f, s:f, s:f}", "rows", rows, "base_ms", ms, "context", c->near, "key_ms", c->key * 1e3,
                     "sequence_ms", c->sequence * 1e3, "relative_error", c->error);
}

bool wg_cost_read(const json_t *v, wg_cost *c)
{
    const json_t *rows = json_object_get(v, "rows"), *ms = json_object_get(v, "base_ms");
    const size_t n = json_array_size(rows);
    if (n == 0 || n > WG_COST_KNOTS || json_array_size(ms) != n) return false;
    *c = (wg_cost){ .knots = (int)n };
    for (size_t k = 0; k < n; k++) {
        c->rows[k] = (int)json_integer_value(json_array_get(rows, k));
        c->seconds[k] = json_number_value(json_array_get(ms, k)) / 1e3;
        if (k ? c->rows[k] <= c->rows[k - 1] : c->rows[k] != 1) return false;
    }
    c->near = json_number_value(json_object_get(v, "context"));
    c->key = json_number_value(json_object_get(v, "key_ms")) / 1e3;
    c->sequence = json_number_value(json_object_get(v, "sequence_ms")) / 1e3;
    c->error = json_number_value(json_object_get(v, "relative_error"));
    return c->seconds[0] > 0;
}

wg_predicted wg_cost_speedup(double tau, const wg_step_cost *step, const wg_step_cost *plain, double pass_error,
                             double step_error)
{
    const double all = step->draft + step->verify + step->rest, base = plain->draft + plain->verify + plain->rest;
    const double parts[] = { step->draft / all * step_error, step->verify / all * pass_error, step->rest / all * step_error,
                             plain->verify / base * pass_error, (plain->draft + plain->rest) / base * step_error };
    double square = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) square += parts[i] * parts[i];
    const double s = tau * base / all, wide = exp(hypot(log1p(sqrt(square)), WG_COST_MODEL_ERROR));
    return (wg_predicted){ s, s / wide, s * wide };
}

wg_residual wg_cost_residual(const wg_step_cost *predicted, const wg_step_cost *measured, double plain_predicted,
                             double plain_measured)
{
    const double p = predicted->draft + predicted->verify + predicted->rest;
    const double m = measured->draft + measured->verify + measured->rest;
    /* log(m / p) is divided among the phases in proportion to their terms of m - p; where m = p, the factor tends to 1 / p */
    const double per_second = fabs(m - p) > 1e-9 * p ? log(m / p) / (m - p) : 1 / p;
    wg_residual r = { .draft = -100 * per_second * (measured->draft - predicted->draft),
                      .verify = -100 * per_second * (measured->verify - predicted->verify),
                      .rest = -100 * per_second * (measured->rest - predicted->rest),
                      .plain = 100 * log(plain_measured / plain_predicted) };
    r.total = r.draft + r.verify + r.rest + r.plain;
    return r;
}
