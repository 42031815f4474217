/* SPDX-License-Identifier: MIT
 * Sections of a report, each in its file; cells are those of summary.json. */
#ifndef WG_EXPERIMENTS_REPORT_REPORT_PARTS_H
#define WG_EXPERIMENTS_REPORT_REPORT_PARTS_H

#include "experiments/base/json_number.h"
#include "experiments/report/plot.h"
#include "experiments/report/report.h"

/* A number by its format, "-" for NaN; the same as a table's cell; a number with its interval; a cell's name, and as the head
 * of its row, with the number by which compare knows it. */
void wg_report_put(FILE *f, const char *format, double v);
void wg_report_td(FILE *f, const char *format, double v);
void wg_report_interval(FILE *f, const json_t *o, const char *key, const char *interval, const char *unit);
void wg_report_name(FILE *f, const wg_run_reader *run, size_t cell);
void wg_report_row(FILE *f, const wg_run_reader *run, size_t cell);

/* Of the list of columns: a head, a value with its interval; a table of all cells with those that are shown there (columns.h);
 * what the page's columns mean. */
void wg_report_head(FILE *f, const wg_column *c);
void wg_report_value(FILE *f, const wg_column *c, const json_t *o);
void wg_report_columns(FILE *f, const wg_run_reader *run, const json_t *cells, unsigned shown, const char *caption);
void wg_report_words(FILE *f);

/* The cell with the largest speed-up; -1 when none has one. */
int wg_report_best(const json_t *cells);

/* Cells by what their intervals say, and what must be looked at. */
typedef struct wg_tally {
    int faster, slower, undecided, unequal, must_equal, lossy, failed;
} wg_tally;
wg_tally wg_report_tally(const json_t *cells);

/* Drawings; each writes nothing when it has nothing to show or gnuplot fails. */
void wg_report_plot_speedups(const wg_plot_out *to, const wg_run_reader *run, const json_t *cells);
void wg_report_plot_predicted(const wg_plot_out *to, const wg_run_reader *run, const json_t *cells);
void wg_report_plot_categories(const wg_plot_out *to, const wg_run_reader *run, const json_t *cells);
void wg_report_plot_lengths(const wg_plot_out *to, const wg_run_reader *run, const json_t *cells);
void wg_report_plot_positions(const wg_plot_out *to, const wg_run_reader *run, const json_t *cells);

void wg_report_confidence(FILE *f, const wg_run_reader *run,
                          const json_t *cells); /* nothing without a trace of probabilities */
void wg_report_acceptance(FILE *f, const wg_run_reader *run, const json_t *cells);
void wg_report_use(FILE *f, const wg_run_reader *run, const json_t *cells);
void wg_report_transcripts(FILE *f, const wg_run_reader *run, int cell);

#endif
