/* SPDX-License-Identifier: MIT
 * Comparison of two or more runs. The first run is the reference; each other run is compared with it, cell by cell, over the
 * requests (prompt, repeat) that succeeded in both. Runs with the same config, program, machine and files form one sample if
 * there is another sample. */
#ifndef WG_EXPERIMENTS_ANALYSIS_COMPARE_H
#define WG_EXPERIMENTS_ANALYSIS_COMPARE_H

#include <stdio.h>

#include "experiments/analysis/paired_requests.h"

/* The comparison as JSON (results/README.md has the fields). EINVAL when no cell of the others matches one of the first, or no
 * prompt is common; ENOMEM. */
wg_status wg_compare(json_t **out, const wg_compared *run, int n, wg_error *err);

/* Prints a comparison as text or as Markdown. */
void wg_compare_print(FILE *f, const json_t *comparison, bool markdown);

/* Writes a comparison as a self-contained HTML page; drawings: use gnuplot when it is installed. */
void wg_compare_page(FILE *f, const json_t *comparison, bool drawings);

/* The number of cells whose speed-up is below A's by more than `share` (0.03: 3 %) and whose verdict is "slower"; *unknown: the
 * number without a verdict. */
int wg_compare_slower(const json_t *comparison, double share, int *unknown);

#endif
