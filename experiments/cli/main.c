/* SPDX-License-Identifier: MIT
 * The `wager` program: finds the command and runs it. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/json.h"
#include "core/base/json_line.h"
#include "core/base/log.h"
#include "core/model/device.h"
#include "experiments/cli/cli.h"

/* The final exit status: the command's, or failure if output was lost (a full disk) or JSON is incomplete for lack of memory. A
 * closed pipe is not a failure. */
static int end(int status)
{
    struct stat out;
    if (wg_json_incomplete()) {
        fputs("wager: out of memory for JSON; the output is not complete\n", stderr);
        if (status == WG_EXIT_OK) status = WG_EXIT_FAILED;
    }
    const bool lost = fflush(stdout) != 0 || ferror(stdout);
    if (!lost || status != WG_EXIT_OK || fstat(STDOUT_FILENO, &out) || S_ISFIFO(out.st_mode) || S_ISSOCK(out.st_mode))
        return status;
    fputs("wager: standard output: cannot write all of the output; is the disk full?\n", stderr);
    return WG_EXIT_FAILED;
}

int main(int argc, char **argv)
{
    signal(SIGPIPE, SIG_IGN); /* a closed pipe becomes an error of write() */
    wg_log_to(wg_log_to_stderr, NULL);
    wg_json_watch_memory();
    if (argc < 2) {
        wg_cli_usage(stderr);
        return WG_EXIT_USAGE;
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
        wg_cli_usage(stdout);
        return end(WG_EXIT_OK);
    }
    if (!strcmp(argv[1], "--version")) {
        puts("wager " WG_VERSION);
        return end(WG_EXIT_OK);
    }
    wg_error err;
    if (wg_cpu_check(&err)) {
        fprintf(stderr, "wager: %s\n", err.text);
        return WG_EXIT_USAGE;
    }
    const wg_command *c = wg_cli_command(argv[1]);
    return c ? end(c->run(argc - 1, argv + 1)) : WG_EXIT_USAGE;
}
