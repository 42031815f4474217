/* SPDX-License-Identifier: MIT
 * See row_trial.h. */
#include "core/sched/row_trial.h"

#include <math.h>

/* SHARE: of all steps, what trials may cost. FIRST: plain steps that the first trial may cost. */
static const double SHARE = 0.005, FIRST = 4;

void wg_row_trial_open(wg_row_trial *t) { *t = (wg_row_trial){ .draft_steps = WG_ROW_TRIAL_DRAFTS, .saved = FIRST }; }

static int length(const wg_row_trial *t, bool drafts) { return drafts ? t->draft_steps : WG_ROW_TRIAL_PLAIN; }

static void end(wg_row_trial *t)
{
    t->on = false;
    t->steps = 0;
    t->saved = 0;
}

static bool begins(const wg_row_trial *t, bool pays, double loss)
{
    return !t->on && t->steps >= WG_ROW_BETWEEN && length(t, !pays) * loss <= t->saved;
}

/* Before the coming step, its own share and itself counted. */
static wg_row_trial counted(const wg_row_trial *t)
{
    wg_row_trial now = *t;
    now.steps += t->on || t->steps < WG_ROW_BETWEEN;
    now.saved += SHARE;
    return now;
}

bool wg_row_trial_due(const wg_row_trial *t, bool pays, double loss)
{
    const wg_row_trial now = counted(t);
    return now.on || begins(&now, pays, loss);
}

bool wg_row_trial_step(wg_row_trial *t, bool pays, double loss)
{
    *t = counted(t);
    if (t->on && (t->drafts == pays || t->steps > length(t, t->drafts) || isinf(loss))) end(t);
    if (begins(t, pays, loss)) {
        t->on = true;
        t->drafts = !pays;
        t->steps = 1;
    }
    return t->on ? t->drafts : pays;
}
