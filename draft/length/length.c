/* SPDX-License-Identifier: MIT
 * The policies, as a table; then the functions that drafters call. Sources: hf, Hugging Face transformers' heuristic
 * schedule; confidence, its assistant threshold; entropy, SVIP (Zhang et al. 2024), 1 - sqrt(c H) being a lower bound on the
 * acceptance; adaedl, AdaEDL (Agrawal et al. 2024); average, with the correction for drafts that were accepted whole, whose
 * true reach is not known; cost, the cost model (core/sched/cost_model.h) for one sequence; bandit, UCB1, as in BanditSpec. */
#include "draft/length/length.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "core/base/mem.h"

static int clamp(double v, int max) { return v < 1 ? 1 : v > max ? max : (int)v; }

static int hf_plan(const wg_length *l, wg_length_state *s)
{
    if (s->length == 0) s->length = l->max < 5 ? l->max : 5;
    return clamp(s->length, l->max);
}

static void hf_learn(const wg_length *l, wg_length_state *s, int offered, int accepted)
{
    s->length = clamp(accepted == offered ? s->length + 2 : s->length - 1, l->max);
}

/* ---- policies by q */

static bool confidence_stops(const wg_length *l, const wg_length_state *s, double top, double entropy)
{
    (void)s, (void)entropy;
    return top < l->opt.threshold;
}

static double bound_of(const wg_length *l, double entropy) { return 1 - sqrt(l->opt.spread * entropy); }

static bool entropy_stops(const wg_length *l, const wg_length_state *s, double top, double entropy)
{
    (void)s, (void)top;
    return bound_of(l, entropy) < l->opt.threshold;
}

static int adaedl_plan(const wg_length *l, wg_length_state *s)
{
    if (!s->used) {
        s->bound = l->opt.threshold;
        s->rate = l->opt.aim;
    }
    return l->max;
}

static bool adaedl_stops(const wg_length *l, const wg_length_state *s, double top, double entropy)
{
    (void)top;
    return bound_of(l, entropy) < s->bound;
}

/* Acceptance below the target raises the threshold, slowly. */
static void adaedl_learn(const wg_length *l, wg_length_state *s, int offered, int accepted)
{
    s->rate = l->opt.keep * s->rate + (1 - l->opt.keep) * accepted / offered;
    s->bound = fmin(1, fmax(0, s->bound + (s->rate < l->opt.aim ? 0.01 : s->rate > l->opt.aim ? -0.01 : 0)));
}

/* A policy that drafts nothing tries one token again after twice WG_COST_EVERY steps. */
static int at_times(wg_length_state *s, int planned)
{
    if (planned == 0 && ++s->idle < 2 * WG_COST_EVERY) return 0;
    s->idle = 0;
    return planned ? planned : 1;
}

static int average_plan(const wg_length *l, wg_length_state *s)
{
    if (!s->used) s->average = l->max < 3 ? l->max : 3;
    return at_times(s, s->average < 0.3 ? 0 : clamp(floor(s->average + 0.5) + 1, l->max));
}

static void average_learn(const wg_length *l, wg_length_state *s, int offered, int accepted)
{
    s->average = l->opt.keep * s->average + (1 - l->opt.keep) * (accepted + (accepted == offered));
}

/* The cost of a step with g draft tokens, in passes of the target over one row. */
static double cost_of(const wg_length *l, int g) { return g * l->price.level[0] + wg_cost_of_pass(&l->price, g + 1); }

static int cost_plan(const wg_length *l, wg_length_state *s)
{
    wg_cost_offer o = { .height = l->max < WG_COST_DEPTH ? l->max : WG_COST_DEPTH, .rows = { 1 }, .prior = WG_COST_FIRST };
    for (int d = 1; d <= o.height; d++) o.rows[d] = d + 1;
    const wg_cost_choice c = wg_cost_best(&l->price, &s->survival, &o, 1, 1, INT_MAX);
    return at_times(s, wg_cost_pays(s->planned > 0, wg_cost_gain(&l->price, &c, 1)) ? c.depth : 0);
}

static void cost_learn(const wg_length *l, wg_length_state *s, int offered, int accepted)
{
    wg_cost_learn(&s->survival, 0, accepted + (accepted < offered), accepted, l->opt.keep);
}

/* ---- bandit: arm g - 1 drafts g tokens; the reward is tokens per cost, relative to the largest possible */

