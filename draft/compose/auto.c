/* SPDX-License-Identifier: MIT
 * Of at most four drafters the one, and the depth of its draft, that are expected to emit most tokens per time at this round,
 * or no draft: by the cost model (core/sched/cost_model.h), which says what prices and decisions may depend on.
 *
 * A drafter by look-up drafts at every round, which costs microseconds, and learns from the committed text whether its draft
 * would have been kept. One whose drafts were not taken for WG_COST_RUN rounds rests: it is asked in one of WG_COST_EVERY
 * rounds, until the first token of a draft is right. A drafter with a model drafts when it is chosen; the text that it has
 * missed is read in the first pass of its next draft, and that price is part of the choice. So that its counts do not grow
 * stale it is tried again, for one token, whenever that costs at most `probe` of the time since the last such trial. Decisions
 * are logged where the engine keeps a log (core/engine/length_log.h), and repeated from it. */
#include <math.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/mem.h"
#include "core/base/number.h"
#include "core/engine/build.h"
#include "core/sched/cost_model.h"
#include "draft/compose/composite.h"
#include "draft/draft.h"
#include "draft/length/length.h"

enum { AUTO, NO, YES }; /* options live and memory */

typedef struct auto_options {
    char of[WG_OPTION_STRING], costs[WG_OPTION_STRING], draft_costs[WG_OPTION_STRING];
    int live, memory;
    double prior, keep, probe;
} auto_options;

typedef struct member {
    bool free;           /* it looks its drafts up: they are seen before the choice */
    wg_cost_offer whole; /* of a draft that is not cut; rows 0: learned */
} member;

/* The state of the sequence in a slot. */
typedef struct auto_state {
    bool used;
    wg_cost_survival survival[WG_COST_MEMBERS];
    int read[WG_COST_MEMBERS]; /* tokens of the text that it had read or drafted, but for the last */
    int idle[WG_COST_MEMBERS]; /* rounds since a look-up's draft was taken, or its first token was right */
    double saved;              /* what probes may cost, of the cost of the rounds so far */
    /* of the current round: */
    wg_cost_choice choice, best; /* best: that drafts, whether it pays or not */
    bool probes, asks;           /* a trial of a model; a model drafts, as in the last rounds */
    int limit;                   /* of the sequence, while a member drafts no deeper than is wanted */
    wg_cost_offer offer[WG_COST_MEMBERS];
} auto_state;

typedef struct auto_drafter {
    wg_composite of; /* first */
    auto_options opt;
    member part[WG_COST_MEMBERS];
    wg_cost_prices price;                     /* in passes of the target over one row, as they were at open */
    wg_cost_survival shared[WG_COST_MEMBERS]; /* of all sequences */
    auto_state *state;                        /* (max_batch) */
    wg_seq **asked;                           /* (max_batch) sequences of a member */
    bool independent, live, remembers;        /* the text does not depend on drafts; prices, survival: as in the options */
    /* where prices are live: */
    wg_cost_trial trial;
    double share, gain; /* moving averages: of the rounds that draft; of what drafts promise */
    unsigned rounds;    /* that draft */
    wg_lm before;       /* the target at the last draft, */
    int due;            /* and the rows of the pass that verifies it */
} auto_drafter;

static const char *const triple[] = { "auto", "no", "yes", NULL };
static const wg_option options[] = {
    WG_OPTION_NAME(auto_options, of, WG_NAMES_DRAFTERS, "",
                   "one to four drafters, as KIND:option=value;option=value|KIND|... (needed)"),
    WG_OPTION_STR(auto_options, costs, "",
                  "of target passes over 1, 2, ... rows, such as 1/1.02/1.1; empty: those of the machine's profile "
                  "(docs/drafters.md); measured: timed anew when it is opened; nominal: constants of the models"),
    WG_OPTION_STR(auto_options, draft_costs, "",
                  "of a level of each drafter's draft, in passes of the target over one row, as 0.1/0; empty: as `costs`"),
    WG_OPTION_ENUM(auto_options, live, AUTO, triple,
                   "costs follow the clock; auto: where the text does not depend on the drafts and costs are not given"),
    WG_OPTION_ENUM(auto_options, memory, AUTO, triple,
                   "a sequence begins with what earlier ones learned; auto: where texts do not depend on drafts, or `live`"),
    WG_OPTION_FLOAT(auto_options, prior, WG_COST_FIRST, 0, 1,
                    "survival of a token drafted by a model before any was seen; looked-up tokens: an eighth"),
    WG_OPTION_FLOAT(auto_options, keep, WG_COST_KEEP, 0, 0.9999, "what counts keep of themselves at a trial"),
    WG_OPTION_FLOAT(auto_options, probe, 0.02, 0, 1, "share of the time for trials of models that are not chosen"),
    WG_OPTION_END,
};

