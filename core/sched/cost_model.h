/* SPDX-License-Identifier: MIT
 * The cost model: how long drafts are, and which drafter makes them. The drafter `auto` (draft/compose/auto.c), the length
 * policy `cost` (draft/length/length.c) and the scheduler's adaptive lengths (wg_batch_lengths below) decide by it.
 *
 * Prices. A pass of the target over r rows costs what the machine's profile (core/engine/profile.h) or a given table says.
 * Where the emitted text does not depend on the drafts (rules that compare, temperature 0), prices may follow the clock: each
 * size of pass, the machine and each draft pass have moving averages of what passes took. Elsewhere prices stay as they are,
 * and a decision is a function of seed, request and profile.
 *
 * Survival. The share of draft tokens of each depth that were kept, given that those above were, as decayed counts: per drafter
 * and sequence, and per class of the score that a draft declares (wg_tree.score).
 *
 * Decision. Of all members and depths the one with the most expected tokens per expected time (Leviathan et al. 2023, section
 * 3.3; goodput, Liu et al. 2024). Drafts begin when they promise WG_COST_SWITCH times plain decoding's tokens per time, and end
 * when they promise less than plain decoding. What is not done is tried for WG_COST_RUN rounds now and then (wg_cost_trial).
 *
 * Non-anticipation (docs/methods.md, L3, L4). Whether a node has a child is decided before that child is drawn, from the tokens
 * committed so far, the outcomes of earlier rounds, and prices. No function below reads a drawn token of the current draft or
 * its probability; the only input of the current round is the shape and the declared score of a draft that was looked up
 * without a draw. A draft that is too deep is cut by whole levels, so that what remains does not depend on what was drawn. */
#ifndef WG_CORE_SCHED_COST_MODEL_H
#define WG_CORE_SCHED_COST_MODEL_H

#include "core/engine/profile.h"

/* The ten constants of the model. */
#define WG_COST_KEEP 0.98 /* what counts keep of themselves at a trial: a memory of 50 trials, about one paragraph */
#define WG_COST_PRIOR 4.0 /* trials that a prior is worth: fewer and one rejection stops drafts, more and a text is half over */
#define WG_COST_FIRST 0.75  /* survival of a model's token before any trial: a common draft model of the same family */
#define WG_COST_FOUND 0.125 /* prior of looked-up tokens, of a model's: their outcomes are known every round, without a trial */
#define WG_COST_SWITCH 1.03 /* factor by which drafts must win to begin: the precision of prices between two measurements */
#define WG_COST_RATE 0.1    /* moving averages of times: ten passes, of which each is off by about a tenth */
#define WG_COST_CLIP 0.5    /* the largest logarithm of time over price that counts: interrupted passes are no news */
#define WG_COST_SHARE 0.005 /* share of the time that trials may cost: below what benchmarks can tell apart */
#define WG_COST_RUN 16      /* rounds of a trial: the first passes after those of another kind find a cold cache */
#define WG_COST_EVERY 8     /* of so many rounds one tries a level more or less, and one asks a look-up that was of no use */

enum { WG_COST_MEMBERS = 4, WG_COST_DEPTH = 16, WG_COST_SCORES = 4, WG_COST_ROWS = 64, WG_COST_SIZES = 16 };

/* Prices in one unit: that of the table. */
typedef struct wg_cost_prices {
    int rows;                      /* of the table */
    double pass[WG_COST_ROWS + 1]; /* [1 .. rows] of a pass; larger passes cost as the last, in proportion */
    double level[WG_COST_MEMBERS]; /* of a level of a member's draft; 0: it runs no model, or its price is unknown */
    double read[WG_COST_MEMBERS];  /* of a token of the text that a member's model has not read */
    double token;                  /* of each draft token besides, all members */
    double row;                    /* of a row of p or q, made of its logits and drawn from */
    double rest;                   /* of a round besides */
    double unit;                   /* seconds of the unit now; 0: no pass was timed */
    double factor[WG_COST_SIZES];  /* by size: of its table price; 0: no pass of this size was timed */
    int seen[WG_COST_SIZES];       /* passes of a size that were timed */
} wg_cost_prices;

/* Of a pass over this many rows. _each: for one of so many sequences with so many rows each, rows of p included. _level: of a
 * level of a member's draft, the row of q included. */
double wg_cost_of_pass(const wg_cost_prices *p, int rows);
double wg_cost_each(const wg_cost_prices *p, int rows, int sequences);
double wg_cost_level(const wg_cost_prices *p, int member);

/* What passes took, in seconds. read: tokens of the text that the member's model read before its draft. */
void wg_cost_saw_pass(wg_cost_prices *p, int rows, double seconds);
void wg_cost_saw_draft(wg_cost_prices *p, int member, int levels, int tokens, int read, double seconds);
void wg_cost_saw_rest(wg_cost_prices *p, double seconds);

/* Decayed counts. A trial of depth d: the tokens above d were kept, and the draft has a token there. */
typedef struct wg_cost_survival {
    double hit[WG_COST_SCORES][WG_COST_DEPTH], trial[WG_COST_SCORES][WG_COST_DEPTH]; /* by class of the score, depth - 1 */
    double nodes, levels; /* of drafts: their quotient is the rows that a level takes */
} wg_cost_survival;

