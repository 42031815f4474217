/* SPDX-License-Identifier: MIT
 * wager serve: starts wager-serve, the program that stands beside this one. It is one of its own because it needs a library for
 * HTTP that nothing else here needs. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "experiments/cli/cli.h"
#include "experiments/cli/commands.h"

int wg_cmd_serve(int argc, char **argv)
{
    static const char name[] = "wager-serve";
    char path[4096];
    (void)argc;
    argv[0] = (char *)name;
    const ssize_t n = readlink("/proc/self/exe", path, sizeof path - sizeof name);
    char *base = n > 0 ? memrchr(path, '/', (size_t)n) : NULL;
    if (base) {
        strcpy(base + 1, name);
        execv(path, argv);
    }
    if (!base || errno == ENOENT) execvp(name, argv);
    if (errno == ENOENT)
        fputs("wager serve: there is no program wager-serve beside this one or on the PATH; it is built where libmicrohttpd is (Debian: "
              "apt-get install libmicrohttpd-dev), then configure and build again\n",
              stderr);
    else fprintf(stderr, "wager serve: cannot start wager-serve: %s\n", strerror(errno));
    return WG_EXIT_FAILED;
}
