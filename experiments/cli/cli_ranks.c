/* SPDX-License-Identifier: MIT
 * The program among the processes that mpirun started (cli_ranks.h). */
#include "experiments/cli/cli_ranks.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/hash.h"
#include "core/setup/target_ranks.h"
#include "experiments/cli/cli.h"

/* Whether the processes are ranks of the command. `run` divides its prompts among them unless ranks are asked for. */
static bool is_ranked(int argc, char **argv)
{
    const bool serve = strcmp(argv[1], "serve") == 0;
    bool named = false;
    for (int i = 2; i < argc && serve; i++)
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h") || !strcmp(argv[i], "--version")) return false;
    for (int i = 2; i < argc; i++)
        named = named || strncmp(argv[i], "--ranks=mpi", 11) == 0 ||
                (strcmp(argv[i], "--ranks") == 0 && i + 1 < argc && strncmp(argv[i + 1], "mpi", 3) == 0);
    return wg_comm_mpi_started() && (named || strcmp(argv[1], "run") != 0);
}

static void stop_at_exit(void)
{
    wg_comm *c = wg_comm_mpi_open();
    if (c->rank == 0) wg_ranks_quit(c);
    wg_comm_mpi_stop();
}

int wg_cli_ranks(int argc, char **argv)
{
    char arguments[WG_SHA256_HEX];
    wg_sha256_state s;
    wg_error err;
    wg_comm *c;
    const bool serve = strcmp(argv[1], "serve") == 0;
    if (!is_ranked(argc, argv) || (serve && wg_comm_mpi_rank() == 0)) return -1; /* wager-serve starts MPI itself */
    if (wg_comm_mpi(&c, &err)) return wg_cli_fail(&err);
    atexit(stop_at_exit);
    wg_sha256_begin(&s);
    for (int i = 1; i < argc; i++) wg_sha256_add(&s, argv[i], strlen(argv[i]) + 1);
    wg_sha256_end(&s, arguments);
    if (wg_ranks_meet(c, serve ? WG_RANKS_SESSION : arguments, &err)) return wg_cli_fail(&err);
    if (c->rank > 0) return wg_ranks_serve(c, &wg_target_rank_opener, &err) ? wg_cli_fail(&err) : WG_EXIT_OK;
    return -1;
}
