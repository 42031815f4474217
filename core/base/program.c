/* SPDX-License-Identifier: MIT
 * See program.h. */
#include "core/base/program.h"

static const char *program = "wager";

const char *wg_program(void) { return program; }
void wg_program_set(const char *word) { program = word; }
