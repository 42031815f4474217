/* SPDX-License-Identifier: MIT
 * What a run with "trace": "probs" will write, from its config: the bytes of its rows, and whether they can be verified again
 * by its own rule. */
#ifndef WG_EXPERIMENTS_RUN_TRACE_SIZE_H
#define WG_EXPERIMENTS_RUN_TRACE_SIZE_H

#include "experiments/config/config.h"

/* An upper bound of the bytes of a row of p (of_p) or of q. */
double wg_trace_row_most(const wg_cell *cell, int vocab, bool of_p);

/* The bytes of a round's rows, at most: a row of p after each node and, of drawn tokens, a row of q. The nodes: by the
 * options of the drafter that bound them (`tree`, `budget`, `nodes`, `length`, `k`); where it has none, WG_TRACE_NODES draft
 * tokens. */
enum { WG_TRACE_NODES = 8 };
double wg_trace_round_most(const wg_cell *cell, int vocab);

/* EUNSUPPORTED: the run records rows, all rows of p will be cut, and the cell's rule cannot be verified again from these. Where
 * only some may be cut (top_p, min_p, a grammar), `wager replay` tells. */
wg_status wg_trace_check_rule(const wg_cell *cell, int number, int vocab, wg_error *err);

#endif
