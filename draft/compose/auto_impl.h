/* SPDX-License-Identifier: MIT
 * The drafter `auto`: its fields, private to auto.c and auto_prices.c. */
#ifndef WG_DRAFT_COMPOSE_AUTO_IMPL_H
#define WG_DRAFT_COMPOSE_AUTO_IMPL_H

#include "draft/compose/auto_plain.h"
#include "draft/compose/auto_plan.h"
#include "draft/compose/composite.h"
#include "draft/length/length.h"

typedef struct wg_auto_options {
    char of[WG_OPTION_STRING], costs[WG_OPTION_STRING], draft_costs[WG_OPTION_STRING];
    int live, memory;
    double prior, keep, probe;
} wg_auto_options;

/* What is known of a candidate. */
typedef struct wg_auto_part {
    bool free;                   /* it looks its drafts up: it drafts at every round, and its draft is seen before the choice */
    bool shares;                 /* its model has the target's cache, so there is no text to catch up with */
    bool guided;                 /* its chains ask before each token (wg_length_guide) */
    int height;                  /* of its whole draft */
    int rows[WG_AUTO_DEPTH + 1]; /* of a draft of that height; 0: learned */
} wg_auto_part;

/* The state of the sequence in a slot. */
typedef struct wg_auto_state {
    bool used;
    wg_auto_survival survival[WG_AUTO_MOST];
    int read[WG_AUTO_MOST]; /* tokens of the text that it has read */
    double saved;           /* what probes may cost, of the cost of the rounds so far */
    /* of the current round: */
    wg_auto_choice choice, spare; /* spare: where the choice finds nothing to draft; of free candidates */
    wg_auto_offer offer[WG_AUTO_MOST];
    double gain; /* expected of the choice over plain decoding, in passes */
    bool probes;
    int node;                  /* calls of the guide */
    double reach;              /* the probability that the chain is kept so far */
    double top[WG_AUTO_DEPTH]; /* by depth - 1: q's best probability there */
} wg_auto_state;

typedef struct wg_auto_drafter {
    wg_composite of; /* first */
    wg_auto_options opt;
    wg_env env; /* of the candidates: that of `auto`, with its guide */
    struct wg_auto_guide {
        wg_length_guide base; /* first */
        struct wg_auto_drafter *of;
        int candidate, sequences; /* that drafts now */
    } guide;
    wg_auto_part part[WG_AUTO_MOST];
    wg_auto_prices price;                  /* in passes of the target over one row, as they were at open */
    wg_auto_survival shared[WG_AUTO_MOST]; /* of all sequences */
    wg_auto_state *state;                  /* (max_batch) */
    wg_seq **asked;                        /* (max_batch) sequences of a candidate, */
    int *place, *limit;                    /* their places in the batch, and their limits */
    bool independent;                      /* the text does not depend on what is drafted */
    bool live, remembers;                  /* prices follow the clock; survival is learned over sequences */
    wg_auto_plain plain;                   /* trials of plain decoding, where prices are live */
    double second,
        seconds; /* the unit of prices in seconds, 0: not known; the target's seconds, rows and passes at the last draft */
    long rows, passes;
} wg_auto_drafter;

/* Prices as the options say. Candidates must be open. ECONFIG, and failures of timing. */
wg_status wg_auto_prices_open(wg_auto_drafter *a, wg_error *err);

/* Live prices. passes: what the target ran since the last draft; sequences: of the step. draft: candidate k just drafted, in so
 * many seconds, for sequences that had `lag` tokens to read; before: its model's counters then. */
void wg_auto_live_passes(wg_auto_drafter *a, int sequences);
void wg_auto_live_draft(wg_auto_drafter *a, int k, const wg_lm *before, double seconds, int sequences, int lag);

#endif
