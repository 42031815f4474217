/* SPDX-License-Identifier: MIT
 * See row_policy.h. */
#include "core/sched/row_policy.h"

#include <math.h>

#include "core/base/mem.h"
#include "core/sched/row_trial.h"

/* Before anything is seen: a rate of 0.7, of so many tokens' weight; a deeper level starts from the one above it. KEEP: the
 * share of what was seen that is left after a round, of all sequences and of one. Of KEEP 0.9 .. 1 and WEIGHT 3 .. 50, those of
 * OWN predict the next draft token's acceptance best (sum of log-likelihoods, 88 texts at temperature 0 and 0.8); with 0.95 and
 * 6 the factor's noise alone turned drafts on and off. BEGINS, ENDS: what drafts must promise beyond plain decoding, of its
 * tokens, to begin and to go on. EXPLORES: of so many steps that draft, one finds out about sizes. */
static const double FIRST_RATE = 0.7, FIRST_WEIGHT = 2, COMMON_KEEP = 0.998, OWN_KEEP = 0.98, OWN_WEIGHT = 12;
static const double HIGHEST_RATE = 0.995, BEGINS = 0.03, ENDS = -0.03, GAIN_KEEP = 0.98;
enum { EXPLORES = 16 };
/* TEXT_KEEP: the share of what was read and told of a text that is left after another one. MOST_MISSED: tokens a step that a
 * sequence is charged with at most for what it has missed; one that has missed more will hardly draft again. */
static const double TEXT_KEEP = 0.95, MOST_MISSED = 0.5;

typedef struct own {
    double hits, expected; /* tokens accepted, and those that the common rates gave */
    double read, told;     /* tokens that a draft model had missed when it began; tokens since */
    bool begun;
} own;

struct wg_row_policy {
    wg_row_timing timing;
    int slots, depth;
    double *hits, *trials;       /* (depth) owned: of all sequences, by depth */
    own *own;                    /* (slots) owned */
    double *survival;            /* (slots, depth) owned */
    double *fee, *late;          /* (slots) owned: a step's part of what must be read, and of what was missed since it began */
    int *most, *sorted, *length; /* (slots) owned */
    wg_row_budget budget;
    double nodes, levels; /* of drafts, with decay: their quotient is the width */
    double read, told;    /* of texts that have ended, with decay */
    wg_row_trial trial;
    double gain;        /* of the last steps without prompts: what drafts promised beyond plain decoding, of its tokens */
    bool planned, pays; /* there was such a step; drafts are better */
    bool timed;         /* steps are timed, so prices follow them */
    unsigned drafted;   /* steps that drafted where drafts pay */
};

static wg_status allocate(wg_row_policy *p, const wg_row_costs *costs, wg_error *err)
{
    const size_t slots = (size_t)p->slots, depth = (size_t)p->depth;
    p->hits = wg_calloc(depth, sizeof *p->hits);
    p->trials = wg_calloc(depth, sizeof *p->trials);
    p->own = wg_calloc(slots, sizeof *p->own);
    p->survival = wg_calloc(slots * depth, sizeof *p->survival);
    p->fee = wg_calloc(slots, sizeof *p->fee);
    p->late = wg_calloc(slots, sizeof *p->late);
    p->most = wg_calloc(slots, sizeof *p->most);
    p->sorted = wg_calloc(slots, sizeof *p->sorted);
    p->length = wg_calloc(slots, sizeof *p->length);
    if (!p->hits || !p->trials || !p->own || !p->survival || !p->fee || !p->late || !p->most || !p->sorted || !p->length)
        return wg_nomem(err, (slots * (depth + 6) + 2 * depth) * sizeof(double), "the draft lengths of a scheduler");
    WG_TRY(wg_row_timing_open(&p->timing, costs, err));
    return wg_row_budget_open(&p->budget, p->slots, p->depth, err);
}

