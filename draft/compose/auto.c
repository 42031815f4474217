/* SPDX-License-Identifier: MIT
 * Of at most four drafters the one, and the depth of its draft, that are expected to emit most tokens per time at this round;
 * or no draft (auto_plan.h has the arithmetic). Tokens: how often drafts of that depth were kept before, as decayed counts, by
 * the score that the draft declares; while a chain of a draft model grows, by q's best probability. Time: prices of passes.
 *
 * A drafter by look-up drafts at every round, which costs microseconds, and learns from the committed text whether its draft
 * would have been kept: so it is taken up again as soon as the text repeats. One whose drafts were not taken for long rests: it
 * is asked, and observes, in one of RESTS rounds, and after a draft that was right. A drafter with a model drafts only when it
 * is chosen. Until then it runs no pass; the text that it has missed is read in the first pass of its next draft, and that
 * price is part of the choice. So that its counts do not grow stale it is tried again, for one token, whenever the price of
 * that is at most `probe` of the time since the last such trial. Where prices follow the clock, what most rounds do not do,
 * drafts or plain decoding, is tried likewise (core/sched/row_trial.h).
 *
 * Non-anticipation (methods.md, L3, L4). The choice depends on committed text, on prices, on the declared scores, on the shapes
 * of fixed drafts, and at a node on its q before its child is drawn: never on a drawn token that it decides about. Trees are
 * cut by whole levels.
 *
 * Prices are those of the machine's profile (core/engine/profile.h). Where the rule makes the text independent of the drafts
 * (rules that compare, and temperature 0), they follow the clock from there, and what is learned passes from sequence to
 * sequence. Elsewhere, unless `live` is asked for, they stay, and what is learned stays with its sequence: so a text is a
 * function of seed, request and profile (law 3). Every decision is logged where the engine keeps a log
 * (core/engine/length_log.h), and repeated from it. */
#include "draft/draft.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/mem.h"
#include "core/engine/build.h"
#include "draft/compose/auto_impl.h"

enum { AUTO, NO, YES };           /* options live and memory */
enum { CARRIED = 12, EXTRA = 4 }; /* trials that a new sequence takes from others; tokens that a guided chain may be longer */
/* Of the prior, for a draft that is looked up: it is known of every round whether it would have been kept, so nothing has to be
 * tried, and a text that repeats shows it in a few rounds. */
static const double FOUND = 0.125;
/* What a draft must promise beyond plain decoding's tokens per cost: the best of several estimates is too good, and not all
 * that a round does has a price. */
static const double GAIN = 1 / 30.0;
static const double SAVED_MOST = 16; /* passes of the target that probes may have in store */
/* KEEP: of the share of rounds in which a look-up's draft was taken, at a round. It rests where that is below TAKEN, as it is
 * 28 rounds after it was 1; a single draft that is taken wakes it for 7. */
enum { RESTS = 8 };
static const double KEEP = 0.9, TAKEN = 0.05;

static const char *const triple[] = { "auto", "no", "yes", NULL };
static const wg_option options[] = {
    WG_OPTION_NAME(wg_auto_options, of, WG_NAMES_DRAFTERS, "",
                   "one to four drafters, as KIND:option=value;option=value|KIND|... (needed)"),
    WG_OPTION_STR(
        wg_auto_options, costs, "",
        "of target passes over 1, 2, ... rows, such as 1/1.02/1.1; empty: those of the machine's profile (docs/drafters.md); "
        "measured: timed anew when it is opened; nominal: constants of the models"),
    WG_OPTION_STR(wg_auto_options, draft_costs, "",
                  "of a level of a draft, in passes of the target over one row, such as 0.1/0: one for each drafter; empty: as "
                  "`costs`"),
    WG_OPTION_ENUM(wg_auto_options, live, AUTO, triple,
                   "costs follow the clock; auto: where the text does not depend on the drafts and costs are not given"),
    WG_OPTION_ENUM(
        wg_auto_options, memory, AUTO, triple,
        "a sequence begins with what earlier ones learned; auto: where the text does not depend on the drafts, and with "
        "`live`"),
    WG_OPTION_FLOAT(wg_auto_options, prior, 0.75, 0, 1,
                    "survival of a token drafted by a model before any was seen; looked-up tokens: an eighth"),
    WG_OPTION_FLOAT(wg_auto_options, keep, 0.98, 0, 0.9999, "what counts keep of themselves at a trial"),
    WG_OPTION_FLOAT(wg_auto_options, probe, 0.02, 0, 1, "share of the time for trials of models that are not chosen"),
    WG_OPTION_END,
};

