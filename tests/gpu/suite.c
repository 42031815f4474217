/* SPDX-License-Identifier: MIT
 * gpu_suite NAME ARGUMENTS: the program NAME. */
#include "tests/gpu/suite.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name, *what;
    int (*run)(int argc, char **argv);
} program[] = {
#define X(name, what) { #name, what, wg_suite_##name },
    WG_SUITE(X)
#undef X
};
enum { PROGRAMS = sizeof program / sizeof program[0] };

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    for (int i = 0; i < PROGRAMS; i++)
        if (strcmp(name, program[i].name) == 0) return program[i].run(argc - 1, argv + 1);
    FILE *to = strcmp(name, "--help") == 0 ? stdout : stderr;
    fprintf(to, "usage: gpu_suite PROGRAM [ARGUMENTS]\n");
    for (int i = 0; i < PROGRAMS; i++) fprintf(to, "  %-12s %s\n", program[i].name, program[i].what);
    return to == stdout ? 0 : 2;
}
