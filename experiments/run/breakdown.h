/* SPDX-License-Identifier: MIT
 * The breakdown of a cell of summary.json by prompt category and by turn of conversations. */
#ifndef WG_EXPERIMENTS_RUN_BREAKDOWN_H
#define WG_EXPERIMENTS_RUN_BREAKDOWN_H

#include "experiments/base/stats.h"
#include "experiments/run/runner.h"

/* Sets "categories" (one object per category of the counted prompts; empty when there is only one), and the unweighted means of
 * ratios: "tau_macro" and "speedup_macro" over categories, "speedup_mean_of_prompts". between: the variance between runs, for
 * the intervals of speed-ups. */
void wg_add_categories(json_t *cell, const wg_dataset *prompts, const wg_pairs *p, const wg_between_runs *between);

/* Sets "turns": an object per turn of conversations, from 0; empty if no prompt has several. `questions`: wg_result.turns. */
void wg_add_turns(json_t *cell, const wg_dataset *prompts, const wg_pairs *questions, const wg_between_runs *between);

#endif