wg_status wg_row_policy_open(wg_row_policy **out, int slots, int depth, const wg_row_costs *costs, wg_error *err)
{
    wg_row_policy *p = wg_calloc(1, sizeof *p);
    if (!p) return wg_nomem(err, sizeof *p, "the draft lengths of a scheduler");
    p->slots = slots;
    p->depth = depth;
    wg_row_trial_open(&p->trial);
    const wg_status s = allocate(p, costs, err);
    if (s) wg_row_policy_close(p);
    else *out = p;
    return s;
}

void wg_row_policy_close(wg_row_policy *p)
{
    if (!p) return;
    wg_row_budget_close(&p->budget);
    wg_row_timing_close(&p->timing);
    void *const all[] = { p->hits, p->trials, p->own, p->survival, p->fee, p->late, p->most, p->sorted, p->length };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) wg_free(all[i]);
    wg_free(p);
}

/* ---- estimates --------------------------------------------------------------------------------------------------- */

/* Of a token at depth j, given those before it. */
static double common_rate(const wg_row_policy *p, int j)
{
    double rate = FIRST_RATE;
    for (int k = 0; k < j; k++) rate = (p->hits[k] + FIRST_WEIGHT * rate) / (p->trials[k] + FIRST_WEIGHT);
    return rate;
}

void wg_row_policy_survival(const wg_row_policy *p, int slot, double *survival)
{
    const own *o = &p->own[slot];
    const double factor = (o->hits + OWN_WEIGHT) / (o->expected + OWN_WEIGHT);
    double rate = FIRST_RATE, reach = 1;
    for (int j = 0; j < p->depth; j++) {
        rate = (p->hits[j] + FIRST_WEIGHT * rate) / (p->trials[j] + FIRST_WEIGHT);
        survival[j] = reach *= fmin(rate * factor, HIGHEST_RATE);
    }
}

void wg_row_policy_learn(wg_row_policy *p, int slot, int nodes, int offered, int accepted)
{
    own *o = &p->own[slot];
    o->told += 1 + accepted;
    if (offered > 0) {
        p->nodes = COMMON_KEEP * p->nodes + nodes;
        p->levels = COMMON_KEEP * p->levels + offered;
        p->timing.costs.width = fmax(1, p->nodes / p->levels);
    }
    if (offered > p->depth) offered = p->depth;
    if (accepted > offered) accepted = offered;
    const int tested = accepted < offered ? accepted + 1 : offered;
    if (tested == 0) return;
    o->hits *= OWN_KEEP;
    o->expected *= OWN_KEEP;
    for (int j = 1; j <= tested; j++) o->expected += common_rate(p, j);
    o->hits += accepted;
    for (int k = 0; k < tested; k++) {
        p->hits[k] = COMMON_KEEP * p->hits[k] + (k < accepted);
        p->trials[k] = COMMON_KEEP * p->trials[k] + 1;
    }
}

void wg_row_policy_forget(wg_row_policy *p, int slot)
{
    own *o = &p->own[slot];
    if (o->told > 0) {
        p->read = TEXT_KEEP * p->read + o->read;
        p->told = TEXT_KEEP * p->told + o->told;
    }
    *o = (own){ 0 };
}

void wg_row_policy_time(wg_row_policy *p, const wg_row_step *step)
{
    p->timed |= step->pass > 0;
    wg_row_timing_add(&p->timing, step);
}

/* ---- a step ------------------------------------------------------------------------------------------------------ */

/* The best lengths of n sequences, into p->length; what they promise beyond plain decoding, of its tokens. fee: NULL, where it
 * does not matter what draft models must read first. */
static double share(wg_row_policy *p, const wg_row_costs *costs, int n, int other, const double *fee, bool drafts)
{
    const wg_row_sequences of = { .survival = p->survival, .most = p->most, .fee = fee, .n = n, .other = other };
    return wg_row_budget_share(&p->budget, costs, &of, drafts, p->length) / n;
}

/* What the best drafts promise beyond plain decoding, of its tokens, less what is read besides; -INFINITY where none may draft.
 * A token brings its part of the reading of texts that begin. */
