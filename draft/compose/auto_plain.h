/* SPDX-License-Identifier: MIT
 * Trials of plain decoding, of the drafter `auto` where prices follow the clock.
 *
 * A pass over one row in a run of plain decoding takes less than the same pass between drafts: weights that stay in a cache
 * are read again sooner, so fewer of them are lost to what else uses that cache (docs/performance.md: up to half of the time,
 * and about ten passes until it is gone). While every round drafts no pass shows it. So a text that drafts is now and then
 * decoded plainly for WG_AUTO_RUN rounds, and the last of them are compared with the price that a plain pass had when the run
 * began. */
#ifndef WG_DRAFT_COMPOSE_AUTO_PLAIN_H
#define WG_DRAFT_COMPOSE_AUTO_PLAIN_H

#include "draft/compose/auto_plan.h"

enum { WG_AUTO_RUN = 16, WG_AUTO_SETTLES = 10 }; /* rounds of a trial; those of them that do not count */

typedef struct wg_auto_plain {
    int run;             /* plain passes in a row so far */
    bool after;          /* the run began after drafts */
    double before;       /* the price of a plain pass when the run began */
    double sum;          /* the time of those of its passes that count */
    bool trial;          /* the run is a trial */
    int rounds;          /* since the last trial */
    double saved, lost;  /* what a trial may cost by now; what one round of it costs, by the last round's expectation */
    double drafts;       /* share of the last rounds that drafted */
    double logs, weight; /* over runs after drafts, with decay: sum of log(time of a pass / before), and their number */
} wg_auto_plain;

/* Whether the coming round is plain: a trial goes on, or begins, since it costs no more than was saved. */
bool wg_auto_plain_is_due(wg_auto_plain *t);

/* A round is planned that costs so much and is expected to be so much better than a plain one; both for all sequences. */
void wg_auto_plain_round(wg_auto_plain *t, double cost, double gain);

/* A pass over at most WG_TREE_MAX rows took so much; plain: nothing was drafted for it. Sets p->settles. */
void wg_auto_plain_pass(wg_auto_plain *t, wg_auto_prices *p, int rows, bool plain, double seconds);
void wg_auto_plain_break(wg_auto_plain *t); /* other passes came between */

#endif
