/* SPDX-License-Identifier: MIT
 * analytic_alpha of a run: the teacher-forced mean of sum min(p, q) (teacher_forced.h) over the texts of the first repeat,
 * which are those of the baseline. An untimed pass decodes them again, one token per target pass with one draft token at every
 * position, once for all cells of a group that have the same pair of models. So it costs about one more plain decoding and a
 * draft token per token for each pair, in the first of all repeats. Its engine is open during that repeat only. */
#ifndef WG_EXPERIMENTS_RUN_TEACHER_PASS_H
#define WG_EXPERIMENTS_RUN_TEACHER_PASS_H

#include "experiments/run/runner_batch.h"

/* Why this cell has no analytic_alpha whatever it drafts; NULL: it may have one. */
const char *wg_teacher_unknown(const wg_cell *cell);

/* Gives the arm of this cell its pair: that of an earlier arm of the group, or a new one. None where wg_teacher_unknown.
 * ENOMEM. */
wg_status wg_teacher_join(wg_group *g, wg_arm *a, const wg_cell *cell, wg_error *err);

/* After wg_batch_run with the same arguments: sets taught_sum and taught_n of the arm's requests, from the pass over this
 * batch, which runs for the first arm of its pair. In later repeats they are 0. A request whose pass fails has a NaN. parts and
 * opt: of the group's engines; drafter and rule are set here. Failures: EINTERRUPTED, and those of opening the engine. */
wg_status wg_teacher_run(const wg_room *room, wg_group *g, wg_arm *a, const wg_batch_plan *plan, const wg_engine_parts *parts,
                         const wg_engine_options *opt, wg_error *err);

void wg_teacher_rest(wg_group *g);  /* closes the engines: the first repeat is over */
void wg_teacher_close(wg_group *g); /* and frees the pairs */

#endif
