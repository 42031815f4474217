/* SPDX-License-Identifier: MIT
 * Curves over one axis, each with its colour, its symbol and a line of the legend. */
#ifndef WG_EXPERIMENTS_REPORT_LINE_CHART_H
#define WG_EXPERIMENTS_REPORT_LINE_CHART_H

#include "experiments/report/plot.h"

typedef struct wg_curve_point { double x, y, lo, hi; } wg_curve_point; /* lo, hi NaN: no interval */
typedef struct wg_curve { char *name; wg_curve_point *point; int n; } wg_curve;

typedef struct wg_curves {
    const char *title, *caption, *x, *y;
    const char *range; /* of y, as gnuplot writes it: "[0:1]" */
    const wg_curve *curve;
    int n;
} wg_curves;

void wg_curves_figure(const wg_plot_out *to, const wg_curves *c); /* nothing without gnuplot or curves */

#endif
