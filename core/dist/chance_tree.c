/* SPDX-License-Identifier: MIT
 * The enumerating chance. A run of the body is a script: the outcomes of its decisions in their order. Each run replays the
 * script of the run before up to the last decision that still has an untried outcome, takes that outcome there, and the
 * first outcome at every decision after it: a depth-first walk over the tree of all outcomes.
 *
 * Invariants: branch[0..n) is the script; branch[0..at) were used in this run; a branch's probability, address and next
 * outcome are written each time it is used, so a run's probability is the product over branch[0..at). */
#include "core/dist/chance.h"

#include <string.h>

#include "core/base/hash.h"
#include "core/base/mem.h"
#include "core/dist/race.h"

typedef struct wg_branch {
    int outcome, next;  /* outcome of this run, and of the next run that differs here; -1: none */
    double probability; /* of the outcome */
    wg_purpose purpose; /* the address */
    int index;
    uint64_t seed;
    uint32_t request, position;
    double below; /* a bound below which u is known to be, after a test of this address that did not fail early; else 0 */
    bool is_race;
    wg_race race; /* weights and winner, for the races after it at its address */
} branch;

/* The entry of the current decision; NULL when out of memory. A new one has outcome -1: not yet chosen. */
static branch *decide(const wg_chance *c, wg_purpose purpose, int index)
{
    wg_chance_tree *e = c->state;
    if (e->at == e->n) {
        if (e->n == e->cap) {
            branch *grown = wg_realloc(e->branch, (size_t)e->cap * 2, sizeof *grown);
            if (!grown) {
                e->failed = true;
                return NULL;
            }
            e->branch = grown;
            e->cap *= 2;
        }
        e->branch[e->n++].outcome = -1;
    }
    branch *b = &e->branch[e->at];
    b->purpose = purpose;
    b->index = index;
    b->seed = c->seed;
    b->request = c->request;
    b->position = c->position;
    b->below = 0;
    b->is_race = false;
    for (int i = 0; i < e->at; i++) {
        const branch *old = &e->branch[i];
        e->reused += old->purpose == purpose && old->index == index && old->position == b->position &&
                     old->request == b->request && old->seed == b->seed;
    }
    e->at++;
    return b;
}

static int tree_pick(const wg_chance *c, wg_purpose purpose, int index, const double *weight, int n)
{
    double sum = 0;
    int first = -1, after = -1;
    branch *b = decide(c, purpose, index);
    for (int i = n - 1; i >= 0; i--)
        if (weight[i] > 0) first = i;
    if (!b) return first < 0 ? 0 : first;
    if (b->outcome < 0) b->outcome = first < 0 ? 0 : first;
    for (int i = 0; i < n; i++) sum += weight[i];
    for (int i = n - 1; i > b->outcome; i--)
        if (weight[i] > 0) after = i;
    b->next = after;
    b->probability = first < 0 ? 1 : weight[b->outcome] / sum;
    return b->outcome;
}

/* The known upper bound of u at an address: 1, or the bound of an earlier test there. */
static double below(const wg_chance *c, wg_purpose purpose, int index)
{
    const wg_chance_tree *e = c->state;
    for (int i = 0; i < e->at; i++) {
        const branch *b = &e->branch[i];
        if (b->below > 0 && b->purpose == purpose && b->index == index && b->position == c->position &&
            b->request == c->request && b->seed == c->seed)
            return b->below;
    }
    return 1;
}

/* The same decision as a pick between two: 0 is "true". Its probability is that given u < below(): a bound that is below the
 * probability of the test itself bends the law, as it does in production. */
static bool tree_ratio(const wg_chance *c, wg_purpose purpose, int index, double num, double den)
{
    wg_chance_tree *e = c->state;
    const double known = below(c, purpose, index), of = den * known;
    const double always[2] = { num > 0, !(num > 0) }, weight[2] = { num, of - num };
    const int reused = e->reused;
    const bool is = tree_pick(c, purpose, index, num >= of ? always : weight, 2) == 0;
    if (known < 1) e->reused = reused; /* one decision in two calls */
    return is;
}