/* ---- open */

static int height_of(const wg_drafter *d)
{
    const wg_option *row = wg_option_find(d->class->options, "length");
    if (row && row->type == WG_OPT_INT) return *(const int *)((const char *)d + d->class->options_at + row->at);
    return WG_AUTO_DEPTH;
}

static void describe(wg_auto_drafter *a, int k)
{
    wg_auto_part *part = &a->part[k];
    const wg_drafter *d = a->of.in[k].d;
    const wg_lm *lm = wg_drafter_lm(d);
    part->free = d->class->stands_alone && d->class->laws == WG_LAW_FIXED;
    part->shares = !lm || lm->space == a->of.base.env->target->space;
    part->height = height_of(d);
    for (int depth = 1; depth <= WG_AUTO_DEPTH && d->class->extent; depth++) {
        wg_draft_extent e;
        d->class->extent(d, depth, &e);
        part->guided = e.guided;
        part->height = e.levels;
        if (depth <= e.levels) part->rows[depth] = e.rows;
    }
    if (part->height > WG_AUTO_DEPTH) part->height = WG_AUTO_DEPTH;
}

static unsigned laws_for(const void *opt, const wg_sampling *sampling)
{
    static const wg_plugins plugins = { wg_drafters, NULL };
    return wg_component_laws(&plugins, ((const wg_auto_options *)opt)->of, sampling);
}

static wg_pace pace(wg_length_guide *g, const wg_seq *seq, double top);

static wg_status open_candidates(wg_auto_drafter *a, const wg_env *env, wg_error *err)
{
    a->env = *env;
    a->guide.base.pace = pace;
    a->guide.of = a;
    a->guide.candidate = -1;
    a->env.guide = &a->guide.base;
    WG_TRY(wg_composite_open_steps(&a->of, env, err));
    const wg_status s = wg_component_open_list(a->of.in, &a->of.n, &a->env, "auto", "of", a->opt.of, err);
    if (s) return s;
    if (a->of.n < 1 || a->of.n > WG_AUTO_MOST)
        return wg_fail(err, WG_ECONFIG, "drafter auto: of=%s: expected one to %d drafters, separated by |", a->opt.of,
                       (int)WG_AUTO_MOST);
    for (int k = 0; k < a->of.n; k++) describe(a, k), a->use[k].taken = 1;
    return WG_OK;
}

static wg_status open(wg_drafter *d, const wg_env *env, wg_error *err)
{
    wg_auto_drafter *a = (wg_auto_drafter *)d;
    const size_t n = (size_t)env->max_batch;
    const bool given = *a->opt.costs && strcmp(a->opt.costs, "measured") != 0;
    a->independent = env->checks & WG_LAW_COUPLED || env->sampling->temperature == 0;
    a->live = a->opt.live == AUTO ? a->independent && !given : a->opt.live == YES;
    a->remembers = a->opt.memory == AUTO ? a->independent || a->live : a->opt.memory == YES;
    a->state = wg_calloc(n, sizeof *a->state);
    a->asked = wg_calloc(n, sizeof *a->asked);
    a->place = wg_calloc(n, sizeof *a->place);
    a->limit = wg_calloc(n, sizeof *a->limit);
    if (!a->state || !a->asked || !a->place || !a->limit) return wg_nomem(err, n * sizeof *a->state, "the states of auto");
    WG_TRY(open_candidates(a, env, err));
    WG_TRY(wg_auto_prices_open(a, err));
    return wg_auto_live_open(a, err);
}

