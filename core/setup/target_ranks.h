/* SPDX-License-Identifier: MIT
 * The ranks of a target: which there are, and what those that serve open. */
#ifndef WG_CORE_SETUP_TARGET_RANKS_H
#define WG_CORE_SETUP_TARGET_RANKS_H

#include "core/setup/target.h"

/* Where the ranks of a target are: what the options say; where they say nothing, the processes that mpirun started, or this
 * process alone. EINVAL: options that contradict each other or mpirun. EUNSUPPORTED: a target that ranks cannot share. */
wg_status wg_target_ranks(const wg_target_options *opt, wg_comm_spec *out, wg_error *err);

/* Opens the ranks of t, which has weights and a device, and its model on all of them. */
wg_status wg_target_open_ranked(wg_target *t, const wg_target_options *opt, const wg_comm_spec *where, wg_error *err);

void wg_target_close_ranked(wg_target *t); /* after its model */

/* The command of ranks of libwager, whose rank 0 opens a target with ranks = "mpi". */
#define WG_RANKS_SESSION "a session"

/* How other ranks open their part of such a target. */
extern const wg_rank_opener wg_target_rank_opener;

#endif
