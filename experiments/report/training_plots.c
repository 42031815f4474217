/* SPDX-License-Identifier: MIT */
#include "experiments/report/training_plots.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/base/save.h"
#include "experiments/report/charts.h"

enum { PARTS = 40, EVALUATIONS = 1000 };

static const char *const axis = "tokens, millions";

/* Allocates n curves with room for `each` points. false: memory ran out. */
static bool open_lines(wg_chart_line **out, int n, int each)
{
    *out = wg_calloc((size_t)n, sizeof **out);
    wg_chart_point *all = *out ? wg_calloc((size_t)n * (size_t)each, sizeof *all) : NULL;
    for (int i = 0; all && i < n; i++) (*out)[i].point = all + (size_t)i * (size_t)each;
    return all != NULL;
}

static void close_lines(wg_chart_line *line)
{
    if (line) wg_free(line[0].point);
    wg_free(line);
}

static void put(const wg_plot_out *to, const wg_line_chart *as, const wg_chart_line *line, int n)
{
    int most = 0;
    wg_line_chart c = *as;
    for (int i = 0; i < n; i++) most = line[i].n > most ? line[i].n : most;
    c.curve = line, c.n = n, c.range = "[*:*]", c.real = true, c.x = axis;
    if (most > 0) wg_line_chart_figure(to, &c);
}

void wg_training_plot_families(const wg_plot_out *to, const wg_training_log *l, bool alpha)
{
    static const wg_line_chart of[2] = {
        { .title = "Held-out loss",
          .caption = "Held-out loss of each family: the mean over its seeds, from the least to the most of them. Families with "
                     "different losses are not on one scale.",
          .y = "loss of a row" },
        { .title = "Held-out alpha",
          .caption = "Mean of sum min(p, q) over held-out rows of each family: the mean over its seeds, from the least to the "
                     "most of them.",
          .y = "alpha" },
    };
    wg_chart_line *line;
    wg_training_mean *mean = wg_alloc(EVALUATIONS, sizeof *mean);
    const bool fits = open_lines(&line, l->families, EVALUATIONS) && mean;
    for (int f = 0; fits && f < l->families; f++) {
        const int n = wg_training_means(l, f, -1, alpha, mean, EVALUATIONS);
        line[f].name = (char *)(uintptr_t)wg_training_family(l, f);
        for (int k = 0; k < n; k++)
            if (isfinite(mean[k].value))
                line[f].point[line[f].n++] =
                    (wg_chart_point){ mean[k].tokens / 1e6, mean[k].value, mean[k].least, mean[k].most };
    }
    if (fits) put(to, &of[alpha], line, l->families);
    close_lines(line);
    wg_free(mean);
}

/* Writes the means over equal parts of a curve and returns their number. */
static int means(const wg_training_curve *c, bool alpha, wg_chart_point *out)
{
    const int parts = c->n < PARTS ? c->n : PARTS;
    int n = 0;
    for (int p = 0; p < parts; p++) {
        const int lo = (int)((long)c->n * p / parts), hi = (int)((long)c->n * (p + 1) / parts);
        double sum = 0;
        for (int i = lo; i < hi; i++) sum += alpha ? c->point[i].alpha : c->point[i].loss;
        if (isfinite(sum)) out[n++] = (wg_chart_point){ c->point[hi - 1].tokens / 1e6, sum / (hi - lo), NAN, NAN };
    }
    return n;
}

void wg_training_plot_students(const wg_plot_out *to, const wg_training_log *l, int family, bool alpha)
{
    char title[160];
    wg_chart_line *line;
    const bool fits = open_lines(&line, l->seeds, PARTS);
    snprintf(title, sizeof title, "%s of %.100s while training", alpha ? "Alpha" : "Loss", wg_training_family(l, family));
    for (int i = 0; fits && i < l->seeds; i++) {
        wg_training_student *s = &l->student[family * l->seeds + i];
        line[i].name = s->name;
        line[i].n = means(&s->steps, alpha, line[i].point);
    }
    const wg_line_chart as = { .title = title,
                               .caption = alpha ? "Mean of sum min(p, q) over the rows of a step, before its update; means "
                                                  "over 40 parts of the run."
                                                : "Loss of a row, before the step's update; means over 40 parts of the run.",
                               .y = alpha ? "alpha" : "loss of a row" };
    if (fits) put(to, &as, line, l->seeds);
    close_lines(line);
}

static wg_status save(const char *folder, const wg_training_log *l, bool alpha, wg_error *err)
{
    char path[1200];
    char *svg = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&svg, &n);
    if (!f) return wg_nomem(err, 1, "a drawing");
    wg_training_plot_families(&(wg_plot_out){ .f = f, .form = WG_PLOT_SVG }, l, alpha);
    fclose(f);
    snprintf(path, sizeof path, "%.1100s/%s", folder, alpha ? "alpha.svg" : "loss.svg");
    const wg_status s = n > 0 ? wg_save_all(path, svg, n, err) : WG_OK;
    free(svg);
    return s;
}

wg_status wg_training_plot_files(const char *folder, wg_error *err)
{
    wg_training_log l;
    if (!wg_plot_available(WG_PLOT_SVG)) return WG_OK;
    WG_TRY(wg_training_log_open(&l, folder, err));
    wg_status s = save(folder, &l, false, err);
    if (s == WG_OK) s = save(folder, &l, true, err);
    wg_training_log_close(&l);
    return s;
}