/* Of the only candidate. */
static const wg_lm *lone_lm(const wg_drafter *d)
{
    const wg_auto_drafter *a = (const wg_auto_drafter *)d;
    return a->of.n == 1 ? wg_drafter_lm(a->of.in[0].d) : NULL;
}

static int lone_context(const wg_drafter *d, bool *slides)
{
    const wg_auto_drafter *a = (const wg_auto_drafter *)d;
    return a->of.n == 1 ? wg_drafter_context(a->of.in[0].d, slides) : 0;
}

static bool lone_overlap(const wg_drafter *d, wg_overlap *out)
{
    const wg_auto_drafter *a = (const wg_auto_drafter *)d;
    return a->of.n == 1 && wg_drafter_overlap(a->of.in[0].d, out);
}

static void close(wg_drafter *d)
{
    wg_auto_drafter *a = (wg_auto_drafter *)d;
    wg_composite_close(d);
    wg_auto_live_close(a);
    wg_free(a->state);
    wg_free(a->asked);
    wg_free(a->place);
    wg_free(a->limit);
}

/* ---- what can be drafted in this round */

static void begin_text(wg_auto_drafter *a, wg_auto_state *s)
{
    for (int k = 0; k < a->of.n; k++) {
        s->use[k] = a->remembers ? a->use[k] : (wg_auto_use){ .taken = 1 };
        if (!a->remembers) continue;
        s->survival[k] = a->shared[k];
        wg_auto_fade(&s->survival[k], CARRIED);
    }
    s->asks = wg_auto_live_drafts(a);
    s->depth = a->depth;
    s->used = true;
}

/* Candidate k, which looks its drafts up, drafts for the sequences where it does not rest. */
static wg_status look_up(wg_auto_drafter *a, int k, wg_seq *const *seq, int n, wg_error *err)
{
    int some = 0;
    for (int i = 0; i < n; i++) {
        wg_auto_use *use = &a->state[seq[i]->slot].use[k];
        const bool rests = use->taken < TAKEN && ++use->rested < RESTS;
        a->of.last[seq[i]->slot].tree[k] = rests ? -1 : some;
        if (rests) continue;
        use->rested = 0;
        a->asked[some++] = seq[i];
    }
    return some ? wg_component_propose(&a->of.in[k], a->asked, some, err) : WG_OK;
}

/* tree: its number; -1: the candidate rests. */
static wg_auto_offer offer_found(const wg_component *in, int tree, int room, double prior)
{
    if (tree < 0) return (wg_auto_offer){ .rows = { 1 } };
    const wg_tree *t = &in->tree[tree];
    const double score = t->score > 0 ? t->score : 0;
    wg_auto_offer o = { .class = wg_auto_class(score), .rows = { 1 }, .prior = prior };
    int depth[WG_TREE_MAX] = { 0 }, nodes[WG_AUTO_DEPTH + 1] = { 0 };
    for (int node = 1; node < t->n; node++) {
        depth[node] = depth[t->parent[node]] + 1;
        if (depth[node] <= WG_AUTO_DEPTH && depth[node] > o.height) o.height = depth[node];
        if (depth[node] <= WG_AUTO_DEPTH) nodes[depth[node]]++;
    }
    if (o.height > room) o.height = room;
    for (int d = 1; d <= o.height; d++) o.rows[d] = o.rows[d - 1] + nodes[d];
    if (o.height > 0) o.rows[o.height] += t->probes;
    return o;
}

static wg_auto_offer offer_asked(const wg_auto_part *part, const wg_auto_survival *s, int lag, int room, double prior)
{
    wg_auto_offer o = { .height = part->height < room ? part->height : room, .lag = lag, .rows = { 1 }, .prior = prior };
    for (int depth = 1; depth <= o.height; depth++) {
        const double seen = ceil(s->rows[depth]);
        o.rows[depth] = part->rows[depth] ? part->rows[depth] : seen > depth ? (int)seen : depth + 1;
    }
    return o;
}

