/* SPDX-License-Identifier: MIT
 * Every random decision of a drafter or a verifier goes through a wg_chance. In production it is Philox at an address (seed;
 * request, absolute position, purpose, index): there is no state, so order, batch, preemption and threads change nothing. In
 * the prover it enumerates all outcomes with their probabilities, so the exact output law of the same code is computed.
 *
 * Addresses (methods.md, L2). The token at absolute position t is drawn at (t, NEXT, 0), by wg_chance_at(c, depth) and
 * index 0, for any draft before it; so the text under `match` is byte-identical to plain decoding. Draft and accept draws
 * use the step's own position (that of the first token it emits) with index = node. A later step has a later position, so no
 * bits that a decision has used (block verification looks past the accepted prefix) are used again. */
#ifndef WG_CORE_DIST_CHANCE_H
#define WG_CORE_DIST_CHANCE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/error.h"
#include "core/base/plugin_api.h"
#include "kernels/purpose.h"

typedef struct wg_chance wg_chance;

/* Lists of times at one address: first, first + step, ... below end; 0 <= first, 1 <= step, end <= WG_LISTS. */
enum { WG_LISTS = 64 };
typedef struct wg_lists {
    int first, step, end;
} wg_lists;
static const wg_lists wg_list_0 = { 0, 1, 1 };

/* The lists that the kth of m siblings races on when the rule races on all lists below `races` (methods.md, Coupled races):
 * lists are distributed over the siblings in turn. With fewer lists than siblings some share one; the later one takes the
 * runner-up. */
static inline wg_lists wg_lists_dealt(int k, int m, int races)
{
    const int end = races > 1 ? races : 1, hands = m < end ? m : end;
    return (wg_lists){ k % hands, hands, end };
}

typedef struct wg_chance_class {
    bool (*ratio)(const wg_chance *c, wg_purpose purpose, int index, double num, double den);
    int (*pick)(const wg_chance *c, wg_purpose purpose, int index, const double *weight, int n);
    int (*race)(const wg_chance *c, wg_purpose purpose, wg_lists lists, const int32_t *token, const double *weight, int n);
    bool (*fails)(const wg_chance *c, wg_purpose purpose, int index, double most); /* NULL: never known */
} wg_chance_class;

struct wg_chance {
    const wg_chance_class *class;
    uint64_t seed;
    uint32_t request, position;
    void *state; /* the enumerating form's; NULL in production */
};

/* Production: Philox4x32-10 with key `seed` and counter (index, purpose, position, request); 53-bit uniforms u in [0,1). */
WG_PLUGIN_API wg_chance wg_chance_philox(uint64_t seed, uint32_t request, uint32_t position);

/* The same chance, `depth` positions further on. */
static inline wg_chance wg_chance_at(const wg_chance *c, int depth)
{
    wg_chance d = *c;
    d.position += (uint32_t)depth;
    return d;
}

/* True with probability min(1, num/den); num, den >= 0. Decided as u * den < num: never true for num == 0, always true for
 * num >= den > 0; num > 0 == den is true. No division. */
WG_PLUGIN_API bool wg_chance_ratio(const wg_chance *c, wg_purpose purpose, int index, double num, double den);

/* i with probability weight[i] / sum. weight >= 0 with a positive sum; an i of weight 0 is never returned. Decided in whole
 * numbers (mass_weights.h): the first i whose mass, with those before it, is above u times the total mass. */
WG_PLUGIN_API int wg_chance_pick(const wg_chance *c, wg_purpose purpose, int index, const double *weight, int n);

/* The same decision for a given u in [0,1). */
int wg_pick_at(double u, const double *weight, int n);

/* The winner of a race: the i with the smallest E_x / weight[i], x = token[i] (NULL: i itself), where E_x is the least of the
 * times that token x has in these lists: independent Exp(1) times that belong to the address (position, purpose) and not to
 * this call. One race picks i with probability weight[i] / sum; two races at one address with other weights run on the same
 * times, so that they tend to have the same winner (methods.md, Coupled races); a race without its winner gives the second, and
 * so on (draws without replacement). Weights as in pick. Philox index: x / 2, purpose: wg_purpose_of_list. */
WG_PLUGIN_API int wg_chance_race(const wg_chance *c, wg_purpose purpose, wg_lists lists, const int32_t *token,
                                 const double *weight, int n);

/* Whether a test at this address with a probability of at most `most` is known to fail. False: unknown; the test must then be
 * made, once. A bound that is too small biases the text, which the enumeration shows. */
WG_PLUGIN_API bool wg_chance_fails(const wg_chance *c, wg_purpose purpose, int index, double most);

/* ---- The enumerating form. Runs a body once per combination of outcomes, depth first, and gives each run its probability.
 *
 *     wg_chance_tree e; wg_chance_tree_open(&e, err);
 *     do { wg_chance c = wg_chance_tree_chance(&e, position);
 *          ... the body makes its decisions through c ...;  use wg_chance_tree_probability(&e)
 *     } while (wg_chance_tree_next(&e));
 *     wg_chance_tree_close(&e);
 *
 * Outcomes of probability 0 are not visited. A run must not use the same address twice (L2); wg_chance_tree_reused counts the
 * violations. Races at one address share it by design: their joint law is exact for a few tokens and lists (race.h); with more,
 * a second race there sets `beyond`. The body must be deterministic. */
typedef struct wg_chance_tree {
    struct wg_branch *branch; /* the decisions of the current run */
    int n, cap, at, reused;
    bool failed; /* out of memory: the enumeration is invalid */
    bool beyond; /* a joint law of races was needed that is not computed: invalid, too */
} wg_chance_tree;
wg_status wg_chance_tree_open(wg_chance_tree *e, wg_error *err);
void wg_chance_tree_close(wg_chance_tree *e);
wg_chance wg_chance_tree_chance(wg_chance_tree *e, uint32_t position);
double wg_chance_tree_probability(const wg_chance_tree *e); /* of the run so far */
int wg_chance_tree_reused(const wg_chance_tree *e);
uint64_t wg_chance_tree_past(const wg_chance_tree *e); /* digest of the outcomes of the run so far */
bool wg_chance_tree_next(wg_chance_tree *e);           /* false: all runs are done */

#endif
