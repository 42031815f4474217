/* SPDX-License-Identifier: MIT
 * Rows are placed in pixels: names have a line of their own, so that they may be as long as the drawing is wide. */
#include "experiments/report/charts.h"

#include <math.h>

enum { TOP = 6, BOTTOM = 50, NAME = 22, POINT = 20, LEFT = 14, UNDER = 116, NUMBERS = 156, MOST = 400 };

static double least(const wg_estimate_ci *p) { return isfinite(p->lo) ? p->lo : p->v; }
static double most(const wg_estimate_ci *p) { return isfinite(p->hi) ? p->hi : p->v; }

/* The range of the axis, which contains 1 and every point and interval. */
static bool span(const wg_forest_plot *o, double *lo, double *hi, bool *under)
{
    bool any = false;
    *lo = *hi = 1;
    *under = false;
    for (int i = 0; i < o->n; i++) {
        *under = *under || o->row[i].under;
        for (int k = 0; k < 2; k++) {
            const wg_estimate_ci *p = &o->row[i].point[k];
            if (!isfinite(p->v)) continue;
            any = true;
            *lo = fmin(*lo, least(p));
            *hi = fmax(*hi, most(p));
        }
    }
    const double room = fmax(0.04 * (*hi - *lo), 0.02);
    *lo = fmax(0, *lo - room);
    *hi += room;
    return any;
}

static bool drawn(const wg_forest_plot_row *r, int k) { return isfinite(r->point[k].v); }
static bool named_above(const wg_forest_plot_row *r) { return r->name && !r->under; }

/* "NAME, part: measured 1.20x [1.10, 1.30]" */
static void note(FILE *s, const wg_forest_plot *o, const char *name, const wg_forest_plot_row *r, int k)
{
    const wg_estimate_ci *p = &r->point[k];
    char ci[64] = "";
    if (isfinite(p->lo)) snprintf(ci, sizeof ci, " [%.*f, %.*f]", o->digits, p->lo, o->digits, p->hi);
    wg_plot_note(s, "%s%s%s: %s%s%.*fx%s", name ? name : "", name && r->under ? ", " : "", r->under && r->name ? r->name : "",
                 o->series[k] ? o->series[k] : "", o->series[k] ? " " : "", o->digits, p->v, ci);
}

/* The points of one series, and their numbers at the right edge where there is room. */
static void points(FILE *s, const wg_forest_plot *o, int k, bool numbers)
{
    const char *name = NULL; /* name of the rows with `under` below it */
    fprintf(s, "$p%d << EOD\n", k);
    for (int i = 0, y = 0; i < o->n; i++) {
        const wg_forest_plot_row *r = &o->row[i];
        const wg_estimate_ci *p = &r->point[k];
        y += named_above(r) ? NAME : 0;
        if (named_above(r)) name = r->name;
        if (drawn(r, k)) {
            fprintf(s, "%.6g %d %.6g %.6g", p->v, y + POINT / 2 + (k ? 4 : drawn(r, 1) ? -3 : 0), least(p), most(p));
            note(s, o, name, r, k);
            fputc('\n', s);
        }
        y += drawn(r, 0) || drawn(r, 1) ? POINT : 0;
    }
    fputs("EOD\n", s);
    for (int i = 0, y = 0; i < o->n && k == 0; i++) {
        const wg_forest_plot_row *r = &o->row[i];
        const wg_estimate_ci *p = &r->point[0];
        y += named_above(r) ? NAME : 0;
        if (numbers && drawn(r, 0)) {
            fprintf(s, "set label '%.*fx", o->digits, p->v);
            if (isfinite(p->lo)) fprintf(s, " [%.*f, %.*f]", o->digits, p->lo, o->digits, p->hi);
            fprintf(s, "' at screen 0.995, first %d right\n", y + POINT / 2);
        }
        y += drawn(r, 0) || drawn(r, 1) ? POINT : 0;
    }
}

