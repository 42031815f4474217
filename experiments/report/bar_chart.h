/* SPDX-License-Identifier: MIT
 * Grouped bar charts: for each name on the axis a group of bars, one for each series, with intervals. */
#ifndef WG_EXPERIMENTS_REPORT_BAR_CHART_H
#define WG_EXPERIMENTS_REPORT_BAR_CHART_H

#include "experiments/report/forest_plot.h"

typedef struct wg_bar_chart {
    const char *title, *caption, *y;
    char *const *group;          /* (groups) names below the axis */
    char *const *series;         /* (n) entries of the legend */
    const wg_estimate_ci *value; /* (groups, n) heights with intervals; v NaN: no bar */
    int groups, n;
    double line; /* a dashed line at this value; NaN: none */
} wg_bar_chart;

void wg_bar_chart_figure(const wg_plot_out *to, const wg_bar_chart *c); /* nothing without gnuplot or bars */

#endif
