/* SPDX-License-Identifier: MIT
 * Two or more runs side by side (METHODS: only what was asked of both is compared). The first run is the reference; each other
 * one is held against it, cell by cell, over the requests (prompt, repeat) that ended well in both. */
#ifndef WG_EXPERIMENTS_ANALYSIS_COMPARE_H
#define WG_EXPERIMENTS_ANALYSIS_COMPARE_H

#include <stdio.h>

#include "experiments/record/run_reader.h"

enum { WG_COMPARE_MOST = 16 };

typedef struct wg_compared {
    const wg_run_reader *folder;
    int cell;
} wg_compared; /* cell -1: all, matched by what they sweep */

/* The comparison as JSON (results/README.md has the fields). EINVAL when no cell of the others matches one of the first, or no
 * prompt is common; ENOMEM. */
wg_status wg_compare(json_t **out, const wg_compared *run, int n, wg_error *err);

/* The same for people, as text or as Markdown. */
void wg_compare_print(FILE *f, const json_t *comparison, bool markdown);

/* The same as an HTML page that needs nothing else; drawings: use gnuplot when it is there. */
void wg_compare_page(FILE *f, const json_t *comparison, bool drawings);

/* Is some cell slower than its reference by more than `share` (0.03: 3 %), and is its interval below 1? */
bool wg_compare_slower(const json_t *comparison, double share);

#endif
