/* SPDX-License-Identifier: MIT
 * The policies, as a table; then the functions that drafters call. Sources: confidence, the assistant threshold of Hugging Face
 * transformers; entropy, SVIP (Zhang et al. 2024), 1 - sqrt(c H) being a lower bound on the acceptance; adaedl, AdaEDL (Agrawal
 * et al. 2024); cost, the cost model (core/sched/cost_model.h) for one sequence. */
#include "draft/length/length.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "core/base/mem.h"

/* ---- policies by q: all stop where what they look for is below the bound, which is `threshold` at first */

static bool confidence_stops(const wg_length *l, const wg_length_state *s, double top, double entropy)
{
    (void)l, (void)entropy;
    return top < s->bound;
}

static bool entropy_stops(const wg_length *l, const wg_length_state *s, double top, double entropy)
{
    (void)top;
    return 1 - sqrt(l->opt.spread * entropy) < s->bound;
}

/* Acceptance below the target raises the bound, slowly. */
static void adaedl_learn(const wg_length *l, wg_length_state *s, int offered, int accepted)
{
    s->rate = l->opt.keep * s->rate + (1 - l->opt.keep) * accepted / offered;
    s->bound = fmin(1, fmax(0, s->bound + (s->rate < l->opt.aim ? 0.01 : s->rate > l->opt.aim ? -0.01 : 0)));
}

/* ---- cost */

/* Where no draft pays, one token is tried after every 2 * WG_COST_EVERY steps without a draft. */
static int cost_plan(const wg_length *l, wg_length_state *s)
{
    wg_cost_offer o = { .height = l->max < WG_COST_DEPTH ? l->max : WG_COST_DEPTH, .rows = { 1 }, .prior = WG_COST_FIRST };
    for (int d = 1; d <= o.height; d++) o.rows[d] = d + 1;
    const wg_cost_choice c = wg_cost_best(&l->price, &s->survival, &o, 1, 1, INT_MAX);
    const bool pays = wg_cost_pays(s->planned > 0, c.gain);
    if (!pays && ++s->idle < 2 * WG_COST_EVERY) return 0;
    s->idle = 0;
    return pays ? c.depth : 1;
}

static void cost_learn(const wg_length *l, wg_length_state *s, int offered, int accepted)
{
    wg_cost_learn(&s->survival, 0, accepted + (accepted < offered), accepted, l->opt.keep);
}

/* ---- drawn: the practice of many engines, which biases rules that accept with probabilities */

static bool drawn_drops(const wg_length *l, const wg_length_state *s, int32_t token, double q)
{
    (void)s, (void)token;
    return q < l->opt.threshold;
}

/* ---- head: estimates that see the tokens before the one that they speak of */

static bool head_halts(const wg_length *l, const wg_length_state *s, double survival)
{
    (void)l;
    return survival < s->bound;
}

const wg_length_class wg_length_classes[WG_LENGTHS] = {
    [WG_LENGTH_FIXED] = { .sees = 0 },
    [WG_LENGTH_CONFIDENCE] = { .sees = WG_SEES_Q, .stops = confidence_stops },
    [WG_LENGTH_ENTROPY] = { .sees = WG_SEES_Q, .stops = entropy_stops },
    [WG_LENGTH_ADAEDL] = { .sees = WG_SEES_Q | WG_SEES_PAST, .stops = entropy_stops, .learn = adaedl_learn },
    [WG_LENGTH_COST] = { .sees = WG_SEES_PAST | WG_SEES_COST, .plan = cost_plan, .learn = cost_learn },
    [WG_LENGTH_DRAWN] = { .sees = WG_SEES_DRAWN, .drops = drawn_drops },
    [WG_LENGTH_HEAD] = { .sees = WG_SEES_HEAD, .halts = head_halts },
};
const char *const wg_length_names[] = { "fixed", "confidence", "entropy", "adaedl", "cost", "drawn", "head", NULL };

typedef struct alone {
    wg_length_options length_policy;
} alone;
const wg_option wg_length_option_rows[] = { WG_LENGTH_OPTIONS(alone), WG_OPTION_END };

/* ---- open */

static wg_status find_costs(wg_length *l, const char *drafter, wg_lm *draft, const wg_env *env, wg_error *err)
{
    WG_TRY(wg_cost_open(&l->price, l->opt.costs, drafter, env->profile, env->target, err));
    if (l->opt.draft_cost < 0 && draft) return wg_cost_open_draft(&l->price, 0, env->profile, draft, env->target, err);
    l->price.level[0] = fmax(l->opt.draft_cost, 0);
    return WG_OK;
}

