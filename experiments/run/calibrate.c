/* SPDX-License-Identifier: MIT
 * Costs of arms from their warm-ups, and costs in JSON. */
#include "experiments/run/calibrate.h"

#include <math.h>
#include <string.h>

#include "experiments/base/stats.h"

void wg_warm_step(wg_warm *w, const wg_phases *step, double seconds, int k, int rows)
{
    if (rows > w->rows) w->rows = rows;
    if (w->n == WG_WARM_STEPS) return;
    w->draft[w->n] = step->draft / k;
    w->rest[w->n++] = (seconds - step->draft - step->verify) / k;
}

/* The median of v[from ..], and its relative error (cost.h). */
static double median(const double *v, int from, int n, double *error)
{
    double copy[WG_WARM_STEPS];
    memcpy(copy, v + from, (size_t)(n - from) * sizeof *v);
    const double m = wg_quantile(copy, n - from, 0.5);
    const double iqr = wg_quantile(copy, n - from, 0.75) - wg_quantile(copy, n - from, 0.25);
    *error = m > 0 ? 1.58 * iqr / m / sqrt(n - from) : 0;
    return m;
}

wg_arm_cost wg_warm_cost(const wg_warm *w)
{
    if (w->n == 0) return (wg_arm_cost){ 0 };
    double draft_error, rest_error;
    const int from = w->n > 1; /* the first step's draft reads the prompt and is a separate cost */
    const double draft = median(w->draft, from, w->n, &draft_error), rest = median(w->rest, from, w->n, &rest_error);
    const double all = draft + rest;
    return (wg_arm_cost){ w->draft[0], draft, rest, all > 0 ? (draft * draft_error + rest * rest_error) / all : 0 };
}

json_t *wg_calibration_json(int group, int batch, const wg_cost *pass, const int *cell, const wg_warm *warm, int arms)
{
    json_t *list = json_array();
    for (int k = 0; k < arms; k++) {
        const wg_arm_cost a = wg_warm_cost(&warm[k]);
        json_t *its = cell[k] < 0 ? json_null() : json_integer(cell[k]);
        json_array_append_new(list, json_pack("{s:o, s:f, s:f, s:f, s:f}", "cell", its, "first_draft_ms", a.first * 1e3,
                                              "draft_ms", a.draft * 1e3, "rest_ms", a.rest * 1e3, "relative_error", a.error));
    }
    return json_pack("{s:i, s:i, s:o, s:o}", "group", group, "batch", batch, "pass", wg_cost_json(pass), "arms", list);
}

static double ms(const json_t *v, const char *key) { return json_number_value(json_object_get(v, key)) / 1e3; }

static bool read_arm(const json_t *arms, int cell, wg_arm_cost *out)
{
    for (size_t i = 0; i < json_array_size(arms); i++) {
        const json_t *a = json_array_get(arms, i), *of = json_object_get(a, "cell");
        if (json_is_integer(of) ? json_integer_value(of) != cell : cell >= 0) continue;
        *out = (wg_arm_cost){ ms(a, "first_draft_ms"), ms(a, "draft_ms"), ms(a, "rest_ms"),
                              json_number_value(json_object_get(a, "relative_error")) };
        return true;
    }
    return false;
}

wg_cell_cost wg_calibration_of(const json_t *groups, int group, int cell)
{
    wg_cell_cost c = { .known = false };
    for (size_t i = 0; i < json_array_size(groups) && !c.known; i++) {
        const json_t *g = json_array_get(groups, i), *arms = json_object_get(g, "arms");
        if (json_integer_value(json_object_get(g, "group")) != group) continue;
        c.batch = (int)json_integer_value(json_object_get(g, "batch"));
        c.known = c.batch > 0 && wg_cost_read(json_object_get(g, "pass"), &c.pass) && read_arm(arms, -1, &c.plain) &&
                  read_arm(arms, cell, &c.arm);
    }
    return c;
}

wg_predicted wg_calibration_predict(const wg_cell_cost *c, const wg_fared *f, wg_step_cost *step, wg_step_cost *plain)
{
    const double k = c->batch;
    *step = (wg_step_cost){ c->arm.draft + fmax(0, c->arm.first - c->arm.draft) * f->drafts / f->passes,
                            wg_cost_pass(&c->pass, f->rows * k, f->context, k) / k, c->arm.rest };
    *plain = (wg_step_cost){ c->plain.draft, wg_cost_pass(&c->pass, k, f->context, k) / k, c->plain.rest };
    return wg_cost_speedup(f->tau, step, plain, c->pass.error, fmax(c->arm.error, c->plain.error));
}
