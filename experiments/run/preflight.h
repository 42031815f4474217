/* SPDX-License-Identifier: MIT
 * What is known of a run when everything is open and nothing has run: cells that cannot be opened, and warnings of settings
 * that have another effect than they seem to have. Each text stands once, whatever the number of its cells. */
#ifndef WG_EXPERIMENTS_RUN_PREFLIGHT_H
#define WG_EXPERIMENTS_RUN_PREFLIGHT_H

#include <stdio.h>

#include "experiments/config/sweep.h"
#include "experiments/run/runner_batch.h"

enum { WG_PREFLIGHT_TEXT = 1000, WG_PREFLIGHT_MOST = 24 };

typedef struct wg_preflight_line {
    char text[WG_PREFLIGHT_TEXT];
    bool cell[WG_CELLS_MAX]; /* whose it is; none: the config's */
    wg_status status;        /* WG_OK: a warning */
} wg_preflight_line;

typedef struct wg_preflight {
    wg_preflight_line line[WG_PREFLIGHT_MOST];
    int n;
} wg_preflight;

/* Notes why a cell cannot be opened. */
void wg_preflight_refuse(wg_preflight *p, int cell, wg_status s, const wg_error *why);
/* The refusals as one error, with the status of the first; WG_OK: there are none. */
wg_status wg_preflight_status(const wg_preflight *p, wg_error *err);

/* Notes warnings: those that a config has by itself, and those of an open group, whose prompts are encoded. */
void wg_preflight_config(wg_preflight *p, const wg_config *c);
void wg_preflight_group(wg_preflight *p, const wg_group *g);
void wg_preflight_print(FILE *f, const wg_preflight *p, const char *before);

#endif
