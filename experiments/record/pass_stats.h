/* SPDX-License-Identifier: MIT
 * Pass statistics of a request: the rows, keys and cache slots of the target's passes, and the times of its tokens. They are
 * counted between steps from the state that a step leaves, so steps cost nothing more. All are sums over passes; all but the
 * times are functions of the output alone. */
#ifndef WG_EXPERIMENTS_RECORD_PASS_STATS_H
#define WG_EXPERIMENTS_RECORD_PASS_STATS_H

#include <jansson.h>

#include "core/engine/seq.h"

typedef struct wg_pass_stats {
    double passes;                /* reads of the weights: a pass shared by k sequences counts 1 / k */
    double rows;                  /* rows scored: nodes and probes */
    double cached;                /* tokens in the cache before each pass, whose keys and values the pass reads */
    double seen;                  /* keys that rows attended to: the cache, their ancestors in the tree, themselves */
    double seen_rejected;         /* keys seen by draft tokens that were rejected */
    double held, unused, dropped; /* cache slots: in the pages of a pass's cache and rows; the unused ones of these; slots of
                                   * rows that were rolled back */
} wg_pass_stats;

/* Adds a step after which the sequence is `s` and the tree `t`, in a pass of k sequences over pages of page_slots slots. */
void wg_pass_stats_step(wg_pass_stats *l, const wg_seq *s, const wg_tree *t, int k, int page_slots);
void wg_pass_stats_add(wg_pass_stats *to, const wg_pass_stats *from);
json_t *wg_pass_stats_json(const wg_pass_stats *l);
void wg_pass_stats_read(wg_pass_stats *l, const json_t *v); /* missing members are 0 */

/* The tokens of one step arrive together: an event. These are the events of a request except the first, each with the
 * seconds since the previous one. */
typedef struct wg_events {
    double *gap;     /* (cap) */
    int32_t *tokens; /* (cap) */
    int n, cap;
} wg_events;

wg_status wg_events_open(wg_events *e, int cap, wg_error *err);
void wg_events_close(wg_events *e);
void wg_event_add(wg_events *e, double gap, int tokens); /* ignored beyond cap */

/* The values of "itl_ms" and "itl_tokens", a list each; wg_events_read reads both from an object. */
json_t *wg_events_gaps(const wg_events *e);
json_t *wg_events_tokens(const wg_events *e);
void wg_events_read(wg_events *e, const json_t *v);

/* A growing list of numbers. */
typedef struct wg_series {
    double *v;
    int n, cap;
} wg_series;

/* Appends the gaps between events to per_event, and each gap divided by the event's tokens, once per token, to per_token.
 * ENOMEM: both unchanged. */
wg_status wg_events_spread(const wg_events *e, wg_series *per_event, wg_series *per_token, wg_error *err);

#endif
