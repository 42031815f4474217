/* SPDX-License-Identifier: MIT
 * Shell completion and manual pages, generated from the tables of commands and flags. */
#ifndef WG_EXPERIMENTS_CLI_COMPLETION_H
#define WG_EXPERIMENTS_CLI_COMPLETION_H

#include "experiments/cli/cli.h"

/* Writes the script with which a shell completes commands, subcommands, flags and values of `wager` and `wager-serve`. */
void wg_completion_bash(FILE *f);
void wg_completion_zsh(FILE *f);
void wg_completion_fish(FILE *f);

/* Writes the manual page wager-COMMAND(1) of a command, or with NULL wager(1), in the macros of man(7). */
void wg_manual_page(FILE *f, const wg_command *c);

#endif
