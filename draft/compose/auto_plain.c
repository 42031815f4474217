/* SPDX-License-Identifier: MIT
 * See auto_plain.h. */
#include "draft/compose/auto_plain.h"

#include <math.h>

/* Of the cost of all rounds, what trials take; a pass that took far longer than its price counts as SPIKE times it. */
static const double SHARE = 0.01, SPIKE = 3;
/* SAVED: passes that the first trial may cost. KEEP: of the evidence at each trial; FORGET: at each plain pass after one, so
 * that drafts are tried again where they were found not to pay. FIRST: trials that "it takes as long" is worth. */
static const double SAVED = 2, KEEP = 0.8, FORGET = 1 - 1 / 512.0, FIRST = 1;
static const double MODE = 0.9, MOST = 0.5; /* what the share of drafts keeps at a round; the most that p->settles can be */

bool wg_auto_plain_is_due(wg_auto_plain *t)
{
    t->rounds++;
    if (t->trial) return true;
    if (t->drafts <= 0.5 || t->rounds < WG_AUTO_RUN || SAVED + t->saved < WG_AUTO_RUN * t->lost) return false;
    t->trial = true;
    t->run = 0;
    return true;
}

void wg_auto_plain_round(wg_auto_plain *t, double cost, double gain)
{
    t->saved += SHARE * cost;
    t->lost = fmax(0, gain);
}

static void end_of_trial(wg_auto_plain *t)
{
    if (!t->trial) return;
    t->trial = false;
    t->rounds = 0;
    t->saved = -SAVED;
}

static void end_of_run(wg_auto_plain *t)
{
    const double took = t->sum / (WG_AUTO_RUN - WG_AUTO_SETTLES);
    if (t->after && t->before > 0 && took > 0) {
        t->logs = KEEP * t->logs + log(took / t->before);
        t->weight = KEEP * t->weight + 1;
    }
    end_of_trial(t);
}

void wg_auto_plain_pass(wg_auto_plain *t, wg_auto_prices *p, int rows, bool plain, double seconds)
{
    if (!plain) {
        t->drafts = MODE * t->drafts + 1 - MODE;
        t->run = 0;
        return;
    }
    if (t->run == 0) {
        t->after = t->drafts > 0.5;
        t->before = p->pass[rows];
        t->sum = 0;
    }
    t->run++;
    t->drafts *= MODE;
    if (t->run > WG_AUTO_SETTLES && t->run <= WG_AUTO_RUN) t->sum += fmin(seconds, SPIKE * t->before);
    if (t->run == WG_AUTO_RUN) end_of_run(t);
    if (t->run > WG_AUTO_RUN) t->logs *= FORGET, t->weight *= FORGET;
    p->settles = fmin(MOST, fmax(0, 1 - exp(t->logs / (t->weight + FIRST))));
}

void wg_auto_plain_break(wg_auto_plain *t)
{
    t->run = 0;
    end_of_trial(t);
}
