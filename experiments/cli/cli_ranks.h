/* SPDX-License-Identifier: MIT
 * The program among the processes that mpirun started: rank 0 runs the command, the others serve it. */
#ifndef WG_EXPERIMENTS_CLI_CLI_RANKS_H
#define WG_EXPERIMENTS_CLI_CLI_RANKS_H

/* -1: this process runs the command; else the exit status of one that served, or that failed. */
int wg_cli_ranks(int argc, char **argv);

#endif
