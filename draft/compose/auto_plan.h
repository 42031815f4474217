/* SPDX-License-Identifier: MIT
 * The arithmetic of the drafter `auto` (auto.c): what a draft is expected to keep, what it costs, and which draft of a round,
 * if any, has the most expected tokens per expected time (Leviathan et al. 2023, section 3.3; SmartSpec's goodput, Liu et al.
 * 2024). Pure functions: every input is known before the round's draws (methods.md, L3). */
#ifndef WG_DRAFT_COMPOSE_AUTO_PLAN_H
#define WG_DRAFT_COMPOSE_AUTO_PLAN_H

#include "core/dist/tree.h"

enum { WG_AUTO_MOST = 4, WG_AUTO_DEPTH = 16, WG_AUTO_CLASSES = 4, WG_AUTO_TOPS = 8 };

/* Costs, all in one unit. */
typedef struct wg_auto_prices {
    double pass[WG_TREE_MAX + 1]; /* of a target pass over so many rows; more rows: the last slope goes on */
    double level[WG_AUTO_MOST];   /* by candidate: of one level of its draft; 0: it runs no model */
    double read[WG_AUTO_MOST];    /* of a token of the text that its model has not read */
    double row;                   /* of a row of p or q: made of its logits, and drawn from */
    double flattery;              /* by how much prices let drafts look better than they are: below 1 if so (row_timing.h) */
} wg_auto_prices;

/* The cost of a pass over this many rows of each of k sequences, for one of them. */
double wg_auto_pass(const wg_auto_prices *p, int rows, int sequences);
double wg_auto_level(const wg_auto_prices *p, int candidate); /* of a level of its draft, with the row of q */

/* What drafts of a candidate have kept, as decayed counts. A trial of depth d: the draft's tokens above d were kept, and it has
 * a token there. */
typedef struct wg_auto_survival {
    double hit[WG_AUTO_CLASSES][WG_AUTO_DEPTH], trial[WG_AUTO_CLASSES][WG_AUTO_DEPTH]; /* by the score's class and depth - 1 */
    double top_hit[WG_AUTO_TOPS], top_trial[WG_AUTO_TOPS];                             /* by q's best probability, */
    double top_sum, top_count;                                                         /* and its mean over trials */
    double rows[WG_AUTO_DEPTH + 1]; /* rows of a tree of that height; 0: not known */
} wg_auto_survival;

/* A trial of depth d >= 1, in a draft of this class. keep: what is left of the older counts. */
void wg_auto_learn(wg_auto_survival *s, int class, int depth, bool hit, double keep);
void wg_auto_learn_top(wg_auto_survival *s, double top, bool hit, double keep);
void wg_auto_learn_rows(wg_auto_survival *s, int depth, int rows);
/* Lowers the counts to a weight of at most `most` trials each, so that new evidence soon counts more. */
void wg_auto_fade(wg_auto_survival *s, double most);

/* The probability that a token of depth d is kept, when those above are. Its prior is the estimate one level above (depth 1:
 * `prior`), with the weight of four trials. _top: from q's best probability at its parent too; the prior, with the weight of
 * twelve, is the estimate for that depth, corrected by a part of what `top` differs from its mean so far. compares: the rule
 * compares the draft with a token of the target's, so that part is larger. */
double wg_auto_survive(const wg_auto_survival *s, int class, int depth, double prior);
double wg_auto_survive_top(const wg_auto_survival *s, int depth, double top, double prior, bool compares);

/* The class of a draft that expects to keep so many tokens (wg_tree.score; 0: not declared). */
int wg_auto_class(double score);

/* What a candidate can draft in this round. */
typedef struct wg_auto_offer {
    int height;                  /* deepest possible draft; 0: none */
    int class;                   /* of its score */
    int lag;                     /* tokens of the text that it must read first */
    double prior;                /* survival at depth 1 before any was seen */
    int rows[WG_AUTO_DEPTH + 1]; /* (height + 1) rows of the target's pass when it is cut at a depth; rows[0] == 1 */
} wg_auto_offer;

typedef struct wg_auto_choice {
    int candidate, depth; /* candidate -1: nothing is drafted, depth 0 */
    double tokens, cost;  /* expected */
} wg_auto_choice;

/* The draft with the most tokens per cost; no draft, unless it promises more than `least` beyond plain decoding's tokens per
 * cost, of these. left: tokens that the text may still get, over which the cost of reading is spread. sequences: of the step.
 * gain: what the best draft promises; -INFINITY where none is offered. Among equals: the one named first, the shortest. */
wg_auto_choice wg_auto_choose(const wg_auto_prices *p, const wg_auto_survival *s, const wg_auto_offer *offer, int n,
                              int sequences, int left, double least, double *gain);

/* A chain that grows: at a node at this depth, whose tokens so far survive with probability `reach`, and whose child does with
 * `next`. rate: tokens per cost that the choice was made for. */
typedef struct wg_auto_chain {
    int candidate, depth;
    int left; /* tokens that may be drafted still, at least 1 */
    double reach, next, rate;
} wg_auto_chain;

/* Whether it goes on: no child; a child without children; more. */
enum { WG_AUTO_ENDS = 1, WG_AUTO_LAST = 2, WG_AUTO_GOES_ON = 3 };
int wg_auto_pace(const wg_auto_prices *p, const wg_auto_survival *s, const wg_auto_chain *c, int sequences, double prior);

/* A price of a draft that was seen: nearer to that by a fifth of the logarithmic difference. A factor above 1.65 counts as
 * 1.65, so that one that was interrupted moves it little. */
double wg_auto_moved(double price, double seen);

#endif
