/* SPDX-License-Identifier: MIT
 * The progress line on stderr during a run: position, speed of both sides so far, and time left. */
#ifndef WG_EXPERIMENTS_RUN_PROGRESS_H
#define WG_EXPERIMENTS_RUN_PROGRESS_H

#include "experiments/record/run_writer.h"

typedef struct wg_progress {
    bool on;
    int groups, repeats;
    long requests, done;
    double start, shown;
    double seconds[2], tokens[2], passes; /* of cells [0] and baselines [1] */
} wg_progress;

void wg_progress_open(wg_progress *p, bool on, long requests, int groups, int repeats);
void wg_progress_add(wg_progress *p, const wg_request *q);
void wg_progress_show(wg_progress *p, int group, int prompt, int prompts, int repeat); /* at most five times a second */
void wg_progress_close(wg_progress *p);                                                /* clears the line */

#endif
