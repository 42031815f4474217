/* SPDX-License-Identifier: MIT
 * Words of commands that people paste into a shell. */
#ifndef WG_EXPERIMENTS_BASE_SHELL_WORD_H
#define WG_EXPERIMENTS_BASE_SHELL_WORD_H

#include <stdio.h>

/* Writes s as one word of a POSIX shell: as it is where no character of it means anything there, else in single quotes. */
void wg_put_shell_word(FILE *f, const char *s);

#endif
