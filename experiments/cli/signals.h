/* SPDX-License-Identifier: MIT
 * Interrupting long commands by a signal. */
#ifndef WG_EXPERIMENTS_CLI_SIGNALS_H
#define WG_EXPERIMENTS_CLI_SIGNALS_H

#include <signal.h>

/* Installs handlers: the first Ctrl-C or SIGTERM sets the returned number, the second ends the process. A file over the size
 * limit becomes an error of write() instead of a signal. */
const volatile sig_atomic_t *wg_cli_catch_signals(void);

#endif
