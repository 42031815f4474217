/* SPDX-License-Identifier: MIT
 * Sections of a report, a file each; `cells` are those of summary.json. */
#ifndef WG_EXPERIMENTS_REPORT_REPORT_PARTS_H
#define WG_EXPERIMENTS_REPORT_REPORT_PARTS_H

#include "core/base/json_number.h"
#include "experiments/report/forest_plot.h"
#include "experiments/report/plot.h"
#include "experiments/report/report.h"

/* In order: a number by its format, "-" for NaN; a number as a table cell; a number with its interval; a cell's name; a
 * cell's name as the head of its row, with the number that `wager compare` uses. */
void wg_report_put(FILE *f, const char *format, double v);
void wg_report_td(FILE *f, const char *format, double v);
void wg_report_interval(FILE *f, const json_t *o, const char *key, const char *interval, const char *unit);
void wg_report_name(FILE *f, const wg_run_reader *run, size_t cell);
void wg_report_row(FILE *f, const wg_run_reader *run, size_t cell);

/* By the list of columns (columns.h), in order: a column's head; a value with its interval; a table of all cells with the
 * columns shown in that place; the explanation of the page's columns. */
void wg_report_head(FILE *f, const wg_column *c);
void wg_report_value(FILE *f, const wg_column *c, const json_t *o);
void wg_report_columns(FILE *f, const wg_run_reader *run, const json_t *cells, unsigned shown, const char *caption);
void wg_report_words(FILE *f);

/* The cell with the largest speed-up; -1 when none has one. */
int wg_report_best(const json_t *cells);

/* Counts of cells by their intervals, and of those that need attention. */
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
void wg_report_plot_drafters(const wg_plot_out *to, const wg_run_reader *run, const json_t *cells); /* and categories */
void wg_report_plot_temperatures(const wg_plot_out *to, const wg_run_reader *run, const json_t *cells);
void wg_report_plot_batches(const wg_plot_out *to, const wg_run_reader *run, const json_t *cells);
void wg_report_plot_isolines(const wg_plot_out *to, const wg_run_reader *run, const json_t *cells);
void wg_report_plot_losses(const wg_plot_out *to, const wg_run_reader *run, const json_t *cells);
void wg_report_plot_ttft(const wg_plot_out *to, const wg_run_reader *run, const json_t *cells);
void wg_report_plot_tpot(const wg_plot_out *to, const wg_run_reader *run, const json_t *cells);

/* For drawings: a number with its interval; "12  length=4, rule=match", the number that `wager compare` uses and the cell's
 * name (wg_free); at most `most` cells, fastest first, of those whose `list` (NULL: any) has `least` elements or more. */
wg_estimate_ci wg_report_estimate(const json_t *o, const char *key, const char *interval);
char *wg_report_numbered(const wg_run_reader *run, size_t cell);
int wg_report_fastest(const json_t *cells, size_t *chosen, int most, const char *list, size_t least);

/* Writes nothing without a trace of probabilities. */
void wg_report_confidence(const wg_plot_out *to, const wg_run_reader *run, const json_t *cells, bool drawings);
void wg_report_acceptance(FILE *f, const wg_run_reader *run, const json_t *cells);
void wg_report_use(FILE *f, const wg_run_reader *run, const json_t *cells);
void wg_report_transcripts(FILE *f, const wg_run_reader *run, int cell);

#endif
