/* SPDX-License-Identifier: MIT
 * Load-aware draft lengths: acceptance estimated from earlier rounds, and each step's rows shared by it (row_budget.h).
 *
 * The probability that the draft token at depth j is accepted, given that those before it were, is estimated over all
 * sequences with decay, and per sequence as a factor on these rates (its hits over those that the common rates give it, drawn
 * towards 1 by a few tokens' weight). Nothing else is looked at, so a length does not depend on the draws that it is judged by
 * (methods.md, L3).
 *
 * Whether drafts pay is judged for all sequences together, by what their best drafts promise beyond plain decoding. Taken off
 * is what draft models read besides. What a text began with (its prompt) is charged to its tokens, as many as the texts that
 * have ended had. What was missed since, while nothing was drafted, is charged before drafts begin, one HORIZON-th a step:
 * noise alone, which turns drafts on and off, must not have much read for a few drafts, so the more a start costs the more it
 * must promise. Drafts begin when they have promised some percent for some steps, and end when they promise nothing. While
 * they pay, a sequence drafts from when what it has missed is worth it.
 *
 * Steps without drafts tell nothing of drafts, and drafts nothing of plain decoding; so each is tried where the other pays
 * (row_trial.h). */
#ifndef WG_CORE_SCHED_ROW_POLICY_H
#define WG_CORE_SCHED_ROW_POLICY_H

#include "core/sched/row_budget.h"
#include "core/sched/row_timing.h"

enum { WG_ROW_HORIZON = 16 };

typedef struct wg_row_policy wg_row_policy;

/* slots: sequences are told apart by 0 .. slots - 1. depth: of the longest chain. The table of the costs is copied. ENOMEM. */
wg_status wg_row_policy_open(wg_row_policy **out, int slots, int depth, const wg_row_costs *costs, wg_error *err);
void wg_row_policy_close(wg_row_policy *p); /* NULL is fine */

/* The draft tokens of each of n different slots in the next step. most: (n) the longest chain that each may have; more than
 * `depth` counts as depth. missed: (n) tokens that a draft of each must read first. other: rows of the pass besides. Never
 * allocates, and does not depend on the order of the slots. */
void wg_row_policy_plan(wg_row_policy *p, const int *slot, const int *most, const int *missed, int n, int other, int *length);

/* What a step has taken: the coming ones are planned by it (row_timing.h). Without a call the costs stay as they are. */
void wg_row_policy_time(wg_row_policy *p, const wg_row_step *step);

/* What a step of a slot came to: `nodes` draft tokens were verified, `offered` of them in depth, and `accepted` accepted; all 0
 * without a draft. */
void wg_row_policy_learn(wg_row_policy *p, int slot, int nodes, int offered, int accepted);
void wg_row_policy_forget(wg_row_policy *p, int slot); /* its text has ended; another request may have the slot */

/* The estimate: the probabilities that the first 1 .. depth draft tokens of a slot are all accepted. */
void wg_row_policy_survival(const wg_row_policy *p, int slot, double *survival);

#endif
