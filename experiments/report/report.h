/* SPDX-License-Identifier: MIT
 * A run as a page (report_page.h), drawings, LaTeX and Markdown, and an index of a folder of runs. The page has the question
 * and the answer, the numbers with intervals, their breakdown, texts, and the environment. */
#ifndef WG_EXPERIMENTS_REPORT_REPORT_H
#define WG_EXPERIMENTS_REPORT_REPORT_H

#include <stdio.h>

#include "experiments/report/columns.h"
#include "experiments/record/run_reader.h"
#include "experiments/report/plot.h"

/* The document of a run's page (json_decref). EINVAL when the run has no summary. drawings: use gnuplot when it is
 * installed. */
wg_status wg_report_document(json_t **out, const wg_run_reader *run, bool drawings, wg_error *err);

/* The drawings of the page that this run has data for, as files of a folder, which is made: NAME.svg or NAME.pdf, and
 * captions.txt with a line a file. latex (may be NULL): gets a figure environment for each. *files: the number of drawings.
 * EINVAL: no summary, no gnuplot, or nothing to draw; EIO. */
wg_status wg_report_figures(const char *folder, const wg_run_reader *run, wg_plot_form form, FILE *latex, int *files,
                            wg_error *err);

/* The table as LaTeX, with the rules of booktabs. Errors as above. */
wg_status wg_report_latex(FILE *f, const wg_run_reader *run, const wg_column_choice *columns, wg_error *err);

/* A short report as Markdown: question, answer, table (columns: NULL for the default ones), environment. Errors as above. */
wg_status wg_report_markdown(FILE *f, const wg_run_reader *run, const wg_column_choice *columns, wg_error *err);

/* The document of an index (json_decref): every folder below `dir` (two levels) that has a summary.json, newest first. ENOENT:
 * there is none. */
wg_status wg_report_index(json_t **out, const char *dir, wg_error *err);

#endif
