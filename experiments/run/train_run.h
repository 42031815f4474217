/* SPDX-License-Identifier: MIT
 * A training run in a folder: config.json, token files made from the text, train.jsonl, checkpoints, and at the end the model
 * NAME.gguf. docs/training.md describes the files. */
#ifndef WG_EXPERIMENTS_RUN_TRAIN_RUN_H
#define WG_EXPERIMENTS_RUN_TRAIN_RUN_H

#include "experiments/config/train_config.h"

typedef struct wg_train_run_options {
    const char *folder;
    int threads;           /* 0: the cores this process may run on */
    const char *device;    /* where it is trained (wg_device_open); NULL: cpu */
    bool resume, progress; /* progress: a line on stderr that is written over */
    const volatile sig_atomic_t *stop;
} wg_train_run_options;

typedef struct wg_train_result {
    char model[2 * WG_OPTION_STRING + 64]; /* path of the file; "": the run did not get there */
    long step, steps, rows;                /* rows: with a loss, in this process */
    double loss, held, seconds;            /* of the last step; held-out, NaN: none */
    int64_t parameters;
} wg_train_result;

/* Errors: those of config, files and training; EINVAL: the folder holds a run already and resume is not set. After EINTERRUPTED
 * the run can be resumed. */
wg_status wg_train_run(const wg_train_config *c, const wg_train_run_options *o, wg_train_result *out, wg_error *err);

#endif
