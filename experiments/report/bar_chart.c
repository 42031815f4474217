/* SPDX-License-Identifier: MIT
 * The bars of a group touch; the gap between groups is as wide as a bar. */
#include "experiments/report/bar_chart.h"

#include <math.h>

enum { LABEL = 16, LABEL_ROOM = 100 }; /* most characters of a group's name; pixels at the right for its slanted text */

static const wg_estimate_ci *value(const wg_bar_chart *c, int group, int series)
{
    return &c->value[(size_t)group * (size_t)c->n + (size_t)series];
}

/* Writes the data of series k, a line a bar: place, value, interval, text. */
static int data(FILE *s, const wg_bar_chart *c, int k)
{
    int drawn = 0;
    fprintf(s, "$b%d << EOD\n", k);
    for (int g = 0; g < c->groups; g++) {
        const wg_estimate_ci *e = value(c, g, k);
        if (!isfinite(e->v)) continue;
        const bool interval = isfinite(e->lo) && isfinite(e->hi);
        fprintf(s, "%.6g %.6g %.6g %.6g", g + (k - (c->n - 1) / 2.) / (c->n + 1), e->v, interval ? e->lo : e->v,
                interval ? e->hi : e->v);
        if (interval) wg_plot_note(s, "%s, %s: %s %.3f [%.3f, %.3f]", c->series[k], c->group[g], c->y, e->v, e->lo, e->hi);
        else wg_plot_note(s, "%s, %s: %s %.3f", c->series[k], c->group[g], c->y, e->v);
        fputc('\n', s);
        drawn++;
    }
    fputs("EOD\n", s);
    return drawn;
}

static int draw(FILE *s, int width, const void *arg)
{
    const wg_bar_chart *c = arg;
    int drawn = 0;
    wg_plot_look(s);
    for (int k = 0; k < c->n; k++) drawn += data(s, c, k);
    if (!drawn) return 0;
    fprintf(s,
            "set grid y\nset ylabel '%s'\nset boxwidth %.6g\nset style fill solid 0.5\nset xrange [-0.6:%.1f]\n"
            "set yrange [*<0:*]\nset xtics rotate by -30 (",
            c->y, 1. / (c->n + 1), c->groups - 0.4);
    for (int g = 0; g < c->groups; g++) {
        fputs(g ? ", " : "", s);
        wg_plot_label(s, c->group[g], LABEL);
        fprintf(s, " %d", g);
    }
    fprintf(s, ")\nset rmargin at screen %.4f\nplot ", 1 - LABEL_ROOM / (double)width);
    if (isfinite(c->line)) fprintf(s, "%g with lines dt 2 lw 1.5 lc rgb '%s', ", c->line, wg_plot_colour(7));
    for (int k = 0; k < c->n; k++) {
        fprintf(s,
                "%s$b%d using 1:2 with boxes lc rgb '%s', $b%d using 1:2:3:4 with yerrorbars pt -1 lw 1 lc rgb '%s', $b%d "
                "using 1:2:5 with labels hypertext point pt 5 ps 0.4 lc rgb '%s'",
                k ? ", " : "", k, wg_plot_colour(k), k, wg_plot_colour(k), k, wg_plot_colour(k));
    }
    fputc('\n', s);
    return width == WG_PLOT_BROAD ? 380 : 320;
}

static bool legend(const void *arg, int i, wg_plot_key *out)
{
    const wg_bar_chart *c = arg;
    if (i >= c->n) return false;
    *out = (wg_plot_key){ c->series[i], "\u25A0", i % WG_PLOT_SERIES };
    return true;
}

void wg_bar_chart_figure(const wg_plot_out *to, const wg_bar_chart *c)
{
    const wg_plot p = { .title = c->title, .caption = c->caption, .draw = draw, .arg = c, .legend = legend };
    wg_plot_figure(to, &p);
}
