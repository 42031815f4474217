/* SPDX-License-Identifier: MIT */
#include "experiments/report/distill_plots.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/base/save.h"
#include "experiments/report/line_chart.h"

enum { FAMILIES = 64, PATH_ROOM = 1024 };

/* Means over the seeds of a family, step by step. */
typedef struct curves {
    wg_chart_line line[FAMILIES];
    int seeds[FAMILIES], n;
} curves;

/* The family of a student by its name; -1: none. */
static int family_of(const curves *c, const json_t *students, const char *name)
{
    size_t i;
    const json_t *s;
    json_array_foreach((json_t *)(uintptr_t)students, i, s) {
        if (strcmp(json_string_value(json_object_get(s, "name")), name) != 0) continue;
        const char *family = json_string_value(json_object_get(s, "family"));
        for (int k = 0; k < c->n; k++)
            if (!strcmp(c->line[k].name, family)) return k;
    }
    return -1;
}

static bool add_point(wg_chart_line *l, double step, double value)
{
    for (int i = 0; i < l->n; i++)
        if (l->point[i].x == step) {
            l->point[i].y += value;
            return true;
        }
    wg_chart_point *more = wg_realloc(l->point, (size_t)l->n + 1, sizeof *more);
    if (!more) return false;
    l->point = more;
    l->point[l->n++] = (wg_chart_point){ step, value, NAN, NAN };
    return true;
}

static void close_curves(curves *c)
{
    for (int i = 0; i < c->n; i++) wg_free(c->line[i].point);
}

static wg_status read_curves(curves *c, FILE *log, const json_t *result, const char *key, wg_error *err)
{
    const json_t *families = json_object_get(result, "families"), *f;
    size_t i;
    json_array_foreach((json_t *)(uintptr_t)families, i, f) {
        if (c->n == FAMILIES) break;
        c->line[c->n].name = (char *)(uintptr_t)json_string_value(json_object_get(f, "name"));
        c->seeds[c->n++] = (int)json_integer_value(json_object_get(f, "seeds"));
    }
    char line[1024];
    while (fgets(line, sizeof line, log)) {
        json_t *o = json_loads(line, 0, NULL);
        const char *name = json_string_value(json_object_get(o, "student"));
        const int k = json_object_get(o, "held_out") && name ? family_of(c, json_object_get(result, "students"), name) : -1;
        const double step = json_number_value(json_object_get(o, "step")), value = json_number_value(json_object_get(o, key));
        json_decref(o);
        if (k >= 0 && !add_point(&c->line[k], step, value / c->seeds[k]))
            return wg_nomem(err, sizeof(wg_chart_point), "a plot");
    }
    return WG_OK;
}

static wg_status draw(const char *folder, const json_t *result, const char *key, const wg_line_chart *chart, const char *file,
                      wg_error *err)
{
    char path[PATH_ROOM];
    char *svg = NULL;
    size_t n = 0;
    curves c = { .n = 0 };
    snprintf(path, sizeof path, "%s/distill.jsonl", folder);
    FILE *log = fopen(path, "re");
    if (!log) return wg_fail(err, WG_EIO, "%s: cannot read: %s", path, strerror(errno));
    wg_status s = read_curves(&c, log, result, key, err);
    fclose(log);
    FILE *f = s == WG_OK ? open_memstream(&svg, &n) : NULL;
    if (f) {
        wg_line_chart o = *chart;
        o.curve = c.line;
        o.n = c.n;
        wg_line_chart_figure(&(wg_plot_out){ .f = f, .form = WG_PLOT_SVG }, &o);
        fclose(f);
    }
    snprintf(path, sizeof path, "%s/%s", folder, file);
    wg_save *w = NULL;
    if (n > 0) s = wg_save_open(&w, path, err);
    if (w) {
        s = wg_save_write(w, svg, n, err);
        if (s == WG_OK) s = wg_save_commit(w, err);
        else wg_save_abort(w);
    }
    free(svg);
    close_curves(&c);
    return s;
}

wg_status wg_distill_plots(const char *folder, const json_t *result, wg_error *err)
{
    static const wg_line_chart loss = { .title = "Held-out loss",
                                        .caption = "Held-out loss of each family, the mean over its seeds. Families with "
                                                   "different losses are not on one scale.",
                                        .x = "step",
                                        .y = "loss of a row",
                                        .range = "[*:*]",
                                        .real = true };
    static const wg_line_chart alpha = { .title = "Held-out alpha",
                                         .caption = "Mean of sum min(p, q) over held-out rows, the mean over the seeds.",
                                         .x = "step",
                                         .y = "alpha",
                                         .range = "[*:*]",
                                         .real = true };
    if (!wg_plot_available(WG_PLOT_SVG)) return WG_OK;
    WG_TRY(draw(folder, result, "held_out", &loss, "loss.svg", err));
    return draw(folder, result, "alpha", &alpha, "alpha.svg", err);
}
