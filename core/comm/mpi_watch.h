/* SPDX-License-Identifier: MIT
 * The heartbeat of a process among ranks of MPI: a thread of its own sends beats, so a pass may take minutes, and ends all
 * ranks with an error when another rank has sent none for three seconds: it was stopped, or its machine or network is gone.
 * Rank 0 watches all others, which watch rank 0. Time is counted in this thread's own turns, so ranks that are stopped and
 * continued together do not accuse each other. */
#ifndef WG_CORE_COMM_MPI_WATCH_H
#define WG_CORE_COMM_MPI_WATCH_H

#include "core/base/error.h"
#include "core/comm/mpi_module.h"

typedef struct wg_mpi_watch wg_mpi_watch;

/* Before MPI starts; says on stderr when that takes long, which is while other ranks have not started. EIO: no thread. */
wg_status wg_mpi_watch_open(wg_mpi_watch **out, const wg_mpi_module *module, wg_error *err);
void wg_mpi_watch_begin(wg_mpi_watch *w, int rank, int ranks); /* MPI has started */
/* Waits until all ranks call it, and ends the thread. A rank that is silent while others wait ends all. NULL is fine. */
void wg_mpi_watch_end(wg_mpi_watch *w);

#endif
