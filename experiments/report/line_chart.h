/* SPDX-License-Identifier: MIT
 * Line charts: curves over a common x, each with a colour, a symbol and a legend entry. */
#ifndef WG_EXPERIMENTS_REPORT_LINE_CHART_H
#define WG_EXPERIMENTS_REPORT_LINE_CHART_H

#include "experiments/report/plot.h"

typedef struct wg_chart_point {
    double x, y, lo, hi;
} wg_chart_point; /* lo, hi NaN: no interval */
typedef struct wg_chart_line {
    char *name;
    wg_chart_point *point;
    int n;
} wg_chart_line;

typedef struct wg_line_chart {
    const char *title, *caption, *x, *y;
    const char *range; /* range of y as gnuplot writes it: "[0:1]" */
    bool real;         /* x is a measurement, not a count */
    const wg_chart_line *curve;
    int n;
} wg_line_chart;

void wg_line_chart_figure(const wg_plot_out *to, const wg_line_chart *c); /* nothing without gnuplot or curves */

#endif
