/* SPDX-License-Identifier: MIT
 * Drawings by gnuplot, which may or may not be installed when a report is written. A page contains each drawing twice, for
 * wide and for narrow screens, with the page's font and the colours of the style sheet. A file of its own (SVG or PDF)
 * contains it once, wide, with the light colours of the style sheet and the legend below. */
#ifndef WG_EXPERIMENTS_REPORT_PLOT_H
#define WG_EXPERIMENTS_REPORT_PLOT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

enum { WG_PLOT_BROAD = 760, WG_PLOT_SLIM = 360, WG_PLOT_SERIES = 8 }; /* the two widths in pixels; number of colours */

/* Writes a gnuplot script for a drawing of that width; returns its height in pixels, or 0 when there is nothing to draw. The
 * variable `below` of the script is the share of the height that the legend takes: a drawing that places something by screen
 * coordinates writes the height h as "below+(1-below)*h". */
typedef int wg_plot_draw(FILE *script, int width, const void *arg);

/* Entry i of a legend. */
typedef struct wg_plot_key {
    const char *name, *symbol; /* borrowed; symbol: UTF-8 */
    int series;                /* index of its colour, below WG_PLOT_SERIES */
} wg_plot_key;

typedef struct wg_plot {
    const char *title, *caption; /* text alternative of the drawing; the sentence below it */
    wg_plot_draw *draw;
    const void *arg;
    bool (*legend)(const void *arg, int i, wg_plot_key *out); /* false behind the last entry; NULL: no legend */
} wg_plot;

/* The form of a drawing: an element of a page's document, or a file of its own. */
typedef enum wg_plot_form { WG_PLOT_PAGE, WG_PLOT_SVG, WG_PLOT_PDF } wg_plot_form;

/* The destination of drawings. f: the file, where the form is one. about: the last sentence of every caption (machine,
 * model, n), or NULL. captions: gets the caption of each drawing that was written, or NULL. page: with WG_PLOT_PAGE, the
 * list to which a drawing is appended: {"title", "caption", "legend": [{"name", "symbol", "series"}], "broad" and "slim":
 * {"width", "height", "svg"}}. */
typedef struct wg_plot_out {
    FILE *f;
    wg_plot_form form;
    const char *about;
    FILE *captions;
    json_t *page;
} wg_plot_out;

/* Whether gnuplot is installed and can draw this form. */
bool wg_plot_available(wg_plot_form form);

/* Writes one drawing in the form of `to`; false, with nothing written, when gnuplot failed or there is nothing to draw. */
bool wg_plot_figure(const wg_plot_out *to, const wg_plot *p);

/* The colour of a series (modulo WG_PLOT_SERIES) as gnuplot writes it; its symbol as gnuplot's number of a point type; its
 * symbol in UTF-8. */
const char *wg_plot_colour(int series);
int wg_plot_point(int series);
const char *wg_plot_symbol(int series);

/* Writes a label for a script in single quotes: at most `most` characters of the text, cut between characters, without
 * escapes. */
void wg_plot_label(FILE *script, const char *text, int most);

/* Writes a string in double quotes for a script's data: the tooltip of a point. Drawn "with labels hypertext", it becomes
 * the title of that point in the page, whose script moves the keyboard focus from point to point. */
void wg_plot_note(FILE *script, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Writes the settings that all drawings share. */
void wg_plot_look(FILE *script);

#endif
