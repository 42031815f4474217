/* SPDX-License-Identifier: MIT
 * Summing requests into the results of a cell (wg_result, runner.h). */
#ifndef WG_EXPERIMENTS_RUN_RUN_RESULT_H
#define WG_EXPERIMENTS_RUN_RUN_RESULT_H

#include "experiments/run/runner.h"

/* Sets q->sha256 to the digest of its tokens. */
void wg_request_digest(wg_request *q);
bool wg_request_same_output(const wg_request *a, const wg_request *b);

wg_status wg_result_open(wg_result *o, const wg_dataset *d, int repeats, wg_error *err);

/* Adds a request of the cell and the baseline's request at the same address; if either failed, the pair counts as failed only.
 * questions: the data set's. ENOMEM. */
wg_status wg_result_add_pair(wg_result *o, const wg_request *q, const wg_request *base, int questions, wg_error *err);

/* Counts the tokens of this text that the draft model's vocabulary has, and sets its context. */
void wg_result_add_coverage(wg_result *o, const wg_engine *e, const wg_request *q);

#endif
