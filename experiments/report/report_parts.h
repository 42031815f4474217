/* SPDX-License-Identifier: MIT
 * Parts of a report; `cells` are those of summary.json. */
#ifndef WG_EXPERIMENTS_REPORT_REPORT_PARTS_H
#define WG_EXPERIMENTS_REPORT_REPORT_PARTS_H

#include "experiments/report/charts.h"
#include "experiments/report/plot.h"
#include "experiments/report/report.h"

/* The cell with the largest speed-up; -1 when none has one. */
int wg_report_best(const json_t *cells);

/* Counts of cells, by their intervals and by what needs attention. */
typedef struct wg_tally {
    int faster, slower, undecided, unequal, must_equal, lossy, failed;
} wg_tally;
wg_tally wg_report_tally(const json_t *cells);

/* The answer in sentences, as Markdown, with a line end. */
void wg_report_answer(FILE *f, const wg_run_reader *run, const json_t *cells);

/* All drawings of a page, with their names (report_files.c). */
json_t *wg_report_drawings(const wg_run_reader *run, const json_t *cells);

/* The first texts of a cell, cut into pieces by who wrote them: {"cell", "drafters", "answers": [{"id", "category", "turn",
 * "turns", "tokens", "passes", "accepted", "drafted", "prompt", "cut", "pieces": [[mark, text]]}]}, mark being a class of
 * report.html or ""; no "answers" where the run has no trace of steps, no "pieces" where an answer is not UTF-8. NULL without
 * such a cell. */
json_t *wg_report_texts(const wg_run_reader *run, int cell);

/* Drawings; each writes nothing when it has nothing to show or gnuplot fails. */
void wg_report_plot_speedups(const wg_plot_out *to, const wg_run_reader *run, const json_t *cells);
void wg_report_plot_predicted(const wg_plot_out *to, const wg_run_reader *run, const json_t *cells);
void wg_report_plot_categories(const wg_plot_out *to, const wg_run_reader *run, const json_t *cells);
void wg_report_plot_lengths(const wg_plot_out *to, const wg_run_reader *run, const json_t *cells);
void wg_report_plot_positions(const wg_plot_out *to, const wg_run_reader *run, const json_t *cells);
void wg_report_plot_drafters(const wg_plot_out *to, const wg_run_reader *run, const json_t *cells); /* and categories */
void wg_report_plot_temperatures(const wg_plot_out *to, const wg_run_reader *run, const json_t *cells);
void wg_report_plot_batches(const wg_plot_out *to, const wg_run_reader *run, const json_t *cells);
void wg_report_plot_ttft(const wg_plot_out *to, const wg_run_reader *run, const json_t *cells);
void wg_report_plot_tpot(const wg_plot_out *to, const wg_run_reader *run, const json_t *cells);

/* Draws the chosen cells, each with all its prompts and then each category alone. */
void wg_report_by_category(const wg_plot_out *to, const wg_run_reader *run, const json_t *cells, const size_t *chosen, int n,
                           const char *title, const char *caption);

/* For drawings. wg_report_estimate: a number with its interval. wg_report_numbered: "12 length=4, rule=match", the number of
 * the cell in `wager compare` and its name (wg_free). wg_report_fastest: the indices of at most `most` cells, fastest first,
 * of those whose `list` (NULL: any cell) has at least `least` elements; returns their number. */
wg_estimate_ci wg_report_estimate(const json_t *o, const char *key, const char *interval);
char *wg_report_numbered(const wg_run_reader *run, size_t cell);
int wg_report_fastest(const json_t *cells, size_t *chosen, int most, const char *list, size_t least);

#endif
