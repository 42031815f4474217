/* SPDX-License-Identifier: MIT
 * The checks of a sweep's cells. Internal to the files of config. */
#ifndef WG_EXPERIMENTS_CONFIG_CONFIG_CELL_H
#define WG_EXPERIMENTS_CONFIG_CONFIG_CELL_H

#include "core/setup/setup_check.h"
#include "experiments/config/config.h"
#include "experiments/config/sweep.h"

typedef struct wg_cell_checker {
    wg_checker c; /* first member, since wg_checker.origin of a cell casts it */
    wg_grid grid[WG_GRIDS];
    int n_grids;
    const wg_grid *now; /* the grid of the checked cell, and */
    int at[WG_AXES];    /* the index of its value on each axis */
} wg_cell_checker;

/* Checks of a whole cell: required values, rule against drafter, files. Fills cell->dataset through the owner's `dataset`. */
void wg_check_cell(wg_checker *c, wg_cell *cell, wg_config *owner);

/* open parses "a.b=value", whose doc and text the caller closes; apply sets it in a config; value: the text behind the "=". */
wg_status wg_override_open(wg_override *o, const char *text, wg_error *err);
void wg_override_apply(wg_checker *c, json_t *root, wg_override *o, const char *value);

#endif
