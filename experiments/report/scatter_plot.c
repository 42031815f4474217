/* SPDX-License-Identifier: MIT
 * Points of the front are large and have their intervals and numbers. */
#include "experiments/report/charts.h"

#include <math.h>

static void points(FILE *s, const wg_scatter_plot *o, bool front)
{
    fprintf(s, "$%s << EOD\n", front ? "front" : "rest");
    for (int i = 0; i < o->n; i++) {
        const wg_scatter_point *p = &o->point[i];
        const bool interval = isfinite(p->y.lo) && isfinite(p->y.hi);
        if (p->front != front) continue;
        fprintf(s, "%.6g %.6g %.6g %.6g", p->x, p->y.v, interval ? p->y.lo : p->y.v, interval ? p->y.hi : p->y.v);
        if (interval)
            wg_plot_note(s, "%s: %s %.2f [%.2f, %.2f] at %s %.3g", p->name, o->y, p->y.v, p->y.lo, p->y.hi, o->x, p->x);
        else wg_plot_note(s, "%s: %s %.2f at %s %.3g", p->name, o->y, p->y.v, o->x, p->x);
        fputc('\n', s);
    }
    fputs("EOD\n", s);
}

/* Writes the numbers of the front's points beside them. */
static void numbers(FILE *s, const wg_scatter_plot *o)
{
    for (int i = 0; i < o->n; i++) {
        const wg_scatter_point *p = &o->point[i];
        if (p->front) fprintf(s, "set label '%d' at %.6g, %.6g left offset character 0.7, 0.5\n", p->number, p->x, p->y.v);
    }
}

static int draw(FILE *s, int width, const void *arg)
{
    const wg_scatter_plot *o = arg;
    double right = 0, top = 1, left = INFINITY;
    int front = 0;
    if (o->n == 0) return 0;
    wg_plot_look(s);
    for (int i = 0; i < o->n; i++) {
        right = fmax(right, o->point[i].x);
        left = fmin(left, o->point[i].x);
        top = fmax(top, fmax(o->point[i].y.v, isfinite(o->point[i].y.hi) ? o->point[i].y.hi : 0));
        front += o->point[i].front;
    }
    points(s, o, true);
    points(s, o, false);
    numbers(s, o);
    right += 0.08 * (right - left);
    left -= 0.08 * (right - left);
    fprintf(s, "set grid\nset xlabel '%s'\nset ylabel '%s'\nset xrange [%.6g:%.6g]\nset yrange [0:%.6g]\nset rmargin 6\n", o->x,
            o->y, left, right, 1.08 * top);
    const char *first = wg_plot_colour(0), *grey = wg_plot_colour(4);
    fputs("plot ", s);
    if (front < o->n) fprintf(s, "$rest using 1:2:5 with labels hypertext point pt 6 ps 0.6 lc rgb '%s', ", grey);
    fprintf(s, "$front using 1:2 with lines lw 1.5 lc rgb '%s', ", first);
    fprintf(s,
            "$front using 1:2:3:4 with yerrorbars pt -1 lw 1 lc rgb '%s', $front using 1:2:5 with labels hypertext point pt 7 "
            "ps 0.8 lc rgb '%s'\n",
            first, first);
    return width == WG_PLOT_BROAD ? 400 : 320;
}

void wg_scatter_plot_figure(const wg_plot_out *to, const wg_scatter_plot *o)
{
    const wg_plot p = { .title = o->title, .caption = o->caption, .draw = draw, .arg = o };
    wg_plot_figure(to, &p);
}