int wg_cost_class(double score); /* of a draft that expects to keep so many tokens; 0: not declared */
/* A draft of which the first `kept` levels were kept, and `tried` were tried: as many, or one more. What was not tried fades as
 * well, so it is tried again by and by. */
void wg_cost_learn(wg_cost_survival *s, int class, int tried, int kept, double keep);
void wg_cost_learn_width(wg_cost_survival *s, int nodes, int levels, double keep);
/* What a new sequence takes from earlier ones: their shares, with the weight of WG_COST_RUN trials at most. */
void wg_cost_carry(wg_cost_survival *s, const wg_cost_survival *from);
/* The probability that a token is kept at this depth, at most WG_COST_DEPTH, given those above. above: the same one level
 * above, or the prior. */
double wg_cost_survive(const wg_cost_survival *s, int class, int depth, double above);
int wg_cost_width(const wg_cost_survival *s, int levels); /* draft tokens of so many levels, at least one each */

/* What a member can draft in this round. */
typedef struct wg_cost_offer {
    int height;                  /* the deepest draft; 0: none */
    int class, lag;              /* of its score; tokens of the text that it must read first */
    double prior;                /* survival at depth 1 before any trial */
    int rows[WG_COST_DEPTH + 1]; /* [0 .. height] of the target's pass when it is cut at a depth; rows[0] == 1 */
} wg_cost_offer;

typedef struct wg_cost_choice {
    int member, depth; /* member -1: nothing is drafted, depth 0 */
    double tokens, cost;
    double gain; /* what it promises beyond plain decoding, of plain decoding's tokens per cost; -INFINITY without a draft */
} wg_cost_choice;

/* The best draft of n members, whether it pays or not; of equals the first member, the shortest. member -1: none offers any.
 * left: tokens that the text may still get; reading is spread over them, over as many as the counts remember at most. */
wg_cost_choice wg_cost_best(const wg_cost_prices *p, const wg_cost_survival *s, const wg_cost_offer *offer, int n,
                            int sequences, int left);
static inline bool wg_cost_pays(bool drafts, double gain) { return gain > (drafts ? 0 : WG_COST_SWITCH - 1); }

/* Depths that only seem dear would never be tried: in one of WG_COST_EVERY rounds that draft, a level more or less than is
 * best, in turn. */
int wg_cost_explore(unsigned round, int best, int most);

/* Trials, for all sequences together: drafts where plain decoding is better, plain decoding where drafts are. One begins when
 * it costs no more than what WG_COST_SHARE of the rounds since the last one has saved. */
typedef struct wg_cost_trial {
    bool on, drafts; /* drafts: of a trial */
    int steps;       /* of the trial; without one, since the last one */
    double saved;    /* rounds of plain decoding that a trial may cost; begins with WG_COST_EVERY */
} wg_cost_trial;
#define WG_COST_NO_TRIAL ((wg_cost_trial){ .saved = WG_COST_EVERY })
/* Whether the coming round drafts. pays: drafts are expected to be better. loss: what a round of the other kind is expected to
 * cost, in rounds of plain decoding; INFINITY: no trial. */
bool wg_cost_trial_step(wg_cost_trial *t, bool pays, double loss);

/* Fills the table, in passes of the target over one row: from "1/1.02/1.1", passes over 1, 2, ... rows of which the last price
 * applies to all larger ones, or where that is empty from the profile. ECONFIG, naming the drafter; those of the profile. */
wg_status wg_cost_open(wg_cost_prices *p, const char *given, const char *drafter, wg_profile *from, wg_lm *target,
                       wg_error *err);
/* A member's draft model, likewise: its passes, and what it reads. */
wg_status wg_cost_open_draft(wg_cost_prices *p, int member, wg_profile *from, wg_lm *draft, wg_lm *target, wg_error *err);

/* ---- draft lengths of the sequences of a step (WG_SPECULATION_ADAPTIVE)
 *
 * Sequences whose text does not depend on drafts are planned together: their draft tokens, the likeliest first, are added to
 * the pass as long as expected tokens per time rise over the whole order. Whether drafts pay is decided for all of them, by a
 * moving average of what the best drafts promise. Prices follow the clock where the scheduler times its steps, and survival
 * passes from sequence to sequence. Rows of prompts are paid for whatever is drafted: with them, what is maximised is tokens
 * less time at the rate of the best step without them (Dinkelbach 1967). A sequence whose text depends on its drafts is planned
 * alone, by the prices that were given and what its own drafts kept. */

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
 * member 0, and are copied. ENOMEM. Free with wg_free. */
wg_status wg_batch_lengths_open(wg_batch_lengths **out, int slots, int depth, const wg_cost_prices *prices, wg_error *err);

/* Writes the length of each of n places. other: rows of the pass besides. Never allocates. O(n^2 depth). */
void wg_batch_lengths_plan(wg_batch_lengths *b, wg_batch_place *place, int n, int other);
/* What a step has taken. Without a call prices stay as they were given, and plain decoding is not tried. */
void wg_batch_lengths_time(wg_batch_lengths *b, const wg_batch_step *step);
/* What a step of a place came to: `nodes` draft tokens were verified, `offered` of them in depth, and `accepted` accepted. */
void wg_batch_lengths_learn(wg_batch_lengths *b, const wg_batch_place *place, int nodes, int offered, int accepted);
void wg_batch_lengths_forget(wg_batch_lengths *b, int slot); /* its text has ended; another request may have the slot */

#endif
