/* SPDX-License-Identifier: MIT
 * A distillation in a folder: config.json, token files made from the text, distill.jsonl, checkpoints, and at the end a model
 * NAME.gguf for each student and distill.json. All students are trained together on one stream of rows, for which the target
 * runs once. docs/distillation.md describes the files. */
#ifndef WG_EXPERIMENTS_RUN_DISTILL_RUN_H
#define WG_EXPERIMENTS_RUN_DISTILL_RUN_H

#include <signal.h>

#include "experiments/config/distill_config.h"

typedef struct wg_distill_run_options {
    const char *folder;
    int threads;           /* 0: the config's */
    const char *device;    /* device of the students (wg_device_open); NULL: cpu */
    bool resume, progress; /* progress: an updated line on stderr */
    const volatile sig_atomic_t *stop;
} wg_distill_run_options;

/* *result: the object of distill.json, owned by the caller. Errors: those of config, files, target and training; EINVAL: the
 * folder has a run and resume is not set. After EINTERRUPTED the run can be resumed. */
wg_status wg_distill_run(const wg_distill_config *c, const wg_distill_run_options *o, json_t **result, wg_error *err);

#endif
