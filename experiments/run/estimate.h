/* SPDX-License-Identifier: MIT
 * The cost of a config in memory, disk and time, estimated before the run. */
#ifndef WG_EXPERIMENTS_RUN_ESTIMATE_H
#define WG_EXPERIMENTS_RUN_ESTIMATE_H

#include "experiments/config/config.h"

/* Bytes, from the headers of the files alone. */
typedef struct wg_memory {
    double target, draft; /* weights: each target once, a draft model once per cell that has one */
    double cache;         /* upper bound: caches of every arm, with a batch of sequences of full context */
    double disk;          /* the result folder without trace.wgt, approximately */
    double trace;         /* upper bound of trace.wgt; 0: the run writes none */
} wg_memory;
/* Bytes of a model's file, or of the weights in its folder; model: a path or a name of `wager pull`. 0 where there is none. */
double wg_model_file_bytes(const char *model);
wg_status wg_estimate_memory(wg_memory *out, const wg_config *c, wg_error *err);

/* Runs the first prompts of every cell for a few tokens in a temporary folder and extrapolates to the seconds of the whole run,
 * with prefill, without loading. `path` and `set`: the arguments with which the config was opened. */
wg_status wg_estimate_time(double *seconds, const wg_config *c, const char *path, const char *const *set, int n_set,
                           wg_error *err);

#endif
