/* SPDX-License-Identifier: MIT
 * Findings before a run, when everything is open: cells that cannot be opened, and warnings of settings with unexpected
 * effects. Each text is reported once, with all its cells. */
#ifndef WG_EXPERIMENTS_RUN_PREFLIGHT_H
#define WG_EXPERIMENTS_RUN_PREFLIGHT_H

#include <stdio.h>

#include "experiments/config/sweep.h"
#include "experiments/run/runner_batch.h"

enum { WG_PREFLIGHT_TEXT = 1000, WG_PREFLIGHT_MOST = 24 };

typedef struct wg_preflight_line {
    char text[WG_PREFLIGHT_TEXT];
    bool cell[WG_CELLS_MAX]; /* cells of the finding; none: the config's */
    wg_status status;        /* WG_OK: a warning; else a refusal */
} wg_preflight_line;

typedef struct wg_preflight {
    wg_preflight_line line[WG_PREFLIGHT_MOST];
    int n;
} wg_preflight;

/* Records why a cell cannot be opened. */
void wg_preflight_refuse(wg_preflight *p, int cell, wg_status s, const wg_error *why);
/* All refusals as one error, with the status of the first; WG_OK: there are none. */
wg_status wg_preflight_status(const wg_preflight *p, wg_error *err);

/* Records warnings: those of a config, and those of an open group with encoded prompts. */
void wg_preflight_config(wg_preflight *p, const wg_config *c);
void wg_preflight_group(wg_preflight *p, const wg_group *g);
void wg_preflight_print(FILE *f, const wg_preflight *p, const char *before);

#endif