static void begin_round(wg_auto_drafter *a, const wg_seq *seq)
{
    wg_auto_state *s = &a->state[seq->slot];
    const int room = wg_seq_room(seq);
    s->probes = s->exact = false;
    s->node = 0;
    s->reach = 1;
    for (int k = 0; k < a->of.n; k++) {
        const int lag = a->part[k].shares ? 0 : seq->n - 1 - s->read[k];
        s->offer[k] = a->part[k].free ? offer_found(&a->of.in[k], a->of.last[seq->slot].tree[k], room, FOUND * a->opt.prior)
                                      : offer_asked(&a->part[k], &s->survival[k], lag > 1 ? lag : 0, room, a->opt.prior);
    }
}

/* ---- the choice */

/* A model that is not chosen and whose trial is paid for. */
static void choose_probe(const wg_auto_drafter *a, wg_auto_state *s, int sequences)
{
    const double one = wg_auto_pass(&a->price, 1, sequences);
    for (int k = 0; k < a->of.n; k++) {
        if (a->part[k].free || k == s->choice.candidate || s->offer[k].height < 1) continue;
        const double given_up = s->choice.tokens / s->choice.cost * one - 1;
        const double cost = wg_auto_pass(&a->price, s->offer[k].rows[1], sequences) - one + wg_auto_level(&a->price, k) +
                            a->price.read[k] * s->offer[k].lag + fmax(0, given_up) * one;
        if (s->saved < cost) continue;
        s->choice = (wg_auto_choice){ k, 1, 1, one + cost };
        s->probes = s->exact = true;
        return;
    }
}

/* A decision as a number for the log, and back. */
static int code_of(const wg_auto_choice *c)
{
    return c->candidate < 0 ? 0 : (c->candidate + 1) * (WG_AUTO_DEPTH + 1) + c->depth;
}

static void set_logged(const wg_auto_drafter *a, wg_auto_choice *c)
{
    const int code = code_of(c), logged = wg_length_logged(a->of.base.env->lengths, code), k = logged / (WG_AUTO_DEPTH + 1) - 1;
    if (logged == code || k >= a->of.n) return;
    *c = (wg_auto_choice){ k, k < 0 ? 0 : logged % (WG_AUTO_DEPTH + 1), 1, wg_auto_pass(&a->price, 1, 1) };
}

/* The best of the candidates that are looked up, or of the others. */
static wg_auto_choice best_of(const wg_auto_drafter *a, const wg_seq *seq, int sequences, bool free, double least, double *gain)
{
    const wg_auto_state *s = &a->state[seq->slot];
    wg_auto_offer offer[WG_AUTO_MOST];
    for (int k = 0; k < a->of.n; k++) {
        offer[k] = a->part[k].free == free ? s->offer[k] : (wg_auto_offer){ .rows = { 1 } };
        if (a->now == &a->hope && offer[k].height > s->depth + 1) offer[k].height = s->depth + 1;
    }
    return wg_auto_choose(a->now, s->survival, offer, a->of.n, sequences, seq->limit - seq->n, least, gain);
}

/* A level more of a model's draft than is best, or less, in turn. */
static void explore(const wg_auto_drafter *a, wg_auto_state *s)
{
    wg_auto_choice *c = &s->choice;
    if (c->candidate < 0 || a->part[c->candidate].free) return;
    const bool deeper = c->depth < s->offer[c->candidate].height && (c->depth == 1 || a->rounds / WG_AUTO_EXPLORED % 2);
    if (!deeper && c->depth == 1) return;
    c->depth += deeper ? 1 : -1;
    s->exact = true;
}

/* What is looked up is another thing in each round. What a model's drafts promise changes little, and its first passes are
 * slow, as are those of plain decoding after drafts (auto_live.c): so they go on as long as they do not lose, and begin when
 * they promise more. Returns what drafts promise. */
