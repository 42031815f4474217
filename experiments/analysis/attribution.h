/* SPDX-License-Identifier: MIT
 * Why a draft is not accepted, from the rows of a trace (METHODS F12, F13). Where tokens go: what the drafter loses (1 -
 * alpha*), what the rule loses (alpha* minus what it kept). What alpha would be if: the draft were drawn at another temperature
 * or from its nucleus, had a smaller vocabulary, or were another cell's at the very same prefixes (a quantised draft or cache).
 * And whether the drafter's confidence means what it says: reliability, expected calibration error (ECE) and the area under the
 * ROC curve (AUC), by depth, of every signal that q carries. */
#ifndef WG_EXPERIMENTS_ANALYSIS_ATTRIBUTION_H
#define WG_EXPERIMENTS_ANALYSIS_ATTRIBUTION_H

#include "experiments/analysis/replay.h"

/* The object of one cell (docs/traces.md has its fields); null where the trace has nothing to say. whole: with what alpha would
 * be if, which takes much longer than the rest. */
wg_status wg_attribution(json_t **out, wg_trace *t, int cell, bool whole, wg_error *err);

/* "attribution" into each of a summary's cells, from a run's trace; not the whole. */
wg_status wg_attribution_add(json_t *summary, const char *trace, wg_error *err);

/* For people. */
void wg_attribution_print(FILE *f, const json_t *v);

#endif
