/* SPDX-License-Identifier: MIT
 * What the target's passes of a request were made of, and when its tokens came. Counted between steps from what the step left
 * behind, so a step costs what it did. Sums over passes; all but the moments are functions of the output alone. */
#ifndef WG_EXPERIMENTS_RECORD_PASS_STATS_H
#define WG_EXPERIMENTS_RECORD_PASS_STATS_H

#include <jansson.h>

#include "core/engine/seq.h"

typedef struct wg_pass_stats {
    double passes;                /* each divided by the sequences that shared it: readings of the weights */
    double rows;                  /* scored: nodes and probes */
    double cached;                /* tokens in the cache before each pass, whose keys and values it reads */
    double seen;                  /* keys that rows attended to: the cache, their ancestors in the tree, themselves */
    double seen_rejected;         /* of them, those of draft tokens that were not accepted */
    double held, unused, dropped; /* slots: of the pages that hold a pass's cache and rows; of them, in nobody's use; of rows,
                                   * rolled back */
} wg_pass_stats;

/* Adds the step that left `s` and its tree so, in a pass of k sequences over pages of page_slots slots. */
void wg_pass_stats_step(wg_pass_stats *l, const wg_seq *s, const wg_tree *t, int k, int page_slots);
void wg_pass_stats_add(wg_pass_stats *to, const wg_pass_stats *from);
json_t *wg_pass_stats_json(const wg_pass_stats *l);
void wg_pass_stats_read(wg_pass_stats *l, const json_t *v); /* what is missing counts 0 */

/* Tokens of one step arrive together: an event. A request's events but the first, each with the seconds since the one
 * before. */
typedef struct wg_events {
    double *gap;     /* (cap) */
    int32_t *tokens; /* (cap) */
    int n, cap;
} wg_events;

wg_status wg_events_open(wg_events *e, int cap, wg_error *err);
void wg_events_close(wg_events *e);
void wg_event_add(wg_events *e, double gap, int tokens); /* none past the room */

/* The values of "itl_ms" and "itl_tokens", a list each; both read back from an object that has them. */
json_t *wg_events_gaps(const wg_events *e);
json_t *wg_events_tokens(const wg_events *e);
void wg_events_read(wg_events *e, const json_t *v);

/* A list of numbers that grows. */
typedef struct wg_series {
    double *v;
    int n, cap;
} wg_series;

/* Gaps between events; and gaps shared by the tokens of their event, one number a token. ENOMEM: neither has changed. */
wg_status wg_events_spread(const wg_events *e, wg_series *per_event, wg_series *per_token, wg_error *err);

#endif
