/* SPDX-License-Identifier: MIT
 * The `wager` program: finds the command and runs it. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "core/base/option.h"
#include "experiments/cli/cli.h"

static void usage(FILE *f)
{
    fputs("wager: speculative decoding, measured and proved\n\ncommands:\n", f);
    for (const wg_command *c = wg_commands; c->name; c++) fprintf(f, "  %-12s %s\n", c->name, c->doc);
    fputs("\nwager COMMAND --help explains one. First steps: ./quickstart.sh, then wager generate.\n", f);
}

int main(int argc, char **argv)
{
    signal(SIGPIPE, SIG_IGN); /* a closed pipe is an error of write(), no signal */
    if (argc < 2) {
        usage(stderr);
        return WG_EXIT_USAGE;
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
        usage(stdout);
        return WG_EXIT_OK;
    }
    if (!strcmp(argv[1], "--version")) {
        puts("wager " WG_VERSION);
        return WG_EXIT_OK;
    }
    const char *names[32];
    int n = 0;
    for (const wg_command *c = wg_commands; c->name; c++) {
        if (!strcmp(c->name, argv[1])) return c->run(argc - 1, argv + 1);
        names[n++] = c->name;
    }
    names[n] = NULL;
    const char *near = wg_nearest(argv[1], names);
    fprintf(stderr, "wager: there is no command '%s'%s%s%s; wager --help lists them\n", argv[1], near ? " (did you mean '" : "",
            near ? near : "", near ? "'?)" : "");
    return WG_EXIT_USAGE;
}