/* ---- open */

static void describe(auto_drafter *a, int k)
{
    const wg_drafter *d = a->of.in[k].d;
    const wg_option *length = wg_option_find(d->class->options, "length");
    wg_cost_offer *whole = &a->part[k].whole;
    a->part[k].free = d->class->stands_alone && d->class->laws == WG_LAW_FIXED;
    *whole = (wg_cost_offer){ .height = WG_COST_DEPTH, .rows = { 1 }, .prior = a->opt.prior };
    if (length && length->type == WG_OPT_INT)
        whole->height = *(const int *)((const char *)d + d->class->options_at + length->at);
    for (int depth = 1; depth <= WG_COST_DEPTH && d->class->extent; depth++) {
        wg_draft_extent e;
        d->class->extent(d, depth, &e);
        whole->height = e.levels;
        if (depth <= e.levels) whole->rows[depth] = e.rows;
    }
    if (whole->height > WG_COST_DEPTH) whole->height = WG_COST_DEPTH;
}

static unsigned laws_for(const void *opt, const wg_sampling *sampling)
{
    static const wg_plugins plugins = { wg_drafters, NULL };
    return wg_component_laws(&plugins, ((const auto_options *)opt)->of, sampling);
}

/* from: NULL for nominal prices. A token more in a pass of a model whose price was given is taken to cost a third of it. */
static wg_status take_prices(auto_drafter *a, const char *given, wg_profile *from, wg_error *err)
{
    const wg_env *env = a->of.base.env;
    wg_prices target, row;
    WG_TRY(wg_cost_open(&a->price, given, "auto", from, env->target, err));
    if (!*given) {
        WG_TRY(wg_profile_target(from, env->target, &target, err));
        WG_TRY(wg_profile_row(from, env->target, env->sampling, env->ops, &row, err));
        a->price.row = row.seconds[0] / target.seconds[0];
    }
    if (*a->opt.draft_costs && wg_number_list(a->opt.draft_costs, "/", 0, 1e12, a->price.level, a->of.n) != a->of.n)
        return wg_fail(err, WG_ECONFIG,
                       "drafter auto: draft_costs=%s: expected %d numbers such as 0.1/0, one for each drafter of `of`: a level "
                       "of its draft, in passes of the target over one row",
                       a->opt.draft_costs, a->of.n);
    for (int k = 0; k < a->of.n; k++) {
        wg_lm *lm = (wg_lm *)(uintptr_t)wg_drafter_lm(a->of.in[k].d); /* its counters are as before afterwards */
        if (lm && !*a->opt.draft_costs) WG_TRY(wg_cost_open_draft(&a->price, k, from, lm, env->target, err));
        if (!(a->price.read[k] > 0)) a->price.read[k] = a->price.level[k] / 3;
        if (!lm || lm->space == env->target->space) a->price.read[k] = 0; /* there is no text to catch up with */
    }
    return WG_OK;
}

/* `measured`: by a profile of its own, which is kept nowhere. */
static wg_status open_prices(auto_drafter *a, wg_error *err)
{
    static const wg_profile_options anew = { .use = "new", .folder = "" };
    const char *given = a->opt.costs;
    wg_profile *from = NULL;
    if (!*given) return take_prices(a, "", a->of.base.env->profile, err);
    if (strcmp(given, "measured") != 0) return take_prices(a, strcmp(given, "nominal") ? given : "", NULL, err);
    WG_TRY(wg_profile_open(&from, &anew, err));
    const wg_status s = take_prices(a, "", from, err);
    wg_profile_close(from);
    return s;
}

