/* SPDX-License-Identifier: MIT
 * Forest plots: ratios with their intervals, in rows, with a line at 1. */
#ifndef WG_EXPERIMENTS_REPORT_FOREST_PLOT_H
#define WG_EXPERIMENTS_REPORT_FOREST_PLOT_H

#include "experiments/report/plot.h"

typedef struct wg_estimate_ci {
    double v, lo, hi;
} wg_estimate_ci; /* lo, hi NaN: no interval; v NaN: no value */

/* A row. Its name stands above its points; with `under` it stands at their left, as a part of the previous row. */
typedef struct wg_forest_plot_row {
    char *name; /* owned by the caller */
    bool under;
    wg_estimate_ci point[2]; /* drawn as a filled circle; as an open diamond a little below */
} wg_forest_plot_row;

typedef struct wg_forest_plot {
    const char *title, *caption, *axis;
    const char *series[2]; /* legend texts of circle and diamond; both NULL: no legend */
    int digits;            /* decimals of printed numbers */
    const wg_forest_plot_row *row;
    int n;
} wg_forest_plot;

/* Writes nothing when no row has a point, when there are more rows than fit a page (400), or without gnuplot. */
void wg_forest_plot_figure(const wg_plot_out *to, const wg_forest_plot *forest);

#endif
