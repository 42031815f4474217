/* SPDX-License-Identifier: MIT */
#include "experiments/analysis/student_points.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/json.h"
#include "core/model/arch.h"
#include "experiments/analysis/measured_draft.h"
#include "experiments/base/json_number.h"
#include "experiments/record/training_record.h"

enum { PATH = 4096 };

static wg_status add(wg_student_points *p, const char *name, const wg_scaling_point *value, double temperature, wg_error *err)
{
    if (p->n == WG_STUDENT_POINTS)
        return wg_fail(err, WG_EINVAL, "more than %d measured students; give fewer", WG_STUDENT_POINTS);
    snprintf(p->of[p->n].name, sizeof p->of[p->n].name, "%s", name);
    p->of[p->n].temperature = temperature;
    p->value[p->n++] = *value;
    return WG_OK;
}

/* ---- a distillation */

/* The temperature of a distillation, from the config beside its result; 1 is the default. */
static double temperature_of(const char *folder)
{
    json_t *config = wg_json_load(folder, "config.json");
    const double t = wg_json_measured(json_object_get(config, "distill"), "temperature");
    json_decref(config);
    return isnan(t) ? 1 : t;
}

static wg_status add_distilled(wg_student_points *p, const char *folder, const char *file, wg_error *err)
{
    json_t *root = wg_json_load(folder, file), *s;
    const double temperature = temperature_of(folder), tokens = wg_json_measured(root, "tokens");
    const int before = p->n;
    wg_status status = WG_OK;
    size_t i;
    json_array_foreach(json_object_get(root, "students"), i, s) {
        const wg_scaling_point v = { .parameters = wg_json_measured(s, "parameters"),
                                     .tokens = tokens > 0 ? tokens : NAN,
                                     .alpha = wg_json_measured(json_object_get(s, "target_text"), "alpha") };
        if (status == WG_OK && v.parameters > 0 && isfinite(v.alpha))
            status = add(p, wg_json_word(s, "name"), &v, temperature, err);
    }
    json_decref(root);
    if (status != WG_OK || p->n > before) return status;
    return wg_fail(
        err, WG_EFORMAT,
        "%s/%s: no student with `parameters` and `target_text`.`alpha`; expected the distill.json of a distillation with "
        "held-out documents",
        folder, file);
}

/* ---- a run */

static bool is_known(const wg_student_points *p, int from, const char *name, double temperature)
{
    for (int i = from; i < p->n; i++)
        if (strcmp(p->of[i].name, name) == 0 && p->of[i].temperature == temperature) return true;
    return false;
}

static wg_status add_cell(wg_student_points *p, int from, const json_t *cell, wg_error *err)
{
    const char *draft = wg_json_word(cell, "draft");
    const double temperature = wg_json_real(cell, "temperature"), alpha = wg_json_measured(cell, "alpha");
    char name[WG_STUDENT_NAME];
    wg_weights *w;
    wg_arch a;
    snprintf(name, sizeof name, "%s", draft);
    if (isnan(alpha) || is_known(p, from, name, temperature)) return WG_OK;
    WG_TRY(wg_weights_open(&w, draft, err));
    const wg_status s = wg_arch_read(w, &a, err);
    wg_weights_close(w);
    WG_TRY(s);
    json_t *training = wg_training_record(draft);
    const double tokens = wg_json_real(training, "tokens");
    json_decref(training);
    const wg_scaling_point v = { (double)wg_arch_parameters(&a), tokens > 0 ? tokens : NAN, alpha };
    return add(p, name, &v, temperature, err);
}

static wg_status add_run(wg_student_points *p, const char *folder, wg_error *err)
{
    const int before = p->n;
    wg_status s = WG_OK;
    json_t *cells, *cell;
    size_t i;
    WG_TRY(wg_measured_draft_read(&cells, folder, NULL, err));
    json_array_foreach(cells, i, cell)
        if (s == WG_OK) s = add_cell(p, before, cell, err);
    json_decref(cells);
    if (s != WG_OK || p->n > before) return s;
    return wg_fail(err, WG_EINVAL, "%s: no cell has an alpha; run it with \"alpha\": true", folder);
}

wg_status wg_student_points_add(wg_student_points *p, const char *path, wg_error *err)
{
    char file[PATH], folder[PATH];
    struct stat st;
    const char *slash = strrchr(path, '/');
    snprintf(file, sizeof file, "%s/distill.json", path);
    if (access(file, F_OK) == 0) return add_distilled(p, path, "distill.json", err);
    if (stat(path, &st) != 0 || S_ISDIR(st.st_mode)) return add_run(p, path, err);
    snprintf(folder, sizeof folder, "%.*s", slash == path ? 1 : slash ? (int)(slash - path) : 1, slash ? path : ".");
    return add_distilled(p, folder, slash ? slash + 1 : path, err);
}

wg_status wg_student_points_at(wg_student_points *p, double temperature, wg_error *err)
{
    int kept = 0;
    for (int i = 0; i < p->n; i++) {
        const double t = p->of[i].temperature;
        if (isnan(temperature) && t != p->of[0].temperature)
            return wg_fail(
                err, WG_EINVAL,
                "students were measured at temperatures %g and %g, and acceptance differs between them; choose one with "
                "--temp",
                p->of[0].temperature, t);
        if (!isnan(temperature) && t != temperature) continue;
        p->value[kept] = p->value[i];
        p->of[kept++] = p->of[i];
    }
    if (kept == 0 && p->n > 0)
        return wg_fail(err, WG_EINVAL, "none of %d students was measured at temperature %g; theirs is %g", p->n, temperature,
                       p->of[0].temperature);
    p->n = kept;
    return WG_OK;
}
