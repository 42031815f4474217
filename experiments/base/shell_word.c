/* SPDX-License-Identifier: MIT
 * Shell words (shell_word.h). */
#include "experiments/base/shell_word.h"

#include <string.h>

void wg_put_shell_word(FILE *f, const char *s)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-+:=,@%";
    if (*s && strspn(s, plain) == strlen(s)) {
        fputs(s, f);
        return;
    }
    fputc('\'', f);
    for (; *s; s++)
        if (*s == '\'') fputs("'\\''", f);
        else fputc(*s, f);
    fputc('\'', f);
}
