/* SPDX-License-Identifier: MIT
 * The legal words of flags' values, found by the value's name in the help: drafters, rules, weight types, devices, columns, and
 * choices. Completion and manual pages use them. */
#ifndef WG_EXPERIMENTS_CLI_FLAG_VALUES_H
#define WG_EXPERIMENTS_CLI_FLAG_VALUES_H

#include "experiments/cli/cli.h"

enum { WG_FLAG_VALUES_MOST = 256 };

typedef struct wg_flag_values {
    const char *word[WG_FLAG_VALUES_MOST]; /* in static tables or in `text` */
    int n;                                 /* 0: any text, perhaps the path of a file */
    char text[256];
} wg_flag_values;

void wg_flag_values_of(const wg_flag *f, wg_flag_values *out);

#endif
