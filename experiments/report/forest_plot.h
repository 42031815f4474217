/* SPDX-License-Identifier: MIT
 * Forest plots: ratios with their intervals, one below the other, beside the line at 1. */
#ifndef WG_EXPERIMENTS_REPORT_FOREST_PLOT_H
#define WG_EXPERIMENTS_REPORT_FOREST_PLOT_H

#include "experiments/report/plot.h"

typedef struct wg_estimate_ci {
    double v, lo, hi;
} wg_estimate_ci; /* lo, hi NaN: no interval; v NaN: none */

/* A name above its points, or with `under` a name at the left of its points, which belong to the row before. */
typedef struct wg_forest_plot_row {
    char *name; /* owned by the caller */
    bool under;
    wg_estimate_ci point[2]; /* a filled circle; an open diamond a little below */
} wg_forest_plot_row;

typedef struct wg_forest_plot {
    const char *title, *caption, *axis;
    const char *series[2]; /* what circle and diamond are; both NULL: no legend */
    int digits;            /* behind the point, of numbers */
    const wg_forest_plot_row *row;
    int n;
} wg_forest_plot;

/* Nothing is written when no row has a point, when there are more rows than a page can show (400), or without gnuplot. */
void wg_forest_plot_figure(const wg_plot_out *to, const wg_forest_plot *forest);

#endif
