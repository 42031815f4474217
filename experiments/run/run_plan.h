/* SPDX-License-Identifier: MIT
 * What a config would run, in words. */
#ifndef WG_EXPERIMENTS_RUN_RUN_PLAN_H
#define WG_EXPERIMENTS_RUN_RUN_PLAN_H

#include <stdio.h>

#include "experiments/config/config.h"

/* Question, files, number of cells, requests, tokens and passes, memory and disk, then a line per cell. seconds < 0: no
 * estimate of the time. */
void wg_layer_plan_print(FILE *f, const wg_config *c, double seconds);

#endif