wg_status wg_length_open(wg_length *l, const wg_length_options *o, const char *drafter, int max, unsigned gives, wg_lm *draft,
                         const wg_env *env, wg_error *err)
{
    const char *name = wg_length_names[o->policy];
    l->class = &wg_length_classes[o->policy];
    l->opt = *o;
    l->max = max;
    l->log = env->lengths;
    if (l->class->sees & (WG_SEES_Q | WG_SEES_DRAWN) && !(gives & WG_SEES_Q))
        return wg_fail(err, WG_ECONFIG, "drafter %s: policy %s looks at q, and this drafter has none; choose fixed or cost",
                       drafter, name);
    if (l->class->sees & WG_SEES_HEAD && !(gives & WG_SEES_HEAD))
        return wg_fail(err, WG_ECONFIG,
                       "drafter %s: policy %s follows what a DSpark head estimates of its own tokens, and this drafter has no "
                       "such estimates; choose confidence, which looks at q",
                       drafter, name);
    if (l->class->sees & WG_SEES_DRAWN && !(env->checks & WG_LAW_COUPLED))
        return wg_fail(err, WG_ELAW,
                       "drafter %s: policy %s looks at a drawn token before it decides whether to verify it; a "
                       "rule that accepts with probabilities would be biased (non-anticipation). Choose the rule match or "
                       "greedy, or the policy confidence, which looks before the draw",
                       drafter, name);
    if (!(l->state = wg_calloc((size_t)env->max_batch, sizeof *l->state)))
        return wg_nomem(err, (size_t)env->max_batch * sizeof *l->state, "the states of a length policy");
    return l->class->sees & WG_SEES_COST ? find_costs(l, drafter, draft, env, err) : WG_OK;
}

void wg_length_close(wg_length *l) { wg_free(l->state); }

/* ---- use */

int wg_length_plan(wg_length *l, const wg_seq *seq)
{
    wg_length_state *s = &l->state[seq->slot];
    if (!s->used) s->used = true, s->bound = l->opt.threshold, s->rate = l->opt.aim;
    s->planned = l->class->plan ? l->class->plan(l, s) : l->max;
    if (l->class->sees & WG_SEES_COST) s->planned = wg_length_logged(l->log, s->planned);
    return s->planned;
}

/* The largest of the weights, in lanes: one comparison at a time takes longer than the weights took to compute. */
static double largest(const double *weight, int n)
{
    enum { LANES = 8 };
    double lane[LANES] = { 0 }, top = 0;
    int i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int k = 0; k < LANES; k++) lane[k] = weight[i + k] > lane[k] ? weight[i + k] : lane[k];
    for (; i < n; i++) top = fmax(top, weight[i]);
    for (int k = 0; k < LANES; k++) top = fmax(top, lane[k]);
    return top;
}

bool wg_length_stops(const wg_length *l, const wg_seq *seq, const double *weight, int n, double sum)
{
    if (!l->class->stops) return false;
    const double top = weight ? largest(weight, n) / sum : 1;
    double mean = 0;
    for (int i = 0; weight && i < n; i++)
        if (weight[i] > 1e-15 * sum) mean += weight[i] * log(weight[i]);
    return l->class->stops(l, &l->state[seq->slot], top, weight ? fmax(0, log(sum) - mean / sum) : 0);
}

void wg_length_learn(wg_length *l, const wg_seq *seq, const wg_tree *tree, const wg_path *path)
{
    wg_length_state *s = &l->state[seq->slot];
    const int offered = wg_tree_height(tree);
    if (l->class->learn && offered > 0 && s->planned > 0) l->class->learn(l, s, offered, path->n - 1);
}

void wg_length_forget(wg_length *l, const wg_seq *seq) { l->state[seq->slot] = (wg_length_state){ 0 }; }

int wg_length_report(const wg_length *l, const wg_seq *seq, double *out, int most)
{
    const wg_length_state *s = &l->state[seq->slot];
    const double first = wg_cost_survive(&s->survival, 0, 1, WG_COST_FIRST);
    const double all[] = { l->opt.policy, s->planned, s->bound, s->rate, first, s->survival.trial[0][0] };
    int n = l->class->learn ? (int)(sizeof all / sizeof *all) : 0;
    if (n > most) n = most;
    for (int i = 0; i < n; i++) out[i] = all[i];
    return n;
}