/* "Known to fail" is an outcome of its own, 1; after the other the test uses the remaining probability. */
static bool tree_fails(const wg_chance *c, wg_purpose purpose, int index, double most)
{
    wg_chance_tree *e = c->state;
    if (most >= 1) return false;
    const double weight[2] = { most, 1 - most };
    const int at = e->at;
    const bool fails = tree_pick(c, purpose, index, weight, 2) == 1;
    if (e->at > at && !fails) e->branch[at].below = most;
    return fails;
}

/* A pick whose weights are the probabilities of winning, given the winners of the earlier races on the same times. They are
 * computed when the decision is new; a replay has the same decisions before it, and so the same probabilities. */
static int tree_race(const wg_chance *c, wg_purpose purpose, wg_lists lists, const int32_t *token, const double *weight, int n)
{
    wg_chance_tree *e = c->state;
    wg_race earlier[WG_RACES];
    const bool few = n <= WG_RACE_TOKENS && !token;
    int k = 0;
    for (int i = 0; i < e->at; i++) {
        const branch *old = &e->branch[i];
        if (!old->is_race || old->purpose != purpose || old->position != c->position || old->request != c->request ||
            old->seed != c->seed)
            continue;
        if (k == WG_RACES || !few || old->race.n != n) {
            e->beyond = true;
            break;
        }
        earlier[k++] = old->race;
    }
    const int reused = e->reused, at = e->at;
    const bool new = at == e->n;
    wg_race now = { .n = few ? n : 0, .lists = lists };
    if (few) {
        if (new) {
            memcpy(now.weight, weight, (size_t)n * sizeof *weight);
            e->beyond |= !wg_race_law(earlier, k, &now);
        } else now = e->branch[at].race;
        weight = now.chance;
    }
    const int winner = tree_pick(c, purpose, -1, weight, n);
    e->reused = reused;             /* shared by design */
    if (e->at == at) return winner; /* out of memory */
    branch *b = &e->branch[at];
    b->is_race = true;
    b->race = now;
    b->race.winner = winner;
    return winner;
}

static const wg_chance_class enumerate = { tree_ratio, tree_pick, tree_race, tree_fails };

wg_status wg_chance_tree_open(wg_chance_tree *e, wg_error *err)
{
    enum { START = 64 };
    *e = (wg_chance_tree){ .cap = START, .branch = wg_alloc(START, sizeof(branch)) };
    return e->branch ? WG_OK : wg_nomem(err, START * sizeof(branch), "the enumeration of random decisions");
}

void wg_chance_tree_close(wg_chance_tree *e)
{
    wg_free(e->branch);
    *e = (wg_chance_tree){ 0 };
}

wg_chance wg_chance_tree_chance(wg_chance_tree *e, uint32_t position)
{
    return (wg_chance){ .class = &enumerate, .position = position, .state = e };
}

double wg_chance_tree_probability(const wg_chance_tree *e)
{
    double p = 1;
    for (int i = 0; i < e->at; i++) p *= e->branch[i].probability;
    return p;
}

uint64_t wg_chance_tree_past(const wg_chance_tree *e)
{
    uint64_t h = wg_hash64(WG_HASH_START, &e->at, sizeof e->at);
    for (int i = 0; i < e->at; i++) h = wg_hash64(h, &e->branch[i].outcome, sizeof e->branch[i].outcome);
    return h;
}

int wg_chance_tree_reused(const wg_chance_tree *e) { return e->reused; }

bool wg_chance_tree_next(wg_chance_tree *e)
{
    int n = e->at; /* decisions that this run did not reach are no part of it */
    while (n > 0 && e->branch[n - 1].next < 0) n--;
    e->n = n;
    e->at = 0;
    if (n == 0 || e->failed || e->beyond) return false;
    e->branch[n - 1].outcome = e->branch[n - 1].next;
    return true;
}
