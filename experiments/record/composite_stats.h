/* SPDX-License-Identifier: MIT
 * Statistics of the components of a composite drafter (hybrid, best_of, full_information): which component drafted which
 * tokens, and which tokens several components drafted. They are counted between steps, for every step in which the components
 * drafted; no additional drafts are made. */
#ifndef WG_EXPERIMENTS_RECORD_COMPOSITE_STATS_H
#define WG_EXPERIMENTS_RECORD_COMPOSITE_STATS_H

#include <jansson.h>

#include "core/engine/drafter.h"

enum { WG_COMPOSITE_MOST = 6, WG_COMPOSITE_KIND = 32 };

typedef struct wg_component_totals {
    char kind[WG_COMPOSITE_KIND];
    long asked, taken;      /* steps in which it drafted; steps in which its non-empty tree was verified */
    long drafted, accepted; /* tokens of its trees that were verified */
    long shared, alone;     /* accepted tokens that another component's tree also has at the same place; accepted tokens that
                             * no other component's tree has, in steps where all components drafted */
    long matched;           /* leading emitted tokens of each step that its trees contain, verified or not: the tokens of the
                             * step that it would have had accepted */
} wg_component_totals;

typedef struct wg_composite_totals {
    int n; /* 0: the drafter is no composite */
    wg_component_totals part[WG_COMPOSITE_MOST];
    long matched; /* the same for the best component of each step */
} wg_composite_totals;

/* The statistics of one step, as recorded. */
typedef struct wg_composite_step {
    int8_t n, taken;                    /* taken: the component whose tree was verified; -1: none, or an empty tree */
    int16_t matched[WG_COMPOSITE_MOST]; /* -1: it did not draft */
} wg_composite_step;

/* Adds the last step of this sequence and returns that step's statistics. */
wg_composite_step wg_composite_totals_add_step(wg_composite_totals *m, const wg_drafter *d, const wg_seq *s);
void wg_composite_totals_add(wg_composite_totals *to, const wg_composite_totals *from);

/* Writes a list with an element per component, NULL when there are none; reads it back (missing members are 0). */
json_t *wg_composite_totals_json(const wg_composite_totals *m);
void wg_composite_totals_read(wg_composite_totals *m, const json_t *v, long matched);

#endif