static wg_status open(wg_drafter *d, const wg_env *env, wg_error *err)
{
    auto_drafter *a = (auto_drafter *)d;
    const size_t n = (size_t)env->max_batch;
    const bool given = *a->opt.costs && strcmp(a->opt.costs, "measured") != 0;
    a->independent = env->checks & WG_LAW_COUPLED || env->sampling->temperature == 0;
    a->live = a->opt.live == AUTO ? a->independent && !given : a->opt.live == YES;
    a->remembers = a->opt.memory == AUTO ? a->independent || a->live : a->opt.memory == YES;
    a->trial = WG_COST_NO_TRIAL;
    a->state = wg_calloc(n, sizeof *a->state);
    a->asked = wg_calloc(n, sizeof *a->asked);
    if (!a->state || !a->asked) return wg_nomem(err, n * sizeof *a->state, "the states of auto");
    WG_TRY(wg_composite_open_steps(&a->of, env, err));
    WG_TRY(wg_component_open_list(a->of.in, &a->of.n, env, "auto", "of", a->opt.of, err));
    if (a->of.n < 1 || a->of.n > WG_COST_MEMBERS)
        return wg_fail(err, WG_ECONFIG, "drafter auto: of=%s: expected one to %d drafters, separated by |", a->opt.of,
                       (int)WG_COST_MEMBERS);
    for (int k = 0; k < a->of.n; k++) describe(a, k);
    return open_prices(a, err);
}

/* The only member; NULL: there are several. */
static const wg_drafter *lone(const wg_drafter *d)
{
    const wg_composite *of = (const wg_composite *)d;
    return of->n == 1 ? of->in[0].d : NULL;
}

static const wg_lm *lone_lm(const wg_drafter *d) { return lone(d) ? wg_drafter_lm(lone(d)) : NULL; }
static int lone_context(const wg_drafter *d, bool *slides) { return lone(d) ? wg_drafter_context(lone(d), slides) : 0; }
static bool lone_overlap(const wg_drafter *d, wg_overlap *out) { return lone(d) && wg_drafter_overlap(lone(d), out); }

static void close(wg_drafter *d)
{
    auto_drafter *a = (auto_drafter *)d;
    wg_composite_close(d);
    wg_free(a->state);
    wg_free(a->asked);
}

/* ---- what can be drafted in this round */

/* Member k, which looks its drafts up, drafts for the sequences where it does not rest. */
static wg_status look_up(auto_drafter *a, int k, wg_seq *const *seq, int n, wg_error *err)
{
    int some = 0;
    for (int i = 0; i < n; i++) {
        const int idle = ++a->state[seq[i]->slot].idle[k];
        const bool rests = idle > WG_COST_RUN && idle % WG_COST_EVERY != 0;
        a->of.last[seq[i]->slot].tree[k] = rests ? -1 : some;
        if (!rests) a->asked[some++] = seq[i];
    }
    return some ? wg_component_propose(&a->of.in[k], a->asked, some, err) : WG_OK;
}

static wg_cost_offer offer_found(const wg_tree *t, int room, double prior)
{
    wg_cost_offer o = { .class = wg_cost_class(t->score), .rows = { 1 }, .prior = prior };
    int depth[WG_TREE_MAX] = { 0 }, nodes[WG_COST_DEPTH + 1] = { 0 };
    for (int node = 1; node < t->n; node++) {
        depth[node] = depth[t->parent[node]] + 1;
        if (depth[node] > WG_COST_DEPTH) continue;
        if (depth[node] > o.height) o.height = depth[node];
        nodes[depth[node]]++;
    }
    if (o.height > room) o.height = room;
    for (int d = 1; d <= o.height; d++) o.rows[d] = o.rows[d - 1] + nodes[d];
    if (o.height > 0) o.rows[o.height] += t->probes;
    return o;
}

static void offer_all(auto_drafter *a, const wg_seq *seq)
{
    auto_state *s = &a->state[seq->slot];
    const int room = wg_seq_room(seq);
    s->probes = false;
    for (int k = 0; k < a->of.n; k++) {
        const wg_cost_offer *whole = &a->part[k].whole;
        const int tree = a->of.last[seq->slot].tree[k];
        wg_cost_offer *o = &s->offer[k];
        *o = (wg_cost_offer){ .height = 0 };
        if (a->part[k].free && tree >= 0) *o = offer_found(&a->of.in[k].tree[tree], room, WG_COST_FOUND * a->opt.prior);
        if (a->part[k].free) continue;
        *o = *whole;
        o->lag = seq->n - 1 - s->read[k];
        if (o->height > room) o->height = room;
        for (int d = 1; d <= o->height; d++)
            if (o->rows[d] == 0) o->rows[d] = 1 + wg_cost_width(&s->survival[k], d);
    }
}

