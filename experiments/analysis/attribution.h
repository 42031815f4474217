/* SPDX-License-Identifier: MIT
 * Attribution of rejections, from the rows of a trace (methods.md, Attribution). Losses: of the drafter (1 - alpha*) and of the
 * rule (alpha* minus its acceptance; null for lossy rules and for those that look ahead). Counterfactual alpha: with the draft
 * drawn at another temperature or from its nucleus, with a smaller vocabulary, or with another cell's q at the same prefixes (a
 * quantised draft or cache). Calibration of the drafter's confidence: reliability, expected calibration error (ECE) and the
 * area under the ROC curve (AUC), by depth, of every signal that q carries, against p of the drafted token (reliability.h). */
#ifndef WG_EXPERIMENTS_ANALYSIS_ATTRIBUTION_H
#define WG_EXPERIMENTS_ANALYSIS_ATTRIBUTION_H

#include "lab/replay.h"

/* The object of one cell (docs/traces.md has its fields); null where the trace lacks the data. whole: with counterfactuals,
 * which take much longer than the rest. */
wg_status wg_attribution(json_t **out, wg_trace *t, int cell, bool whole, wg_error *err);

/* Sets "attribution" in each of a summary's cells, from a run's trace, without counterfactuals. */
wg_status wg_attribution_add(json_t *summary, const char *trace, wg_error *err);

/* Prints the object as text. */
void wg_attribution_print(FILE *f, const json_t *v);

#endif