static void names(FILE *s, const wg_forest_plot *o, int width)
{
    for (int i = 0, y = 0; i < o->n; i++) {
        const wg_forest_plot_row *r = &o->row[i];
        if (r->name) {
            fputs("set label ", s);
            wg_plot_label(s, r->name, r->under ? 14 : width / 8);
            fprintf(s, " at screen %g, first %d left\n", (r->under ? 12. : 2.) / width, y + (r->under ? POINT : NAME) / 2);
        }
        y += named_above(r) ? NAME : 0;
        y += drawn(r, 0) || drawn(r, 1) ? POINT : 0;
    }
}

/* Draws the dashed line at 1 beside the points; it leaves out the lines of names. */
static void line_at_1(FILE *s, const wg_forest_plot *o)
{
    for (int i = 0, y = 0; i < o->n; i++) {
        const wg_forest_plot_row *r = &o->row[i];
        y += named_above(r) ? NAME : 0;
        if (!drawn(r, 0) && !drawn(r, 1)) continue;
        fprintf(s, "set arrow from 1, first %d to 1, first %d nohead lc rgb '%s' lw 1.5 dt 2 back\n", y, y + POINT,
                wg_plot_colour(7));
        y += POINT;
    }
}

/* 1, 2 or 5 times a power of ten, so that at most this many tics result. */
static double step(double range, int tics)
{
    const double least = range / tics, ten = pow(10, floor(log10(least))), of = least / ten;
    return ten * (of <= 1 ? 1 : of <= 2 ? 2 : of <= 5 ? 5 : 10);
}

static int draw(FILE *s, int width, const void *arg)
{
    const wg_forest_plot *o = arg;
    const bool numbers = width == WG_PLOT_BROAD;
    double lo, hi;
    bool under;
    int rows = 0, last = 0;
    if (!span(o, &lo, &hi, &under) || o->n > MOST) return 0;
    for (int i = 0; i < o->n; i++) {
        rows += named_above(&o->row[i]) ? NAME : 0;
        rows += drawn(&o->row[i], 0) || drawn(&o->row[i], 1) ? POINT : 0;
        last = drawn(&o->row[i], 1) ? 1 : last;
    }
    const double height = TOP + rows + BOTTOM;
    wg_plot_look(s);
    fprintf(s,
            "set lmargin at screen %g\nset rmargin at screen %g\nset tmargin at screen below+(1-below)*%g\n"
            "set bmargin at screen below+(1-below)*%g\n",
            (under ? UNDER : LEFT) / (double)width, 1 - (numbers ? NUMBERS : LEFT) / (double)width, 1 - TOP / height,
            BOTTOM / height);
    fprintf(s, "set xrange [%.6g:%.6g]\nset yrange [%d:0]\nset border 1\nset grid x\nunset ytics\nset xtics %g\nset label ", lo,
            hi, rows, step(hi - lo, width / 75));
    wg_plot_label(s, o->axis, width / 8);
    fprintf(s, " at graph 0.5, screen below+(1-below)*%g center\n", 10 / height);
    line_at_1(s, o);
    names(s, o, width);
    for (int k = 0; k <= last; k++) points(s, o, k, numbers);
    for (int k = last; k >= 0; k--) {
        fprintf(s,
                "%s $p%d using 1:2:3:4 with xerrorbars pt -1 lw %g lc rgb '%s', $p%d using 1:2:5 with labels hypertext point "
                "pt %d ps %g lc rgb '%s'",
                k == last ? "plot" : ",", k, k ? 1. : 2., wg_plot_colour(k), k, k ? 12 : 7, k ? 0.8 : 0.7, wg_plot_colour(k));
    }
    fputc('\n', s);
    return (int)height;
}

static bool legend(const void *arg, int i, wg_plot_key *out)
{
    static const char *const symbol[] = { "\u25CF", "\u25C7" };
    const wg_forest_plot *o = arg;
    if (i > 1 || !o->series[0]) return false;
    *out = (wg_plot_key){ o->series[i], symbol[i], i };
    return true;
}

void wg_forest_plot_figure(const wg_plot_out *to, const wg_forest_plot *forest)
{
    const wg_plot p = { .title = forest->title, .caption = forest->caption, .draw = draw, .arg = forest, .legend = legend };
    wg_plot_figure(to, &p);
}
