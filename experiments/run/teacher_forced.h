/* SPDX-License-Identifier: MIT
 * Teacher forcing: the target writes the text of plain decoding, and the drafter drafts at every position of it. So sums over
 * the text depend on the pair of models alone: no rule, length or length policy decides which positions count. alpha = E[sum
 * min(p, q)] of Leviathan et al. 2023 is such a mean. The mean over positions reached by a run's rounds differs, since a policy
 * that drafts where q is confident reaches other positions than one that always drafts. */
#ifndef WG_EXPERIMENTS_RUN_TEACHER_FORCED_H
#define WG_EXPERIMENTS_RUN_TEACHER_FORCED_H

#include "core/engine/engine.h"

/* The rule that accepts no draft: it gives the text of plain decoding for any draft. */
extern const wg_verifier_class wg_teacher_rule;

/* sum min(p, q) at the root of this tree of the engine's last step, which wg_teacher_rule verified; q is one-hot at the first
 * child if the draft is a function of the prefix and names no row. NaN: nothing was drafted, or its row is unknown. */
double wg_teacher_alpha(wg_engine *e, int tree);

/* Whether the drafter is one model with a row of q at every position: it can draw, and has the options for shape and length
 * (draft/lm/lm_draft.h). */
bool wg_teacher_fits(const wg_drafter_class *d);

/* Sets these options of a fitting drafter to chains of one token at every position. The temperature of q and other options
 * stay. */
void wg_teacher_one_token(const wg_drafter_class *d, void *options);

#endif
