/* SPDX-License-Identifier: MIT
 * Completion of command lines and manual pages, written from the tables of commands and flags. */
#ifndef WG_EXPERIMENTS_CLI_COMPLETION_H
#define WG_EXPERIMENTS_CLI_COMPLETION_H

#include "experiments/cli/cli.h"

/* The script that has a shell complete commands, forms, flags and values of `wager` and `wager-serve`. */
void wg_completion_bash(FILE *f);
void wg_completion_zsh(FILE *f);
void wg_completion_fish(FILE *f);

/* The manual page of a command, wager-COMMAND(1); NULL: of the program, wager(1). In the macros of man(7). */
void wg_manual_page(FILE *f, const wg_command *c);

#endif
