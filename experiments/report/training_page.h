/* SPDX-License-Identifier: MIT
 * A training run (`wager train`, `wager distill`) as a page or as Markdown: alpha and tau of each family with intervals and
 * differences from training on the text alone, and curves of loss and alpha. An unfinished run has what its log has. */
#ifndef WG_EXPERIMENTS_REPORT_TRAINING_PAGE_H
#define WG_EXPERIMENTS_REPORT_TRAINING_PAGE_H

#include <jansson.h>

#include "experiments/report/training_log.h"

/* The document of its page (report_page.h; json_decref). drawings: use gnuplot when it is installed. */
json_t *wg_training_document(const wg_training_log *l, const char *folder, bool drawings);

/* The tables alone. */
void wg_training_markdown(FILE *f, const wg_training_log *l, const char *folder);

#endif
