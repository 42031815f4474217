/* SPDX-License-Identifier: MIT
 * The flags that all commands which train share. */
#ifndef WG_EXPERIMENTS_CLI_TRAINING_FLAGS_H
#define WG_EXPERIMENTS_CLI_TRAINING_FLAGS_H

#include "experiments/cli/cli.h"

typedef struct wg_training_flags {
    const char *config;       /* the file */
    const char *out, *device; /* device NULL: not said */
    wg_flag_list set;
    long threads; /* 0: not said */
    bool resume, json;
} wg_training_flags;

/* Parses as wg_cli_parse does, whose result it returns: -1 to continue. threads_0: what 0 threads are, for --help. */
int wg_training_flags_parse(wg_training_flags *f, const char *command, const char *threads_0, int argc, char **argv);

#endif
