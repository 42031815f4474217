/* SPDX-License-Identifier: MIT
 * Words of commands that people paste into a shell. */
#ifndef WG_EXPERIMENTS_BASE_SHELL_WORD_H
#define WG_EXPERIMENTS_BASE_SHELL_WORD_H

#include <stdio.h>

/* Writes s as one word of a POSIX shell: unchanged if the shell gives none of its characters a meaning, else in single
 * quotes. */
void wg_put_shell_word(FILE *f, const char *s);

#endif
