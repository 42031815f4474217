/* SPDX-License-Identifier: MIT
 * The rows of a verification pass, shared among the sequences of a step: how many draft tokens each gets, so that the expected
 * tokens of the step per its time are the most (goodput: SmartSpec, Liu et al. 2024; by survival as in DSpark and TETRIS).
 *
 * A chain of k draft tokens of sequence r yields 1 + s(r,1) + .. + s(r,k) tokens, s(r,j) the probability that its first j
 * tokens are all accepted. With n sequences, b draft tokens in all and drafts of depth d at most, a step takes
 *
 *      pass(other + n + width b) + d level + b token + rest
 *
 * pass is a measured table, of any shape: times of passes are staircases, so tokens per time has several local maxima over b,
 * and a search that stops at the first one stays below a step of the stairs. For a fixed depth the best b draft tokens are the
 * b largest s(r,j) with j up to that depth (s falls with j, so they are chains); every b of every depth is evaluated, so the
 * result is the maximum over all choices of lengths, none among them.
 *
 * `other` rows (prompts) are paid for whatever is drafted. Tokens per time of such a step would count their time as the price
 * of its tokens, and draft too much. So the price of time is the rate L of the best step without them, and what is maximised
 * is tokens - L time; for other = 0 both are one (Dinkelbach 1967).
 *
 * Where the first draft token of a sequence has a fee (seconds), L fee tokens are taken from what its chain yields. That is no
 * longer concave in the chain's length, so lengths are those of the least concave curve above it: exact where no chain is cut
 * inside a stretch that this evens out.
 *
 * What is decided before a draft is drawn must not look at the draws (methods.md, L3): s has to come from what earlier rounds
 * accepted (row_policy.h), not from this round's tokens or their probabilities. */
#ifndef WG_CORE_SCHED_ROW_BUDGET_H
#define WG_CORE_SCHED_ROW_BUDGET_H

#include "core/base/error.h"

/* Seconds, or any one unit. */
typedef struct wg_row_costs {
    const double
        *pass; /* (rows) of a pass of the target over 1, 2 .. rows rows; more rows cost as the last, and in proportion */
    int rows;
    double level; /* of drafting a level deeper, for all sequences together */
    double token; /* of a draft token besides */
    double rest;  /* of a step besides */
    double
        width; /* rows of the pass for a level of a draft, on average: 1 for chains, more for trees, whose lengths are depths */
} wg_row_costs;

/* Buffers for the largest step. */
typedef struct wg_row_budget {
    int sequences, depth;
    double *even; /* (sequences depth) owned: what draft tokens yield, fees taken off */
    int *order;   /* (sequences depth) owned: (sequence, depth) of draft tokens by falling probability, */
    int *level;   /* (sequences depth) owned: and their depths, from 0 */
    int *heap;    /* (sequences) owned */
    int *taken;   /* (sequences) owned */
} wg_row_budget;
wg_status wg_row_budget_open(wg_row_budget *b, int sequences, int depth, wg_error *err); /* ENOMEM */
void wg_row_budget_close(wg_row_budget *b);

/* Sequences of a step, and what else is in its pass. */
typedef struct wg_row_sequences {
    const double *survival; /* (n, depth) s(r,j), which do not rise with j */
    const int *most;        /* (n) the longest chain of each, at most `depth` */
    const double *fee;      /* (n) seconds; NULL: none */
    int n, other;           /* other: rows of the pass that are not these sequences' (prompts) */
} wg_row_sequences;

/* Writes length: (n) draft tokens of each, the fewest among equals. Returns the expected tokens beyond those of a step without
 * drafts, less L times the time beyond its; 0 where nothing is drafted. For other = 0 it is n (L / L0 - 1), L0 the rate without
 * drafts. drafts: the best lengths with at least one draft token, whether they pay or not; -INFINITY where `most` allows none.
 * O(N log n + depth N) for N = n depth; never allocates; a function of its arguments. */
double wg_row_budget_share(const wg_row_budget *b, const wg_row_costs *costs, const wg_row_sequences *of, bool drafts,
                           int *length);

double wg_row_costs_pass(const wg_row_costs *c, int rows);

#endif
