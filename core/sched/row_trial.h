/* SPDX-License-Identifier: MIT
 * Trials: a scheduler that decodes plainly drafts now and then, WG_ROW_TRIAL_DRAFTS steps in a row, and one that drafts decodes
 * plainly, WG_ROW_TRIAL_PLAIN steps. Rounds of the drafter `auto` likewise (draft/compose/auto_live.c).
 *
 * A single step of the other kind would tell little: passes between drafts cost more than those in a run of plain decoding, and
 * the first plain steps after drafts are of neither kind (row_timing.h), so a plain trial is longer. A trial begins when it is
 * expected to cost no more than a two-hundredth of the steps since the last one, and WG_ROW_BETWEEN steps after it. */
#ifndef WG_CORE_SCHED_ROW_TRIAL_H
#define WG_CORE_SCHED_ROW_TRIAL_H

#include <stdbool.h>

enum { WG_ROW_TRIAL_DRAFTS = 10, WG_ROW_TRIAL_PLAIN = 24, WG_ROW_BETWEEN = 64 };

typedef struct wg_row_trial {
    int draft_steps; /* of a trial of drafts: WG_ROW_TRIAL_DRAFTS, or as many as is said after it was opened */
    bool on, drafts; /* a trial goes on, and is of drafts */
    int steps;       /* of the trial; else since the last one, up to WG_ROW_BETWEEN */
    double saved;    /* plain steps that a trial may cost by now */
} wg_row_trial;

void wg_row_trial_open(wg_row_trial *t);
/* Whether the coming step may be of a trial if it costs that much, as with wg_row_trial_step: where it may not, what a trial
 * would cost need not be known better. */
bool wg_row_trial_due(const wg_row_trial *t, bool pays, double loss);
/* Whether the coming step drafts. pays: drafts are expected to be better. loss: what a step of the other kind is expected to
 * cost, of the tokens of a plain step; INFINITY: no trial. */
bool wg_row_trial_step(wg_row_trial *t, bool pays, double loss);

#endif
