/* SPDX-License-Identifier: MIT
 * wager serve: starts wager-serve, the program that stands beside this one. It is one of its own because it needs a library for
 * HTTP that nothing else here needs. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "experiments/cli/cli.h"
#include "experiments/cli/commands.h"

int wg_cmd_serve(int argc, char **argv)
{
    static const char name[] = "wager-serve";
    char path[4096];
    argv[0] = (char *)name;
    const ssize_t n = readlink("/proc/self/exe", path, sizeof path - sizeof name);
    char *base = n > 0 ? memrchr(path, '/', (size_t)n) : NULL;
    if (base) {
        strcpy(base + 1, name);
        execv(path, argv);
    }
    if (!base || errno == ENOENT) execvp(name, argv);
    const int why = errno;
    const bool help = why == ENOENT && argc > 1 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"));
    fprintf(help ? stdout : stderr,
            "wager serve: cannot start wager-serve, which stands beside this program or on the PATH: %s; it is built where "
            "libmicrohttpd is: apt-get install libmicrohttpd-dev (Debian), then configure and build again\n",
            strerror(why));
    return help ? WG_EXIT_OK : WG_EXIT_FAILED;
}
