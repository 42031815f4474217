/* SPDX-License-Identifier: MIT
 * Signals (signals.h). */
#include "experiments/cli/signals.h"

#include <stddef.h>

/* A signal handler can only write to a global. */
static volatile sig_atomic_t stop;
static void on_signal(int number)
{
    (void)number;
    stop = 1;
}

const volatile sig_atomic_t *wg_cli_catch_signals(void)
{
    struct sigaction a = { .sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND | SA_RESTART };
    sigaction(SIGINT, &a, NULL);
    sigaction(SIGTERM, &a, NULL);
    signal(SIGXFSZ, SIG_IGN);
    return &stop;
}