static double choose(const wg_auto_drafter *a, const wg_seq *seq, int batch, wg_auto_round round)
{
    wg_auto_state *s = &a->state[seq->slot];
    const int sequences = a->independent ? batch : 1;
    const double must = round == WG_AUTO_DRAFTS ? -INFINITY : INFINITY;
    const bool free = round == WG_AUTO_CHOOSES || round == WG_AUTO_EXPLORES;
    double of_found, of_asked;
    const wg_auto_choice found = best_of(a, seq, sequences, true, free ? GAIN : must, &of_found);
    const wg_auto_choice asked = best_of(a, seq, sequences, false, !free ? must : s->asks ? 0 : GAIN, &of_asked);
    if (free) s->asks = asked.candidate >= 0;
    if (free && asked.candidate >= 0) s->depth = asked.depth;
    s->choice = asked.candidate >= 0 && (found.candidate < 0 || of_asked > of_found) ? asked : found;
    s->spare = found;
    if (round == WG_AUTO_EXPLORES) explore(a, s);
    if (free) choose_probe(a, s, sequences);
    set_logged(a, &s->choice);
    set_logged(a, &s->spare);
    return fmax(of_found, of_asked);
}

/* The guide: after the root's q, before a token is drawn from it, and so on down a chain. */
static wg_pace pace(wg_length_guide *g, const wg_seq *seq, double top)
{
    const struct wg_auto_guide *guide = (const struct wg_auto_guide *)g;
    const wg_auto_drafter *a = guide->of;
    const int k = guide->candidate;
    if (k < 0 || !a->part[k].guided) return WG_PACE_GOES_ON;
    wg_auto_state *s = &a->state[seq->slot];
    const int depth = s->node++;
    if (depth >= WG_AUTO_DEPTH) return WG_PACE_ENDS;
    const double next = wg_auto_survive_top(&s->survival[k], depth + 1, top, a->opt.prior, a->independent);
    s->top[depth] = top;
    const int sequences = a->independent ? guide->sequences : 1;
    const int room = wg_seq_room(seq), most = room < a->part[k].height ? room : a->part[k].height;
    const wg_auto_chain chain = { .candidate = k,
                                  .depth = depth,
                                  .left = most - depth,
                                  .reach = s->reach,
                                  .next = next,
                                  .rate = s->choice.tokens / s->choice.cost };
    int planned = wg_auto_pace(a->now, &s->survival[k], &chain, sequences, a->opt.prior);
    if (planned == WG_PACE_ENDS && depth == 0 && a->trial.on) planned = WG_PACE_LAST;
    if (s->exact) planned = depth + 1 < s->choice.depth ? WG_PACE_GOES_ON : WG_PACE_LAST;
    s->reach *= next;
    return (wg_pace)wg_length_logged(a->of.base.env->lengths, planned);
}

/* ---- propose */

/* Candidate k drafts for the sequences that chose it, no deeper than they want. */
static wg_status ask(wg_auto_drafter *a, int k, wg_seq *const *seq, int n, wg_error *err)
{
    wg_component *in = &a->of.in[k];
    const wg_lm *lm = wg_drafter_lm(in->d);
    const wg_lm before = lm ? *lm : (wg_lm){ 0 };
    int some = 0, lag = 0;
    for (int i = 0; i < n; i++) {
        const wg_auto_state *s = &a->state[seq[i]->slot];
        if (s->choice.candidate != k) continue;
        const int depth = s->choice.depth + (a->part[k].guided && !s->exact ? EXTRA : 0);
        a->limit[some] = seq[i]->limit;
        if (depth < wg_seq_room(seq[i])) seq[i]->limit = seq[i]->n + 1 + depth;
        lag += s->offer[k].lag;
        a->place[some] = i;
        a->asked[some++] = seq[i];
    }
    if (some == 0) return WG_OK;
    a->guide.candidate = k;
    a->guide.sequences = n;
    const double start = wg_clock_now();
    const wg_status s = wg_component_propose(in, a->asked, some, err);
    a->guide.candidate = -1;
    for (int i = 0; i < some; i++) {
        const int room = wg_seq_room(a->asked[i]);
        a->asked[i]->limit = a->limit[i];
        if (!s) wg_component_cut(in, a->asked[i], &in->tree[i], room);
        a->of.last[a->asked[i]->slot].tree[k] = i;
    }
    if (!s) wg_auto_live_draft(a, k, &before, wg_clock_now() - start, some, lag);
    return s;
}

