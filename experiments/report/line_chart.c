/* SPDX-License-Identifier: MIT
 * In a page the legend is an HTML list below the drawing, which wraps and which screen readers read; in an SVG file it is drawn
 * (plot.c). */
#include "experiments/report/charts.h"

#include <math.h>

static int draw(FILE *s, int width, const void *arg)
{
    const wg_line_chart *c = arg;
    if (c->n == 0) return 0;
    wg_plot_look(s);
    fprintf(
        s, "set grid\nset xlabel '%s'\nset ylabel '%s'\nset yrange %s\nset offsets graph 0.02, graph 0.02, 0, 0\nset xtics 1\n",
        c->x, c->y, c->range);
    double most = 0;
    for (int i = 0; i < c->n; i++) {
        fprintf(s, "$c%d << EOD\n", i);
        for (int k = 0; k < c->curve[i].n; k++) {
            const wg_chart_point *p = &c->curve[i].point[k];
            fprintf(s, "%g %.6g %.6g %.6g", p->x, p->y, isfinite(p->lo) ? p->lo : p->y, isfinite(p->hi) ? p->hi : p->y);
            if (isfinite(p->lo))
                wg_plot_note(s, "%s: %s %.2f [%.2f, %.2f] at %s %g", c->curve[i].name, c->y, p->y, p->lo, p->hi, c->x, p->x);
            else wg_plot_note(s, "%s: %s %.2f at %s %g", c->curve[i].name, c->y, p->y, c->x, p->x);
            fputc('\n', s);
            most = fmax(most, p->x);
        }
        fputs("EOD\n", s);
    }
    if (most > 20 || c->real) fputs("set xtics autofreq\n", s);
    for (int i = 0; i < c->n; i++) { /* drawn in the order bars, lines, symbols */
        fprintf(s, "%s $c%d using 1:2:3:4 with yerrorbars pt -1 lw 0.7 lc rgb '%s'", i ? "," : "plot", i, wg_plot_colour(i));
        fprintf(s,
                ", $c%d using 1:2 with lines lw 1.5 dt %d lc rgb '%s', $c%d using 1:2:5 with labels hypertext point pt %d ps "
                "0.8 lc rgb '%s'",
                i, i / WG_PLOT_SERIES + 1, wg_plot_colour(i), i, wg_plot_point(i), wg_plot_colour(i));
    }
    fputc('\n', s);
    return width == WG_PLOT_BROAD ? 380 : 300;
}

static bool legend(const void *arg, int i, wg_plot_key *out)
{
    const wg_line_chart *c = arg;
    if (i >= c->n) return false;
    *out = (wg_plot_key){ c->curve[i].name, wg_plot_symbol(i), i % WG_PLOT_SERIES };
    return true;
}

void wg_line_chart_figure(const wg_plot_out *to, const wg_line_chart *c)
{
    const wg_plot p = { .title = c->title, .caption = c->caption, .draw = draw, .arg = c, .legend = legend };
    wg_plot_figure(to, &p);
}
