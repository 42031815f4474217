/* SPDX-License-Identifier: MIT
 * wager serve: starts wager-serve, the program beside this one. It is a separate program because it alone needs an HTTP
 * library. Its flags, for completion and manual pages, are read from its --help. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/comm/comm.h"
#include "experiments/cli/cli.h"

/* Replaces this process by the program; on failure it returns with errno. */
static void start(char **argv)
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
}

/* Reads the program's help, at most room - 1 bytes; empty if it is missing. */
static void read_help(char *text, size_t room)
{
    int end[2];
    char help[] = "--help", *argv[] = { NULL, help, NULL };
    size_t n = 0;
    *text = '\0';
    if (pipe(end)) return;
    const pid_t child = fork();
    if (child == 0) {
        dup2(end[1], STDOUT_FILENO);
        close(end[0]);
        start(argv);
        _exit(127);
    }
    close(end[1]);
    for (ssize_t more; child > 0 && n + 1 < room && (more = read(end[0], text + n, room - 1 - n)) > 0;) n += (size_t)more;
    text[n] = '\0';
    close(end[0]);
    if (child > 0) waitpid(child, NULL, 0);
}

/* Parses a line " -x, --name VALUE doc" in place into a row; false: another line. */
static bool read_row(char *line, wg_flag *row)
{
    static const char *const nothing = NULL;
    *row = (wg_flag){ .to = (void *)(uintptr_t)&nothing };
    if (strncmp(line, "  -", 3) != 0) return false;
    line += 2;
    if (line[1] != '-') {
        row->letter = line[1];
        line += 4;
    }
    if (strncmp(line, "--", 2) != 0) return false;
    row->name = line + 2;
    line += strcspn(line, " ");
    if (line[0] && line[1] != ' ') {
        *line++ = '\0';
        row->value = line;
        line += strcspn(line, " ");
    }
    if (!*line) return false;
    *line++ = '\0';
    row->doc = line + strspn(line, " ");
    const bool choice = row->value && strchr(row->value, '|') && strncmp(row->value, "FILE|", 5) != 0;
    row->type = !row->value ? WG_FLAG_BOOL : choice ? WG_FLAG_CHOICE : WG_FLAG_STRING;
    return strcmp(row->name, "help") != 0;
}

static int give_flags(char **argv)
{
    enum { MOST = 128 };
    static char text[1 << 16];
    wg_flag row[MOST] = { { 0 } };
    char *save;
    int n = 0;
    read_help(text, sizeof text);
    for (char *line = strtok_r(text, "\n", &save); line && n < MOST - 1; line = strtok_r(NULL, "\n", &save))
        n += read_row(line, &row[n]);
    row[n] = (wg_flag){ 0 };
    return wg_cli_parse("serve", row, 1, argv, NULL, 0, 0);
}

/* The value of --ranks; NULL: not given. */
static const char *ranks_of(int argc, char **argv)
{
    const char *ranks = NULL;
    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], "--ranks=", 8) == 0) ranks = argv[i] + 8;
        if (strcmp(argv[i], "--ranks") == 0 && i + 1 < argc) ranks = argv[i + 1];
    }
    return ranks;
}

int wg_cmd_serve(int argc, char **argv)
{
    static char name[] = "--ranks", mpi[] = "mpi";
    if (wg_cli_reads_flags()) return give_flags(argv);
    const int processes = wg_comm_mpi_started();
    const char *ranks = ranks_of(argc, argv);
    if (processes && ranks && strncmp(ranks, mpi, 3) != 0)
        return wg_cli_refuse("serve",
                             "ranks %s: mpirun started %d processes, which would wait in vain; leave ranks out, or mpirun",
                             ranks, processes);
    char *words[argc + 3]; /* of rank 0: the others never come here */
    memcpy(words, argv, (size_t)argc * sizeof *words);
    words[argc] = processes && !ranks ? name : NULL;
    words[argc + 1] = mpi;
    words[argc + 2] = NULL;
    start(words);
    const int why = errno;
    const bool help = why == ENOENT && argc > 1 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"));
    fprintf(help ? stdout : stderr,
            "wager serve: cannot start wager-serve, which stands beside this program or on the PATH: %s; it is built where "
            "libmicrohttpd is: apt-get install libmicrohttpd-dev (Debian), then configure and build again\n",
            strerror(why));
    return help ? WG_EXIT_OK : WG_EXIT_FAILED;
}