/* ---- the choice */

/* What pays. What is looked up is another thing in each round; a model that drafts goes on as long as it does not lose. */
static void choose(const auto_drafter *a, const wg_seq *seq, int sequences, const wg_cost_choice *plain)
{
    auto_state *s = &a->state[seq->slot];
    s->best = wg_cost_best(&a->price, s->survival, s->offer, a->of.n, sequences, seq->limit - seq->n);
    const bool model = s->best.member >= 0 && !a->part[s->best.member].free;
    const bool pays = wg_cost_pays(model && s->asks, s->best.gain);
    s->asks = model && pays;
    s->choice = pays ? s->best : *plain;
}

/* A model that is not chosen and whose trial is paid for. one: the price of a round of plain decoding. */
static void probe(const auto_drafter *a, auto_state *s, int sequences, double one)
{
    for (int k = 0; k < a->of.n; k++) {
        if (a->part[k].free || k == s->choice.member || s->offer[k].height < 1) continue;
        const double cost = wg_cost_each(&a->price, s->offer[k].rows[1], sequences) - one + wg_cost_level(&a->price, k) +
                            a->price.read[k] * s->offer[k].lag + fmax(0, s->choice.tokens / s->choice.cost * one - 1) * one;
        if (s->saved < cost) continue;
        s->choice = (wg_cost_choice){ .member = k, .depth = 1, .tokens = 1, .cost = one + cost };
        s->probes = true;
        return;
    }
}

/* A decision goes into the log as a number, or comes from there. */
static void set_logged(const auto_drafter *a, wg_cost_choice *c)
{
    const int code = (c->member + 1) * (WG_COST_DEPTH + 1) + c->depth;
    const int logged = wg_length_logged(a->of.base.env->lengths, code), k = logged / (WG_COST_DEPTH + 1) - 1;
    if (logged == code || k >= a->of.n) return;
    *c = (wg_cost_choice){
        .member = k, .depth = logged % (WG_COST_DEPTH + 1), .tokens = 1, .cost = wg_cost_each(&a->price, 1, 1)
    };
}

/* For all n sequences: what pays, but for trials, and rounds that draft a level more. */
static void choose_all(auto_drafter *a, wg_seq *const *seq, int n)
{
    const int sequences = a->independent ? n : 1;
    const wg_cost_choice plain = { .member = -1, .tokens = 1, .cost = wg_cost_each(&a->price, 1, sequences) };
    double gain = 0, share = 0;
    for (int i = 0; i < n; i++) {
        const auto_state *s = &a->state[seq[i]->slot];
        choose(a, seq[i], sequences, &plain);
        gain += (s->best.member >= 0 ? s->best.gain : a->gain) / n;
        share += (double)(s->choice.member >= 0) / n;
    }
    a->gain += WG_COST_RATE * (gain - a->gain);
    if (!a->trial.on) a->share += WG_COST_RATE * (share - a->share);
    const bool drafts = a->live && wg_cost_trial_step(&a->trial, a->share > 0.5, fabs(a->gain));
    a->rounds += share > 0;
    for (int i = 0; i < n; i++) {
        auto_state *s = &a->state[seq[i]->slot];
        wg_cost_choice *c = &s->choice;
        if (a->trial.on) *c = drafts ? s->best : plain;
        else if (a->live && c->member >= 0) c->depth = wg_cost_explore(a->rounds, c->depth, s->offer[c->member].height);
        if (!a->trial.on) probe(a, s, sequences, plain.cost);
        set_logged(a, c);
    }
}

/* ---- what passes and drafts took */

