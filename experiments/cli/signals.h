/* SPDX-License-Identifier: MIT
 * The end of long commands by a signal. */
#ifndef WG_EXPERIMENTS_CLI_SIGNALS_H
#define WG_EXPERIMENTS_CLI_SIGNALS_H

#include <signal.h>

/* From now on the first Ctrl-C or SIGTERM sets the number that this returns, and the second one ends the process; a file that
 * may not grow is an error of write(), no signal. */
const volatile sig_atomic_t *wg_cli_catch_signals(void);

#endif
