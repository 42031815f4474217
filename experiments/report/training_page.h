/* SPDX-License-Identifier: MIT
 * A training run (`wager train`, `wager distill`) as a page or as Markdown: alpha and tau of every family with their intervals
 * and their differences from training on the text alone, and curves of loss and alpha; of an unfinished run what its log
 * has. */
#ifndef WG_EXPERIMENTS_REPORT_TRAINING_PAGE_H
#define WG_EXPERIMENTS_REPORT_TRAINING_PAGE_H

#include "experiments/report/training_log.h"

/* drawings: use gnuplot when it is installed. */
void wg_training_page(FILE *f, const wg_training_log *l, const char *folder, bool drawings);

/* The tables alone. */
void wg_training_markdown(FILE *f, const wg_training_log *l, const char *folder);

#endif
