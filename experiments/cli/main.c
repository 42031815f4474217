/* SPDX-License-Identifier: MIT
 * The `wager` program: finds the command and runs it. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/json.h"
#include "core/base/json_line.h"
#include "core/base/log.h"
#include "core/base/program.h"
#include "core/model/device.h"
#include "experiments/base/shell_word.h"
#include "experiments/cli/cli.h"
#include "experiments/cli/cli_ranks.h"

static bool no_output; /* the program was started without a standard output */

/* Takes the places of standard streams that are not there, so that no file which is opened gets what is printed. That of
 * standard output cannot be written. */
static void fill_standard_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
        no_output = no_output || fd == STDOUT_FILENO;
        if (open("/dev/null", fd == STDERR_FILENO ? O_WRONLY : O_RDONLY) != fd) return;
    }
}

/* The exit status of a command, unless its output was lost or is incomplete: a full disk is a failure, and JSON for which
 * there was no memory. A pipe whose reader went away is not: it had enough. */
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
    fputs(no_output ? "wager: standard output is closed; the output is lost\n"
                    : "wager: standard output: cannot write all of the output; is the disk full?\n",
          stderr);
    return WG_EXIT_FAILED;
}

/* The program as it was called, for commands to paste. */
static void say_program(const char *called)
{
    char *word = NULL; /* allocated by open_memstream; kept */
    size_t n;
    FILE *f = called ? open_memstream(&word, &n) : NULL;
    if (!f) return;
    wg_put_shell_word(f, called);
    if (fclose(f) == 0) wg_program_set(word);
}

int main(int argc, char **argv)
{
    fill_standard_streams();
    say_program(argv[0]);
    signal(SIGPIPE, SIG_IGN); /* a closed pipe is an error of write(), no signal */
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
    const int served = wg_cli_ranks(argc, argv);
    if (served >= 0) return served;
    const wg_command *c = wg_cli_command(argv[1]);
    return c ? end(c->run(argc - 1, argv + 1)) : WG_EXIT_USAGE;
}
