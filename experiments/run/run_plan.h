/* SPDX-License-Identifier: MIT
 * A description of what a config runs, for `wager check`. */
#ifndef WG_EXPERIMENTS_RUN_RUN_PLAN_H
#define WG_EXPERIMENTS_RUN_RUN_PLAN_H

#include <stdio.h>

#include "experiments/config/config.h"

/* Prints question, files, number of cells, requests, tokens and passes, memory and disk, warnings, then a line per cell.
 * seconds < 0: no estimate of the time. open: everything is opened as a run does, or errors are returned and nothing is
 * printed; else warnings are those of the config alone. */
wg_status wg_run_plan_print(FILE *f, const wg_config *c, double seconds, bool open, wg_error *err);

#endif
