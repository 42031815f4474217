/* SPDX-License-Identifier: MIT
 * The drafter `auto`: its fields, private to auto*.c. */
#ifndef WG_DRAFT_COMPOSE_AUTO_IMPL_H
#define WG_DRAFT_COMPOSE_AUTO_IMPL_H

#include "core/engine/profile.h"
#include "core/sched/row_timing.h"
#include "core/sched/row_trial.h"
#include "draft/compose/auto_plan.h"
#include "draft/compose/composite.h"
#include "draft/length/length.h"

enum { WG_AUTO_EXPLORED = 16 }; /* of so many rounds where most draft, one explores */
#define WG_AUTO_SETTLING 4.0    /* passes that the first ones of drafts, or of plain decoding after them, take longer in all */

typedef struct wg_auto_options {
    char of[WG_OPTION_STRING], costs[WG_OPTION_STRING], draft_costs[WG_OPTION_STRING];
    int live, memory;
    double prior, keep, probe;
} wg_auto_options;

/* What is known of a candidate. */
typedef struct wg_auto_part {
    bool free;                   /* it looks its drafts up: they are seen before the choice */
    bool shares;                 /* its model has the target's cache, so there is no text to catch up with */
    bool guided;                 /* its chains ask before each token (wg_length_guide) */
    int height;                  /* of its whole draft */
    int rows[WG_AUTO_DEPTH + 1]; /* of a draft of that height; 0: learned */
} wg_auto_part;

/* Whether the drafts of a candidate that looks them up are of use. */
typedef struct wg_auto_use {
    double taken; /* the share of the last rounds in which they were */
    int rested;   /* rounds since it was last asked; RESTS: it is asked in the next */
} wg_auto_use;

/* The state of the sequence in a slot. */
typedef struct wg_auto_state {
    bool used;
    wg_auto_survival survival[WG_AUTO_MOST];
    int read[WG_AUTO_MOST]; /* tokens of the text that it has read */
    double saved;           /* what probes may cost, of the cost of the rounds so far */
    wg_auto_use use[WG_AUTO_MOST];
    /* of the current round: */
    wg_auto_choice choice, spare; /* spare: where the choice finds nothing to draft; of free candidates */
    wg_auto_offer offer[WG_AUTO_MOST];
    bool probes, exact;        /* a trial of a model; the draft is no deeper, and a chain no shorter, than was chosen */
    bool asks;                 /* a model drafts, as in the last rounds */
    int depth;                 /* that was chosen last of a model's draft */
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
    wg_auto_use use[WG_AUTO_MOST];         /* of all sequences */
    wg_auto_state *state;                  /* (max_batch) */
    wg_seq **asked;                        /* (max_batch) sequences of a candidate, */
    int *place, *limit;                    /* their places in the batch, and their limits */
    bool independent;                      /* the text does not depend on what is drafted */
    bool live, remembers;                  /* prices follow the clock; survival is learned over sequences */
    const wg_auto_prices *now;             /* of this round: `price`, or `hope` */
    int depth;                             /* that was chosen last of a model's draft, of all sequences */
    double second;                         /* the unit of prices in seconds; 0: not known */
    /* where prices are live (auto_live.c): */
    wg_row_timing timing; /* of passes */
    wg_row_trial trial;   /* of what most rounds do not do */
    wg_auto_prices hope;  /* of a round that explores */
    unsigned rounds;      /* where most drafted, but for trials */
    double drafts, gain;  /* of the last rounds, but for trials: the share that drafted; what drafts promised */
    double seconds;       /* of the target, at the last draft, */
    long rows, passes;    /* with its counters */
    int due, sequences;   /* rows of the pass that the last drafts are verified in, and its sequences */
    int settles;          /* coming passes that tell nothing of rows */
} wg_auto_drafter;

/* Prices as the options say. Candidates must be open. ECONFIG, and failures of timing. */
wg_status wg_auto_prices_open(wg_auto_drafter *a, wg_error *err);

/* After the prices are open. Close it after failure too. ENOMEM */
wg_status wg_auto_live_open(wg_auto_drafter *a, wg_error *err);
void wg_auto_live_close(wg_auto_drafter *a);
/* What the target ran since the last draft. */
void wg_auto_live_passes(wg_auto_drafter *a);
/* Candidate k just drafted, in so many seconds, for sequences that had `lag` tokens to read; before: its model's counters
 * before that. */
void wg_auto_live_draft(wg_auto_drafter *a, int k, const wg_lm *before, double seconds, int sequences, int lag);
bool wg_auto_live_drafts(const wg_auto_drafter *a); /* whether most rounds draft; a trial is none of them */

/* A round: what pays; a level more or less of it; of a trial (core/sched/row_trial.h), in which all sequences decode plainly
 * or all draft. */
typedef enum wg_auto_round { WG_AUTO_CHOOSES, WG_AUTO_EXPLORES, WG_AUTO_PLAIN, WG_AUTO_DRAFTS } wg_auto_round;
/* The coming round; sets a->now. beginning: what it costs a sequence to begin drafting, passes. text: one begins. */
wg_auto_round wg_auto_live_round(wg_auto_drafter *a, double beginning, bool text);
void wg_auto_live_gain(wg_auto_drafter *a, double gain); /* what drafts of a sequence promise in this round */

#endif
