/* SPDX-License-Identifier: MIT
 * The flags of all commands that train. */
#ifndef WG_EXPERIMENTS_CLI_TRAINING_FLAGS_H
#define WG_EXPERIMENTS_CLI_TRAINING_FLAGS_H

#include "experiments/cli/cli.h"

typedef struct wg_training_flags {
    const char *config;       /* the file */
    const char *out, *device; /* device NULL: not given */
    wg_flag_list set;
    long threads; /* 0: not given */
    bool resume, json;
} wg_training_flags;

/* Parses like wg_cli_parse and returns its result: -1 to continue. threads_0: the meaning of 0 threads, for --help. */
int wg_training_flags_parse(wg_training_flags *f, const char *command, const char *threads_0, int argc, char **argv);

#endif
