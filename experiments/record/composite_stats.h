/* SPDX-License-Identifier: MIT
 * Which of the drafters that a drafter chooses from (hybrid, best_of, full_information) wrote what, and what two of them would
 * both have written: known wherever both drafted, and then without a draft more. Counted between steps. */
#ifndef WG_EXPERIMENTS_RECORD_COMPOSITE_STATS_H
#define WG_EXPERIMENTS_RECORD_COMPOSITE_STATS_H

#include <jansson.h>

#include "core/engine/drafter.h"

enum { WG_COMPOSITE_MOST = 6, WG_COMPOSITE_KIND = 32 };

typedef struct wg_component_totals {
    char kind[WG_COMPOSITE_KIND];
    long asked, taken;      /* steps in which it drafted; in which its tree was the draft, and not empty */
    long drafted, accepted; /* tokens of the trees that were taken */
    long shared, alone;     /* of the accepted, those that another one's tree had at their place too; those that no other's had,
                             * where all had been asked */
    long matched;           /* tokens that its trees had of what the steps emitted, from the first one of a step, also of trees
                             * not taken: what it would have kept, as far as the step went */
} wg_component_totals;

typedef struct wg_composite_totals {
    int n; /* 0: the drafter is not made of others */
    wg_component_totals part[WG_COMPOSITE_MOST];
    long matched; /* tokens that any of those asked had: what the best choice would have kept, as far as the steps went */
} wg_composite_totals;

/* The same of one step, as it is recorded. */
typedef struct wg_composite_step {
    int8_t n, taken;                    /* whose tree was the draft; -1: nobody's, or empty */
    int16_t matched[WG_COMPOSITE_MOST]; /* -1: not asked */
} wg_composite_step;

/* Adds the last step of this sequence, and says what it was. */
wg_composite_step wg_composite_totals_add_step(wg_composite_totals *m, const wg_drafter *d, const wg_seq *s);
void wg_composite_totals_add(wg_composite_totals *to, const wg_composite_totals *from);

/* As a list of parts, NULL when there are none; reads it back (what is missing counts 0). */
json_t *wg_composite_totals_json(const wg_composite_totals *m);
void wg_composite_totals_read(wg_composite_totals *m, const json_t *v, long held);

#endif
