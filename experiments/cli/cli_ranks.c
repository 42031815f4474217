/* SPDX-License-Identifier: MIT
 * The program among the processes that mpirun started (cli_ranks.h). */
#include "experiments/cli/cli_ranks.h"

#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/hash.h"
#include "core/setup/target_ranks.h"
#include "experiments/cli/cli.h"

/* What must be equal on all ranks. */
typedef struct program {
    char version[32], arguments[WG_SHA256_HEX];
} program;

/* Compares the programs of all ranks; rank 0 says what differs, which ends all. */
static wg_status compare(wg_comm *c, int argc, char **argv, wg_error *err)
{
    program mine = { .version = WG_VERSION }, all[WG_RANKS_MOST];
    size_t width[WG_RANKS_MOST];
    wg_sha256_state s;
    char why[200];
    wg_sha256_begin(&s);
    for (int i = 1; i < argc; i++) wg_sha256_add(&s, argv[i], strlen(argv[i]) + 1);
    wg_sha256_end(&s, mine.arguments);
    for (int r = 0; r < c->ranks; r++) width[r] = sizeof mine;
    WG_TRY(c->class->join(c, &mine, 1, width, all, -1, err));
    for (int r = 1; r < c->ranks && c->rank == 0; r++) {
        const bool version = strcmp(all[r].version, mine.version) != 0;
        if (!version && strcmp(all[r].arguments, mine.arguments) == 0) continue;
        snprintf(why, sizeof why, "rank %d has another %s; expected the same program with the same arguments on all ranks", r,
                 version ? "version of wager" : "command line");
        c->class->fail(c, why);
    }
    return WG_OK;
}

/* Whether the processes are ranks of the command. `run` divides its prompts among them unless ranks are asked for; `serve`
 * refuses them. */
static bool is_ranked(int argc, char **argv)
{
    bool named = false;
    for (int i = 2; i < argc; i++)
        named = named || strcmp(argv[i], "--ranks=mpi") == 0 ||
                (strcmp(argv[i], "--ranks") == 0 && i + 1 < argc && strcmp(argv[i + 1], "mpi") == 0);
    return wg_comm_mpi_started() && strcmp(argv[1], "serve") != 0 && (named || strcmp(argv[1], "run") != 0);
}

static void stop_at_exit(void)
{
    wg_comm *c = wg_comm_mpi_open();
    if (c->rank == 0) wg_ranks_quit(c);
    wg_comm_mpi_stop();
}

int wg_cli_ranks(int argc, char **argv)
{
    char self[4096];
    wg_error err;
    wg_comm *c;
    if (!is_ranked(argc, argv)) return -1;
    const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n > 0 ? n : 0] = '\0';
    if (wg_comm_mpi(&c, dirname(self), &err)) return wg_cli_fail(&err);
    atexit(stop_at_exit);
    if (compare(c, argc, argv, &err)) return wg_cli_fail(&err);
    if (c->rank > 0) return wg_ranks_serve(c, &wg_target_rank_opener, &err) ? wg_cli_fail(&err) : WG_EXIT_OK;
    return -1;
}
