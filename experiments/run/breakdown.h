/* SPDX-License-Identifier: MIT
 * Parts of a cell of summary.json: acceptance under each of the names it is reported by, and the same numbers by category and
 * by turn. */
#ifndef WG_EXPERIMENTS_RUN_BREAKDOWN_H
#define WG_EXPERIMENTS_RUN_BREAKDOWN_H

#include "experiments/run/runner.h"

/* Every usual definition of acceptance, each under its own name (results/README.md); null where nothing was drafted. */
json_t *wg_acceptance_json(const wg_counts *c);

/* How many steps kept 0, 1, 2 ... draft tokens, up to the deepest that was offered. */
json_t *wg_acceptance_histogram(const wg_counts *c);

/* Sets "categories" (one object per category of the prompts that counted; empty when there is only one), and beside the ratios
 * of totals their unweighted means: "tau_macro", "speedup_macro" over categories, "speedup_mean_of_prompts". */
void wg_add_categories(json_t *cell, const wg_dataset *prompts, const wg_pairs *p, uint64_t seed, double *scratch);

/* Sets "turns": an object per turn of conversations, from 0; empty where none has several. `questions`: wg_result.turns. */
void wg_add_turns(json_t *cell, const wg_dataset *prompts, const wg_pairs *questions, uint64_t seed, double *scratch);

#endif
