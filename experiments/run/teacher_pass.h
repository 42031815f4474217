/* SPDX-License-Identifier: MIT
 * analytic_alpha of a run: the teacher-forced mean of sum min(p, q) (teacher_forced.h) over the texts of the first repeat,
 * which are those of the baseline. An untimed pass decodes them again, one token per target pass with one draft token at every
 * position, once for all cells of a group that have the same pair of models. For each pair it costs about one more plain
 * decoding and a draft token per token, in the first repeat only, during which its engine is open. */
#ifndef WG_EXPERIMENTS_RUN_TEACHER_PASS_H
#define WG_EXPERIMENTS_RUN_TEACHER_PASS_H

#include "experiments/run/runner_batch.h"

/* The reason why this cell can have no analytic_alpha; NULL: it can have one. */
const char *wg_teacher_unknown(const wg_cell *cell);

/* Sets the arm's pair of models: an earlier arm's of the group, or a new one; none if wg_teacher_unknown. ENOMEM. */
wg_status wg_teacher_join(wg_group *g, wg_arm *a, const wg_cell *cell, wg_error *err);

/* Sets `taught` of the arm's requests after wg_batch_run with the same arguments. The pass over a batch runs for the first arm
 * of each pair. In later repeats the sums are 0; a request whose pass fails has a NaN. parts and opt: the group's; drafter and
 * rule are set here. Failures: EINTERRUPTED, and those of opening the engine. */
wg_status wg_teacher_run(const wg_room *room, wg_group *g, wg_arm *a, const wg_batch_plan *plan, const wg_engine_parts *parts,
                         const wg_engine_options *opt, wg_error *err);

void wg_teacher_rest(wg_group *g);  /* closes the engines after the first repeat */
void wg_teacher_close(wg_group *g); /* also frees the pairs */

#endif
