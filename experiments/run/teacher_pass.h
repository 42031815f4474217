/* SPDX-License-Identifier: MIT
 * Teacher forcing: the target writes the text of plain decoding, and the drafter drafts at every position of it. So sums over
 * the text depend on the pair of models alone: no rule, length or length policy decides which positions count. alpha = E[sum
 * min(p, q)] of Leviathan et al. 2023 is such a mean. The mean over positions reached by a run's rounds differs, since a policy
 * that drafts where q is confident reaches other positions than one that always drafts. */
#ifndef WG_EXPERIMENTS_RUN_TEACHER_PASS_H
#define WG_EXPERIMENTS_RUN_TEACHER_PASS_H

#include "core/engine/engine.h"
#include "experiments/run/runner_batch.h"

/* The rule that accepts no draft: it gives the text of plain decoding for any draft. */
extern const wg_verifier_class wg_teacher_rule;

/* sum min(p, q) at the root of this tree of the engine's last step, which wg_teacher_rule verified; q is one-hot at the first
 * child if the draft is a function of the prefix and names no row. NaN: nothing was drafted, or its row is unknown. */
double wg_teacher_alpha(wg_engine *e, int tree);

/* Whether the drafter is one model with a row of q at every position: it can draw, and has the options for shape and length
 * (draft/lm/lm_draft.h). */
bool wg_teacher_fits(const wg_drafter_class *d);

/* Sets these options of a fitting drafter to chains of one token at every position. The temperature and truncation of q and
 * other options stay. */
void wg_teacher_one_token(const wg_drafter_class *d, void *options);

/* ---- analytic_alpha of a run: the teacher-forced mean of sum min(p, q) over the texts of the first repeat,
 * which are those of the baseline. An untimed pass decodes them again, one token per target pass with one draft token at every
 * position, once for all cells of a group that have the same pair of models. For each pair it costs about one more plain
 * decoding and a draft token per token, in the first repeat only, during which its engine is open. */

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
