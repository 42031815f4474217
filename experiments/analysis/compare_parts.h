/* SPDX-License-Identifier: MIT
 * The numbers of a pair of cells: speed-ups over the plain decoding of their own runs, the ratio of the two, raw times, tau;
 * over all prompts, by category, turn and prompt length; and the prompts that lost most. "Faster" is raw: the reference's
 * decoding time per token over the other's, including changes of the machine between the runs. */
#ifndef WG_EXPERIMENTS_ANALYSIS_COMPARE_PARTS_H
#define WG_EXPERIMENTS_ANALYSIS_COMPARE_PARTS_H

#include <jansson.h>

#include "experiments/analysis/paired_requests.h"
#include "experiments/analysis/verdict.h"

/* The variance between runs, measured from several runs of the samples (`several`) or from the repeats of single ones; 0:
 * unknown. */
typedef struct wg_measured_between {
    wg_between_runs runs;
    bool several;
} wg_measured_between;

/* Adds the numbers to o, and sets the contrast for the pair's verdict. p has at least one pair. False: out of memory. */
bool wg_compare_parts(json_t *o, const wg_paired_requests *p, const wg_common_prompts *c, const wg_measured_between *between,
                      wg_contrast *contrast);

/* The same for two cells of summaries without requests: totals, and an interval as if no prompt were common. */
void wg_compare_totals(json_t *o, const json_t *a, const json_t *b, wg_contrast *contrast);

#endif
