/* SPDX-License-Identifier: MIT
 * Drawings by gnuplot, a program that may or may not be there when a report is written. A drawing is made twice, for wide and
 * for narrow screens, and becomes part of the page: its text is the page's text, its colours are the style sheet's. */
#ifndef WG_EXPERIMENTS_REPORT_PLOT_H
#define WG_EXPERIMENTS_REPORT_PLOT_H

#include <stdbool.h>
#include <stdio.h>

enum { WG_PLOT_BROAD = 760, WG_PLOT_SLIM = 360, WG_PLOT_SERIES = 8 }; /* pixels of the two widths; colours */

/* Writes a gnuplot script for a drawing of that width; returns its height in pixels, or 0 when there is nothing to draw. */
typedef int wg_plot_draw(FILE *script, int width, const void *arg);

typedef struct wg_plot {
    const char *title, *caption; /* what it shows, for those who do not see it; what to read from it */
    wg_plot_draw *draw;
    const void *arg;
    void (*legend)(FILE *f, const void *arg); /* HTML below the drawing; NULL: none */
} wg_plot;

/* Is there a gnuplot that runs? */
bool wg_plot_available(void);

/* <figure> with both drawings, inline; false, and nothing written, when gnuplot made none. */
bool wg_plot_figure(FILE *f, const wg_plot *p);

/* The style sheet's colour s of a series (mod WG_PLOT_SERIES), as gnuplot knows it, and its symbol: gnuplot's number, UTF-8. */
const char *wg_plot_colour(int series);
int wg_plot_point(int series);
const char *wg_plot_symbol(int series);

/* A label for a script, in single quotes: at most `most` characters, no escapes, valid where it is cut. */
void wg_plot_label(FILE *script, const char *text, int most);

/* A string in double quotes for a script's data: what a point says of itself. Drawn "with labels hypertext", it becomes the
 * title of that point in the page, and the script of the page lets the keyboard go from point to point. */
void wg_plot_note(FILE *script, const char *format, ...) __attribute__((format(printf, 2, 3)));
void wg_plot_script(FILE *f);

/* Sets what all drawings have in common. */
void wg_plot_look(FILE *script);

#endif
