/* SPDX-License-Identifier: MIT
 * Draft lengths of the sequences of a step (WG_SPECULATION_ADAPTIVE), by the cost model.
 *
 * Sequences whose text does not depend on drafts are planned together: their draft tokens, the likeliest first, are added to
 * the pass as long as expected tokens per time rise over the whole order. Whether drafts pay is decided for all of them, by a
 * moving average of what the best drafts promise. Prices follow the clock where the scheduler times its steps, and survival
 * passes from sequence to sequence. Rows of prompts are paid for whatever is drafted: with them, what is maximised is tokens
 * less time at the rate of the best step without them (Dinkelbach 1967).
 *
 * A sequence whose text depends on its drafts is planned alone, by the prices that were given and what its own drafts kept. */
#ifndef WG_CORE_SCHED_BATCH_LENGTHS_H
#define WG_CORE_SCHED_BATCH_LENGTHS_H

#include "core/base/error.h"
#include "core/sched/cost_model.h"

/* A step; seconds. */
typedef struct wg_batch_step {
    int rows;    /* rows of the pass */
    int prompt;  /* rows of prompts in this pass or the one before it; if any, the pass is not used to learn prices */
    int drafted; /* draft tokens, all sequences */
    int depth;   /* of the deepest draft */
    int read;    /* tokens that a draft model read first, having missed them while it was not asked */
    double draft, pass, rest;
} wg_batch_step;

/* A sequence of the coming step. */
typedef struct wg_batch_place {
    int slot, most; /* most: tokens of the longest draft that it may have */
    int missed;     /* tokens that its draft must read first */
    bool alone;     /* its text depends on its drafts */
    int length;     /* planned: draft tokens, as depth */
} wg_batch_place;

typedef struct wg_batch_lengths wg_batch_lengths;

/* slots: sequences are told apart by 0 .. slots - 1. depth: of the longest draft, at most WG_COST_DEPTH counts. Prices are of
 * member 0, and are copied. ENOMEM. */
wg_status wg_batch_lengths_open(wg_batch_lengths **out, int slots, int depth, const wg_cost_prices *prices, wg_error *err);
void wg_batch_lengths_close(wg_batch_lengths *b); /* NULL is fine */

/* Writes the length of each of n places. other: rows of the pass besides. Never allocates. O(n^2 depth). */
void wg_batch_lengths_plan(wg_batch_lengths *b, wg_batch_place *place, int n, int other);
/* What a step has taken. Without a call prices stay as they were given, and plain decoding is not tried. */
void wg_batch_lengths_time(wg_batch_lengths *b, const wg_batch_step *step);
/* What a step of a place came to: `nodes` draft tokens were verified, `offered` of them in depth, and `accepted` accepted. */
void wg_batch_lengths_learn(wg_batch_lengths *b, const wg_batch_place *place, int nodes, int offered, int accepted);
void wg_batch_lengths_forget(wg_batch_lengths *b, int slot); /* its text has ended; another request may have the slot */

#endif
