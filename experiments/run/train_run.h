/* SPDX-License-Identifier: MIT
 * A training run in a folder: config.json, token files made from the text, train.jsonl, checkpoints, and at the end the model
 * NAME.gguf. docs/training.md describes the files. */
#ifndef WG_EXPERIMENTS_RUN_TRAIN_RUN_H
#define WG_EXPERIMENTS_RUN_TRAIN_RUN_H

#include "experiments/config/train_config.h"

typedef struct wg_train_run_options {
    const char *folder;
    int threads;           /* 0: the cores this process may run on */
    const char *device;    /* device of the training (wg_device_open); NULL: cpu */
    bool resume, progress; /* progress: an updated line on stderr */
    const volatile sig_atomic_t *stop;
} wg_train_run_options;

typedef struct wg_train_result {
    char model[2 * WG_OPTION_STRING + 64]; /* path of the model's file; "": not written */
    long step, steps, rows;                /* rows: those with a loss, in this process */
    double loss, held, seconds;            /* loss of the last step; held-out loss, NaN: none */
    int64_t parameters;
} wg_train_result;

/* Errors: those of config, files and training; EINVAL: the folder has a run and resume is not set. After EINTERRUPTED the run
 * can be resumed. */
wg_status wg_train_run(const wg_train_config *c, const wg_train_run_options *o, wg_train_result *out, wg_error *err);

#endif
