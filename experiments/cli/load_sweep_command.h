/* SPDX-License-Identifier: MIT
 * The command wager load --sweep. */
#ifndef WG_EXPERIMENTS_CLI_LOAD_SWEEP_COMMAND_H
#define WG_EXPERIMENTS_CLI_LOAD_SWEEP_COMMAND_H

#include <stdbool.h>

/* Runs the sweep of a config into a folder; returns the exit status. */
int wg_load_sweep_command(const char *config, const char *folder, bool resume);

#endif