static bool has_draft(const wg_auto_drafter *a, int k, const wg_composite_step *last)
{
    return k >= 0 && last->tree[k] >= 0 && a->of.in[k].tree[last->tree[k]].n > 1;
}

/* The draft of a sequence. The depth of a draft by look-up is cut here: its whole tree is what it learns from. */
static void take(wg_auto_drafter *a, const wg_seq *seq, wg_tree *out, wg_rows *q)
{
    const wg_auto_state *s = &a->state[seq->slot];
    wg_composite_step *last = &a->of.last[seq->slot];
    const wg_auto_choice *c = has_draft(a, s->choice.candidate, last) ? &s->choice : &s->spare;
    last->taken = has_draft(a, c->candidate, last) ? c->candidate : -1;
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

/* What it costs a sequence to begin with the drafts of a model, in passes: the text is read; and the next passes take longer,
 * as they do at the beginning of a text anyway. */
static double beginning_of(const wg_auto_drafter *a, const wg_seq *seq)
{
    const wg_auto_state *s = &a->state[seq->slot];
    double read = INFINITY;
    for (int k = 0; k < a->of.n; k++)
        if (!a->part[k].free) read = fmin(read, a->price.read[k] * s->offer[k].lag);
    return isinf(read) ? 0 : read + (seq->n > seq->prompt ? WG_AUTO_SETTLING : 0);
}

static void follow_env(wg_auto_drafter *a)
{
    a->env = *a->of.base.env;
    a->env.guide = &a->guide.base;
}

static wg_status propose(wg_drafter *d, wg_seq *const *seq, int n, wg_tree *out, wg_rows *q, wg_error *err)
{
    wg_auto_drafter *a = (wg_auto_drafter *)d;
    follow_env(a);
    wg_auto_live_passes(a);
    double beginning = 0;
    bool text = false;
    for (int i = 0; i < n; i++) {
        wg_auto_state *s = &a->state[seq[i]->slot];
        text |= !s->used;
        if (!s->used) begin_text(a, s);
        for (int k = 0; k < a->of.n; k++) a->of.last[seq[i]->slot].tree[k] = -1;
    }
    for (int k = 0; k < a->of.n; k++)
        if (a->part[k].free) WG_TRY(look_up(a, k, seq, n, err));
    for (int i = 0; i < n; i++) {
        begin_round(a, seq[i]);
        beginning += beginning_of(a, seq[i]) / n;
    }
    const wg_auto_round round = wg_auto_live_round(a, beginning, text);
    for (int i = 0; i < n; i++) {
        wg_auto_live_gain(a, choose(a, seq[i], n, round));
        a->depth = a->state[seq[i]->slot].depth;
    }
    for (int k = 0; k < a->of.n; k++)
        if (!a->part[k].free) WG_TRY(ask(a, k, seq, n, err));
    a->due = 0;
    a->sequences = n;
    for (int i = 0; i < n; i++) {
        take(a, seq[i], &out[i], q);
        a->due += wg_tree_rows(&out[i]);
    }
    return WG_OK;
}

/* ---- observe */

/* Counts a trial for the sequence and, where it is remembered, for those to come. */
static void learn(wg_auto_drafter *a, wg_auto_state *s, int k, int depth, bool hit, const double *top)
{
    wg_auto_survival *of[] = { &s->survival[k], a->remembers ? &a->shared[k] : NULL };
    for (int i = 0; i < 2; i++) {
        if (!of[i]) continue;
        wg_auto_learn(of[i], s->offer[k].class, depth, hit, a->opt.keep);
        if (top) wg_auto_learn_top(of[i], *top, hit, a->opt.keep);
    }
}

static void learn_use(wg_auto_drafter *a, wg_auto_state *s, int k, bool taken)
{
    s->use[k].taken = KEEP * s->use[k].taken + (taken ? 1 - KEEP : 0);
    a->use[k] = s->use[k];
}

/* A fixed draft is a guess at the text, verified or not: its tokens are compared with those that were committed. Where the
 * first was right it does not rest in the next round. */
static void learn_found(wg_auto_drafter *a, const wg_seq *seq, int k, const wg_tree *t)
{
    wg_auto_state *s = &a->state[seq->slot];
    int node = 0;
    if (t->law != WG_LAW_FIXED) return;
    for (int i = 0; i < seq->last_emitted && i < s->offer[k].height && node >= 0; i++) {
        if (wg_tree_child(t, node, node) < 0) return;
        node = wg_tree_find(t, node, seq->token[seq->n - seq->last_emitted + i]);
        learn(a, s, k, i + 1, node >= 0, NULL);
        if (node >= 0) s->use[k].rested = RESTS;
    }
}

/* A drawn draft is known by what the rule kept of it. Where the text ended, the next token was not tried. */
static void learn_verified(wg_auto_drafter *a, const wg_seq *seq, int k, const wg_tree *t, const wg_path *path)
{
    wg_auto_state *s = &a->state[seq->slot];
    const int kept = path->n - 1, last = path->node[kept];
    const bool tried = seq->finish == WG_RUNNING && wg_tree_child(t, last, last) >= 0;
    wg_auto_learn_rows(&s->survival[k], wg_tree_height(t), wg_tree_rows(t));
    for (int depth = 1; depth <= kept + tried; depth++)
        learn(a, s, k, depth, depth <= kept, depth <= s->node && depth <= WG_AUTO_DEPTH ? &s->top[depth - 1] : NULL);
}

/* Kept draft tokens that the draft model has read: all above the deepest level, which is never fed. */
static int fed(const wg_tree *tree, const wg_path *path)
{
    const int kept = path->n - 1, height = wg_tree_height(tree);
    return kept < height ? kept : height > 1 ? height - 1 : 0;
}

static void observe(wg_drafter *d, const wg_seq *seq, const wg_tree *tree, const wg_path *path, wg_rows *target)
{
    wg_auto_drafter *a = (wg_auto_drafter *)d;
    wg_auto_state *s = &a->state[seq->slot];
    const wg_composite_step *last = &a->of.last[seq->slot];
    follow_env(a);
    for (int k = 0; k < a->of.n; k++) {
        const bool asked = last->tree[k] >= 0;
        if (a->part[k].free && asked) learn_found(a, seq, k, &a->of.in[k].tree[last->tree[k]]);
        if (a->part[k].free) learn_use(a, s, k, k == last->taken);
        if (!a->part[k].free && k == last->taken) learn_verified(a, seq, k, tree, path);
        if (!a->part[k].free && asked) s->read[k] = seq->n - seq->last_emitted + (k == last->taken ? fed(tree, path) : 0);
        if (!a->part[k].free || asked) wg_component_observe(&a->of.in[k], seq, tree, path, target);
    }
    s->saved += a->opt.probe * s->choice.cost;
    if (s->probes) s->saved = 0;
    if (s->saved > SAVED_MOST) s->saved = SAVED_MOST;
}

static void forget(wg_drafter *d, const wg_seq *seq)
{
    wg_auto_drafter *a = (wg_auto_drafter *)d;
    a->state[seq->slot] = (wg_auto_state){ 0 };
    wg_composite_forget(d, seq);
}

const wg_drafter_class wg_drafter_auto = {
    .name = "auto",
    .doc = "at each round the drafter and length with most expected tokens per time, or no draft",
    .size = sizeof(wg_auto_drafter),
    .options = options,
    .options_at = offsetof(wg_auto_drafter, opt),
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