/* The pass since the last draft, if it was the only one. */
static void time_pass(auto_drafter *a)
{
    const wg_lm *t = a->of.base.env->target;
    const bool ours = t->passes == a->before.passes + 1 && t->rows == a->before.rows + a->due;
    if (a->live && ours) wg_cost_saw_pass(&a->price, a->due, t->seconds - a->before.seconds);
    a->before = *t;
}

/* Member k drafts for the sequences that chose it, no deeper than they want. */
static wg_status ask(auto_drafter *a, int k, wg_seq *const *seq, int n, wg_error *err)
{
    wg_component *in = &a->of.in[k];
    const wg_lm *lm = wg_drafter_lm(in->d);
    const long before = lm ? lm->passes : 0;
    int some = 0, lag = 0;
    for (int i = 0; i < n; i++) {
        auto_state *s = &a->state[seq[i]->slot];
        if (s->choice.member != k) continue;
        s->limit = seq[i]->limit;
        if (s->choice.depth < wg_seq_room(seq[i])) seq[i]->limit = seq[i]->n + 1 + s->choice.depth;
        lag += s->offer[k].lag;
        a->asked[some++] = seq[i];
    }
    if (some == 0) return WG_OK;
    const double start = wg_clock_now();
    const wg_status s = wg_component_propose(in, a->asked, some, err);
    const double took = (wg_clock_now() - start) / some;
    for (int i = 0; i < some; i++) {
        const int room = wg_seq_room(a->asked[i]);
        a->asked[i]->limit = a->state[a->asked[i]->slot].limit;
        if (!s) wg_component_cut(in, a->asked[i], &in->tree[i], room);
        a->of.last[a->asked[i]->slot].tree[k] = i;
    }
    if (!s && a->live) wg_cost_saw_draft(&a->price, k, lm ? (int)(lm->passes - before) : 1, 0, lag / some, took);
    return s;
}

/* ---- propose */

/* The draft of a sequence. The depth of a draft by look-up is cut here: its whole tree is what it learns from. */
static void take(auto_drafter *a, const wg_seq *seq, wg_tree *out, wg_rows *q)
{
    const wg_cost_choice *c = &a->state[seq->slot].choice;
    wg_composite_step *last = &a->of.last[seq->slot];
    const int tree = c->member < 0 ? -1 : last->tree[c->member];
    last->taken = tree >= 0 && a->of.in[c->member].tree[tree].n > 1 ? c->member : -1;
    for (int k = 0; k < a->of.n; k++)
        if (k != last->taken && last->tree[k] >= 0) wg_component_drop(&a->of.in[k], seq);
    wg_tree_reset(out, seq->token[seq->n - 1], WG_LAW_FIXED);
    for (int k = 0; k < a->of.n && last->taken < 0; k++) {
        const bool could = last->tree[k] < 0 || a->of.in[k].tree[last->tree[k]].n > 1;
        const wg_no_draft why = could ? WG_NO_DRAFT_POLICY : a->of.in[k].tree[last->tree[k]].no_draft;
        if (out->no_draft == WG_NO_DRAFT_NOTHING) out->no_draft = why;
    }
    if (last->taken < 0) return;
    wg_component_take(&a->of.in[last->taken], last->tree[last->taken], out, q);
    if (a->part[last->taken].free) wg_component_cut(&a->of.in[last->taken], seq, out, c->depth);
}

static wg_status propose(wg_drafter *d, wg_seq *const *seq, int n, wg_tree *out, wg_rows *q, wg_error *err)
{
    auto_drafter *a = (auto_drafter *)d;
    time_pass(a);
    for (int i = 0; i < n; i++) {
        auto_state *s = &a->state[seq[i]->slot];
        for (int k = 0; k < a->of.n; k++) {
            if (!s->used && a->remembers) wg_cost_carry(&s->survival[k], &a->shared[k]);
            a->of.last[seq[i]->slot].tree[k] = -1;
        }
        s->used = true;
    }
    for (int k = 0; k < a->of.n; k++)
        if (a->part[k].free) WG_TRY(look_up(a, k, seq, n, err));
    for (int i = 0; i < n; i++) offer_all(a, seq[i]);
    choose_all(a, seq, n);
    for (int k = 0; k < a->of.n; k++)
        if (!a->part[k].free) WG_TRY(ask(a, k, seq, n, err));
    a->due = 0;
    for (int i = 0; i < n; i++) {
        take(a, seq[i], &out[i], q);
        a->due += wg_tree_rows(&out[i]);
    }
    return WG_OK;
}

