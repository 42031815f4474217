/* SPDX-License-Identifier: MIT
 * wager prove --drafter: proves a drafter and prints a line for each check. */
#ifndef WG_EXPERIMENTS_CLI_PROVE_DRAFTER_PRINT_H
#define WG_EXPERIMENTS_CLI_PROVE_DRAFTER_PRINT_H

#include <stdbool.h>

#include "verify/proof/text_law.h"

typedef struct wg_prove_drafter_flags {
    const char *spec, *rule;         /* a shared object, or KIND:option=value,...; "all": the usual rule */
    long vocab, length, cases, seed; /* 0: defaults */
    bool json;
} wg_prove_drafter_flags;

/* Returns the exit status; 1: a check fails, or nothing was drafted. */
int wg_prove_drafter_print(const wg_prove_drafter_flags *g);

#endif
