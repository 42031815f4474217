/* SPDX-License-Identifier: MIT
 * Drawings by gnuplot, a program that may or may not be there when a report is written. In a page a drawing stands twice, for
 * wide and for narrow screens: its text is the page's text, its colours are the style sheet's. As an SVG file it stands once,
 * wide, with the light colours of the style sheet written out and the legend drawn below it. */
#ifndef WG_EXPERIMENTS_REPORT_PLOT_H
#define WG_EXPERIMENTS_REPORT_PLOT_H

#include <stdbool.h>
#include <stdio.h>

enum { WG_PLOT_BROAD = 760, WG_PLOT_SLIM = 360, WG_PLOT_SERIES = 8 }; /* pixels of the two widths; colours */

/* Writes a gnuplot script for a drawing of that width; returns its height in pixels, or 0 when there is nothing to draw. */
typedef int wg_plot_draw(FILE *script, int width, const void *arg);

/* Entry i of a legend. */
typedef struct wg_plot_key {
    const char *name, *symbol; /* borrowed; symbol: UTF-8 */
    int series;                /* its colour, of WG_PLOT_SERIES */
} wg_plot_key;

typedef struct wg_plot {
    const char *title, *caption; /* text alternative of the drawing; the sentence below it */
    wg_plot_draw *draw;
    const void *arg;
    bool (*legend)(const void *arg, int i, wg_plot_key *out); /* false behind the last entry; NULL: no legend */
} wg_plot;

/* Where a drawing goes: into a page, as a <figure>, or alone into a file of its own. */
typedef struct wg_plot_out {
    FILE *f;
    bool svg;
} wg_plot_out;

/* Is there a gnuplot that runs? */
bool wg_plot_available(void);

/* Writes a <figure> with both drawings inline, or an SVG file; false, and nothing written, when gnuplot made none. */
bool wg_plot_figure(const wg_plot_out *to, const wg_plot *p);

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