static double promise(wg_row_policy *p, int n, int other)
{
    const double gain = (1 + share(p, &p->timing.costs, n, other, NULL, true)) * wg_row_timing_bias(&p->timing, p->pays) - 1;
    const double plain = wg_row_costs_pass(&p->timing.costs, n) + p->timing.costs.rest;
    double tokens = n, missed = 0;
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < p->length[i]; j++) tokens += p->survival[(size_t)i * (size_t)p->depth + (size_t)j];
        missed += fmin(p->late[i] * n / plain, MOST_MISSED);
    }
    const double texts = p->told > 0 ? p->read / p->told * p->timing.read * tokens / plain : 0;
    return gain - texts - (p->pays ? 0 : missed / n);
}

/* The first steps after a change are slow (row_timing.h), and a promise is no surer than ENDS and BEGINS are apart: so drafts
 * begin when they have promised BEGINS for some steps, and end at ENDS. A step that reads a prompt, where drafts may look
 * cheap, changes nothing. */
static void judge(wg_row_policy *p, double gain, int other)
{
    if (other == 0) p->gain += (p->planned ? 1 - GAIN_KEEP : 1) * (gain - p->gain), p->planned = true;
    p->pays = p->gain > (p->pays ? ENDS : BEGINS);
}

/* Lengths by prices that may well be: sizes that only seem dear would never be seen. */
static void explore(wg_row_policy *p, int n, int other)
{
    wg_row_costs hope = p->timing.costs;
    wg_row_timing_hope(&p->timing);
    hope.pass = p->timing.hope;
    share(p, &hope, n, other, p->late, true);
}

/* Where drafts pay, each sequence drafts from when what it must read first is worth it; in a trial at least one. */
static void decide(wg_row_policy *p, int n, int other)
{
    const double gain = promise(p, n, other);
    bool fees = false;
    for (int i = 0; i < n; i++) fees |= p->fee[i] > 0;
    if (gain > -INFINITY) judge(p, gain, other);
    const bool tells = !p->pays || p->timed; /* plain steps tell of nothing but time */
    double loss = gain > -INFINITY && tells ? fabs(p->gain) : INFINITY;
    if (fees && !p->pays && wg_row_trial_due(&p->trial, p->pays, loss))
        loss = fmax(loss, -share(p, &p->timing.costs, n, other, p->fee, true));
    const bool drafts = wg_row_trial_step(&p->trial, p->pays, loss);
    if (drafts && fees && p->pays) share(p, &p->timing.costs, n, other, p->late, false);
    if (drafts && p->pays && p->timed && ++p->drafted % EXPLORES == 0) explore(p, n, other);
    for (int i = 0; i < n && !drafts; i++) p->length[i] = 0;
}

void wg_row_policy_plan(wg_row_policy *p, const int *slot, const int *most, const int *missed, int n, int other, int *length)
{
    for (int i = 0; i < n; i++) { /* in the order of slots, whatever that of the caller */
        int at = i;
        for (; at > 0 && slot[p->sorted[at - 1]] > slot[i]; at--) p->sorted[at] = p->sorted[at - 1];
        p->sorted[at] = i;
    }
    for (int i = 0; i < n; i++) {
        const int k = p->sorted[i];
        own *o = &p->own[slot[k]];
        if (!o->begun) o->read = missed[k], o->begun = true;
        p->most[i] = most[k] < 0 ? 0 : most[k] > p->depth ? p->depth : most[k];
        p->fee[i] = missed[k] * p->timing.read / WG_ROW_HORIZON;
        p->late[i] = fmax(0, missed[k] - o->read) * p->timing.read / WG_ROW_HORIZON;
        wg_row_policy_survival(p, slot[k], p->survival + (size_t)i * (size_t)p->depth);
    }
    if (n > 0) decide(p, n, other);
    for (int i = 0; i < n; i++) length[p->sorted[i]] = p->length[i];
}