static int bandit_plan(const wg_length *l, wg_length_state *s)
{
    int best = 0;
    double most = -INFINITY;
    for (int arm = 0; arm < l->max; arm++) {
        if (s->plays[arm] == 0) return arm + 1; /* each arm once, the shortest first */
        const double v = s->won[arm] / s->plays[arm] + l->opt.explore * sqrt(2 * log(s->steps) / s->plays[arm]);
        if (v > most) most = v, best = arm;
    }
    return best + 1;
}

static void bandit_learn(const wg_length *l, wg_length_state *s, int offered, int accepted)
{
    double most = 0;
    for (int g = 1; g <= l->max; g++) most = fmax(most, (g + 1) / cost_of(l, g));
    const int arm = s->planned - 1; /* the planned length, for any draft that resulted */
    s->plays[arm]++;
    s->steps++;
    s->won[arm] += (accepted + 1) / cost_of(l, offered) / most;
}

/* ---- drawn: the practice of many engines, which biases rules that accept with probabilities */

static bool drawn_drops(const wg_length *l, const wg_length_state *s, int32_t token, double q)
{
    (void)s, (void)token;
    return q < l->opt.threshold;
}

static const wg_length_class fixed = { .name = "fixed" };
static const wg_length_class hf = { .name = "hf", .sees = WG_SEES_PAST, .plan = hf_plan, .learn = hf_learn };
static const wg_length_class confidence = { .name = "confidence", .sees = WG_SEES_Q, .stops = confidence_stops };
static const wg_length_class entropy = { .name = "entropy", .sees = WG_SEES_Q, .stops = entropy_stops };
static const wg_length_class adaedl = {
    .name = "adaedl", .sees = WG_SEES_Q | WG_SEES_PAST, .plan = adaedl_plan, .stops = adaedl_stops, .learn = adaedl_learn
};
static const wg_length_class average = {
    .name = "average", .sees = WG_SEES_PAST, .plan = average_plan, .learn = average_learn
};
static const wg_length_class cost = {
    .name = "cost", .sees = WG_SEES_PAST | WG_SEES_COST, .plan = cost_plan, .learn = cost_learn
};
static const wg_length_class bandit = {
    .name = "bandit", .sees = WG_SEES_PAST | WG_SEES_COST, .plan = bandit_plan, .learn = bandit_learn
};
static const wg_length_class drawn = { .name = "drawn", .sees = WG_SEES_DRAWN, .drops = drawn_drops };

const wg_length_class *const wg_length_classes[WG_LENGTHS] = {
    [WG_LENGTH_FIXED] = &fixed,     [WG_LENGTH_HF] = &hf,         [WG_LENGTH_CONFIDENCE] = &confidence,
    [WG_LENGTH_ENTROPY] = &entropy, [WG_LENGTH_ADAEDL] = &adaedl, [WG_LENGTH_AVERAGE] = &average,
    [WG_LENGTH_COST] = &cost,       [WG_LENGTH_BANDIT] = &bandit, [WG_LENGTH_DRAWN] = &drawn,
};
const char *const wg_length_names[] = { "fixed",   "hf",   "confidence", "entropy", "adaedl",
                                        "average", "cost", "bandit",     "drawn",   NULL };

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

wg_status wg_length_open(wg_length *l, const wg_length_options *o, const char *drafter, int max, bool has_q, wg_lm *draft,
                         const wg_env *env, wg_error *err)
{
    l->class = wg_length_classes[o->policy];
    l->opt = *o;
    l->max = max;
    l->log = env->lengths;
    const char *name = l->class->name;
    if (l->class->sees & (WG_SEES_Q | WG_SEES_DRAWN) && !has_q)
        return wg_fail(err, WG_ECONFIG,
                       "drafter %s: policy %s looks at q, and this drafter has none; choose one of: fixed, "
                       "hf, average, cost, bandit",
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
    s->planned = l->class->plan ? l->class->plan(l, s) : l->max;
    if (l->class->sees & WG_SEES_COST) s->planned = wg_length_logged(l->log, s->planned);
    s->used = true;
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
    const double all[] = { l->opt.policy,
                           s->planned,
                           s->length,
                           s->average,
                           s->bound,
                           s->rate,
                           wg_cost_survive(&s->survival, 0, 1, WG_COST_FIRST),
                           s->survival.trial[0][0] };
    int n = l->class->learn ? (int)(sizeof all / sizeof *all) : 0;
    if (n > most) n = most;
    for (int i = 0; i < n; i++) out[i] = all[i];
    return n;
}
