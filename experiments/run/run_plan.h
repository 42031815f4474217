/* SPDX-License-Identifier: MIT
 * A description of a config's run, for `wager check`. */
#ifndef WG_EXPERIMENTS_RUN_RUN_PLAN_H
#define WG_EXPERIMENTS_RUN_RUN_PLAN_H

#include <stdio.h>

#include "experiments/config/config.h"

/* Prints question, files, number of cells, requests, tokens and passes, memory and disk, warnings, then a line per cell.
 * seconds < 0: no estimate of the time. open: everything is opened as for a run; on an error nothing is printed. Otherwise
 * warnings are the config's alone. */
wg_status wg_run_plan_print(FILE *f, const wg_config *c, double seconds, bool open, wg_error *err);

#endif