/* ---- observe */

/* Counts for the sequence and, where it is remembered, for those to come. */
static void learn(auto_drafter *a, const wg_seq *seq, int k, int tried, int kept)
{
    auto_state *s = &a->state[seq->slot];
    wg_cost_learn(&s->survival[k], s->offer[k].class, tried, kept, a->opt.keep);
    if (a->remembers) wg_cost_learn(&a->shared[k], s->offer[k].class, tried, kept, a->opt.keep);
}

/* A fixed draft is a guess at the text, verified or not: its tokens are compared with those that were committed. */
static void learn_found(auto_drafter *a, const wg_seq *seq, int k, const wg_tree *t)
{
    int node = 0, kept = 0, tried = 0;
    if (t->law != WG_LAW_FIXED || t->n == 1) return;
    while (kept == tried && tried < seq->last_emitted && wg_tree_child(t, node, node) >= 0) {
        node = wg_tree_find(t, node, seq->token[seq->n - seq->last_emitted + tried++]);
        kept += node >= 0;
    }
    learn(a, seq, k, tried, kept);
    if (kept > 0) a->state[seq->slot].idle[k] = 0;
}

/* A drawn draft is known by what the rule kept of it. Where the text ended, the next token was not tried. */
static void learn_verified(auto_drafter *a, const wg_seq *seq, int k, const wg_tree *t, const wg_path *path)
{
    const int kept = path->n - 1, last = path->node[kept];
    wg_cost_learn_width(&a->state[seq->slot].survival[k], wg_tree_rows(t) - 1, wg_tree_height(t), a->opt.keep);
    learn(a, seq, k, kept + (seq->finish == WG_RUNNING && wg_tree_child(t, last, last) >= 0), kept);
}

static void observe(wg_drafter *d, const wg_seq *seq, const wg_tree *tree, const wg_path *path, wg_rows *target)
{
    auto_drafter *a = (auto_drafter *)d;
    auto_state *s = &a->state[seq->slot];
    const wg_composite_step *last = &a->of.last[seq->slot];
    for (int k = 0; k < a->of.n; k++) {
        const bool asked = last->tree[k] >= 0, taken = k == last->taken, free = a->part[k].free;
        if (free && asked) learn_found(a, seq, k, &a->of.in[k].tree[last->tree[k]]);
        if (!free && taken) learn_verified(a, seq, k, tree, path);
        if (taken) s->idle[k] = 0;
        if (asked) s->read[k] = seq->n - 1;
        if (!free || asked) wg_component_observe(&a->of.in[k], seq, tree, path, target);
    }
    s->saved = s->probes ? 0 : fmin(s->saved + a->opt.probe * s->choice.cost, WG_COST_RUN);
}

static void forget(wg_drafter *d, const wg_seq *seq)
{
    auto_drafter *a = (auto_drafter *)d;
    a->state[seq->slot] = (auto_state){ 0 };
    wg_composite_forget(d, seq);
}

const wg_drafter_class wg_drafter_auto = {
    .name = "auto",
    .doc = "at each round the drafter and length with most expected tokens per time, or no draft",
    .size = sizeof(auto_drafter),
    .options = options,
    .options_at = offsetof(auto_drafter, opt),
    .test_options =
        (const wg_drafter_test[]){
            { .options = "of=ngram:k=5|model:model=$near;length=4,costs=1/1.01/1.02/1.04,draft_costs=0/0.02,memory=no",
              .own_request = true },
            { .options = "of=model:model=$near;tree=2-1|suffix:tree=true;memory_mb=0,costs=1/1.01,draft_costs=0.02/0,memory=no",
              .siblings = true,
              .own_request = true },
            { .options = "of=early_exit:layer=1;length=3,costs=1/1.01,draft_costs=0.02,memory=no,prior=0.9,probe=0.5",
              .own_request = true },
            { .options = NULL },
        },
    WG_COMPOSITE_MEMBERS,
    .laws_for = laws_for,
    .observe = observe,
    .forget = forget,
    .close = close,
    .lm = lone_lm,
    .overlap = lone_overlap,
    .context = lone_context,
};
