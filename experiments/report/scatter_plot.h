/* SPDX-License-Identifier: MIT
 * Scatter plots with a point for each cell, and lines through the origin or through the points of the Pareto front. */
#ifndef WG_EXPERIMENTS_REPORT_SCATTER_PLOT_H
#define WG_EXPERIMENTS_REPORT_SCATTER_PLOT_H

#include "experiments/report/forest_plot.h"

typedef struct wg_scatter_point {
    char *name; /* owned by the caller */
    int number; /* drawn beside a point of the front */
    double x;
    wg_estimate_ci y;
    bool front;
} wg_scatter_point;

typedef struct wg_scatter_plot {
    const char *title, *caption, *x, *y;
    const wg_scatter_point *point; /* in the order of x */
    int n;
    bool join;           /* a line through the front */
    const double *slope; /* (slopes) lines y = slope x, named "1.5x" */
    int slopes;
} wg_scatter_plot;

void wg_scatter_plot_figure(const wg_plot_out *to, const wg_scatter_plot *o); /* nothing without gnuplot or points */

#endif
