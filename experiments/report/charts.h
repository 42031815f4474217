/* SPDX-License-Identifier: MIT
 * The kinds of drawings. None writes anything without gnuplot or without points. */
#ifndef WG_EXPERIMENTS_REPORT_CHARTS_H
#define WG_EXPERIMENTS_REPORT_CHARTS_H

#include "experiments/report/plot.h"

/* ---- forest plots: ratios with their intervals, in rows, with a line at 1 */

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

/* ---- line charts: curves over a common x, each with a colour, a symbol and a legend entry */

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

/* ---- scatter plots: a point for each cell, and a line through the points of the Pareto front */

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
} wg_scatter_plot;

void wg_scatter_plot_figure(const wg_plot_out *to, const wg_scatter_plot *o); /* nothing without gnuplot or points */

#endif
