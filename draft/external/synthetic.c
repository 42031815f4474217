/* SPDX-License-Identifier: MIT
 * SYNTHETIC drafts, for load studies: the target's next tokens, some replaced at random so that drafts are accepted at a given
 * rate. They measure an engine at an acceptance that no drafter here reaches; they do not make decoding faster, and every table
 * prints the drafter's name.
 *
 * The target runs ahead on the tail of its own cache, one pass per position, and draws the token of each position at the
 * address where plain decoding draws it: so the right token is known. It is proposed with the given probability; else the token
 * after it in the vocabulary is proposed, and the rest of the chain is filler that can only be rejected. Drafting takes real
 * time: a pass for each right token and one more.
 *
 * A draft that uses the draws of the rule violates methods.md, L2 (law COUPLED): only rules that compare with their own sample,
 * greedy and match, are unbiased with it, and with them each position is accepted with exactly its rate, given that the
 * positions before it were accepted.
 *
 * Option `ahead`. target: as above. memory: the right tokens are those of the text when it was last decoded, so a draft costs
 * nothing; this gives rounds of known acceptance for comparison with a cost formula. Nothing is drafted the first time, or
 * behind the first token that differs. One text is remembered.
 *
 * Option `profile`. iid: `rate` everywhere. positions: rates by depth in the draft; the last one holds for all deeper tokens.
 * markov: the text has good stretches with `rate` and bad ones with `rate_bad`; before each position a good stretch ends with
 * probability `to_bad`, a bad one with `to_good`. Stretches are drawn at the text's positions, independent of the steps. */
#include "draft/draft.h"

#include <string.h>

#include "core/base/mem.h"
#include "core/base/number.h"
#include "core/engine/seq_rows.h"

enum { PROFILE_IID, PROFILE_POSITIONS, PROFILE_MARKOV };
enum { AHEAD_TARGET, AHEAD_MEMORY };
enum { RATES = WG_DRAFT_MAX, DRAW_STRETCH = 1 }; /* DRAW_STRETCH: index of a WG_DRAW_SHAPE draw */

typedef struct synthetic_options {
    int k, profile, ahead;
    double rate, rate_bad, to_bad, to_good;
    char rates[WG_OPTION_STRING];
} synthetic_options;

/* The kind of the stretch before position `at`. */
typedef struct stretch {
    int at; /* 0: unknown */
    bool bad;
} stretch;

typedef struct synthetic_drafter {
    wg_drafter base;
    synthetic_options opt;
    double rate[RATES]; /* by depth - 1 */
    int rates;
    wg_sampler sampler;
    wg_rows p; /* one row */
    wg_batch batch;
    float *logits;         /* (max_batch, vocab) */
    int *active;           /* (max_batch) places of the sequences that still run ahead */
    int *length;           /* (max_batch) length of the draft, by place */
    stretch *text, *ahead; /* (max_batch) text: by slot; ahead: at the end of the draft, by place */
    int32_t *memory;       /* (the target's context) a whole text, prompt included; NULL unless ahead is memory */
    int remembered;
} synthetic_drafter;

static const char *const profiles[] = { "iid", "positions", "markov", NULL };
static const char *const places[] = { "target", "memory", NULL };

static const wg_option options[] = {
    WG_OPTION_INT(synthetic_options, k, 4, 1, WG_DRAFT_MAX, "tokens of a draft"),
    WG_OPTION_ENUM(synthetic_options, ahead, AHEAD_TARGET, places,
                   "where right tokens come from: passes of the target; or memory: the text of the last time, at no cost"),
    WG_OPTION_ENUM(synthetic_options, profile, PROFILE_IID, profiles, "how the acceptance varies"),
    WG_OPTION_FLOAT(synthetic_options, rate, 0.8, 0, 1, "probability that a token is right; markov: in good stretches"),
    WG_OPTION_STR(synthetic_options, rates, "0.9-0.8-0.7", "positions: by depth, such as 0.9-0.8-0.7; the last for all deeper"),
    WG_OPTION_FLOAT(synthetic_options, rate_bad, 0.3, 0, 1, "markov: in bad stretches"),
    WG_OPTION_FLOAT(synthetic_options, to_bad, 0.1, 0, 1, "markov: probability that a good stretch ends at a position"),
    WG_OPTION_FLOAT(synthetic_options, to_good, 0.3, 0, 1, "markov: that a bad one ends"),
    WG_OPTION_END,
};

/* ---- open */

static wg_status read_rates(synthetic_drafter *d, wg_error *err)
{
    d->rate[0] = d->opt.rate;
    d->rates = 1;
    if (d->opt.profile != PROFILE_POSITIONS) return WG_OK;
    d->rates = wg_number_list(d->opt.rates, "-", 0, 1, d->rate, RATES);
    if (d->rates > 0) return WG_OK;
    return wg_fail(err, WG_ECONFIG, "drafter synthetic: rates=%s: expected 1..%d probabilities by depth, such as 0.9-0.8-0.7",
                   d->opt.rates, (int)RATES);
}

static wg_status open(wg_drafter *base, const wg_env *env, wg_error *err)
{
    synthetic_drafter *d = (synthetic_drafter *)base;
    const size_t n = (size_t)env->max_batch, logits = n * (size_t)env->target->vocab;
    WG_TRY(read_rates(d, err));
    WG_TRY(wg_sampler_open(&d->sampler, env->sampling, env->ops, env->target->vocab, err));
    WG_TRY(wg_rows_open(&d->p, 1, env->target->vocab, err));
    WG_TRY(wg_batch_open(&d->batch, env->max_batch, err));
    d->logits = wg_alloc(logits, sizeof *d->logits);
    d->active = wg_calloc(n, sizeof *d->active);
    d->length = wg_calloc(n, sizeof *d->length);
    d->text = wg_calloc(n, sizeof *d->text);
    d->ahead = wg_calloc(n, sizeof *d->ahead);
    const size_t context = (size_t)env->target->context;
    if (d->opt.ahead == AHEAD_MEMORY && !(d->memory = wg_alloc(context, sizeof *d->memory)))
        return wg_nomem(err, context * sizeof *d->memory, "the text of a synthetic draft");
    return d->logits && d->active && d->length && d->text && d->ahead
               ? WG_OK
               : wg_nomem(err, logits * sizeof *d->logits, "a synthetic draft");
}

static void close(wg_drafter *base)
{
    synthetic_drafter *d = (synthetic_drafter *)base;
    wg_sampler_close(&d->sampler);
    wg_rows_close(&d->p);
    wg_batch_close(&d->batch);
    wg_free(d->logits);
    wg_free(d->active);
    wg_free(d->length);
    wg_free(d->text);
    wg_free(d->ahead);
    wg_free(d->memory);
}

/* ---- propose */

/* Advances the stretch to position `to`; each change is drawn at its own position. */
static void walk(const synthetic_drafter *d, const wg_seq *s, stretch *x, int to)
{
    for (; x->at < to; x->at++) {
        const wg_chance c = wg_chance_at(&s->chance, x->at - s->n);
        x->bad ^= wg_chance_ratio(&c, WG_DRAW_SHAPE, DRAW_STRETCH, x->bad ? d->opt.to_good : d->opt.to_bad, 1);
    }
}

/* The probability that the draft's token at this depth is the right one. */
static double rate_at(synthetic_drafter *d, const wg_seq *s, int place, int depth)
{
    if (d->opt.profile != PROFILE_MARKOV) return d->rate[depth <= d->rates ? depth - 1 : d->rates - 1];
    walk(d, s, &d->ahead[place], s->n + depth);
    return d->ahead[place].bad ? d->opt.rate_bad : d->opt.rate;
}

/* The next token of the vocabulary that does not end a text; any token if all do. */
static int32_t wrong_token(const synthetic_drafter *d, int32_t right)
{
    int32_t x = right;
    for (int i = 0; i < 16; i++) {
        x = (x + 1) % d->p.vocab;
        if (!wg_env_is_eog(d->base.env, x)) break;
    }
    return x;
}

static void push(wg_tree *t, int32_t token, wg_rows *q)
{
    const int row = wg_rows_push(q);
    wg_assert(row >= 0);
    q->point[row] = token;
    wg_tree_push(t, t->n - 1, token, row);
}

/* Extends the chain by the right token, or by a wrong one, after which the rest is filler. False: the draft is complete. */
static bool extend(synthetic_drafter *d, const wg_seq *s, int place, int32_t right, wg_tree *t, wg_rows *q)
{
    const int depth = t->n;
    if (wg_chance_ratio(&s->chance, WG_DRAW_DRAFT, depth, rate_at(d, s, place, depth), 1)) {
        push(t, right, q);
        return t->n <= d->length[place] && !wg_env_is_eog(d->base.env, right);
    }
    for (const int32_t x = wrong_token(d, right); t->n <= d->length[place];) push(t, x, q);
    return false;
}

/* The token that the engine will draw from the last node's logits. */
static int32_t right_token(synthetic_drafter *d, const wg_seq *s, float *logits, const wg_tree *t)
{
    const wg_prefix prefix = wg_seq_prefix(s, t, t->n - 1);
    const wg_chance at = wg_chance_at(&s->chance, t->n - 1);
    wg_rows_clear(&d->p);
    wg_sampler sampler = wg_seq_sampler(s, &d->sampler);
    wg_sampler_row_after(&sampler, logits, &prefix, &d->p, wg_rows_push(&d->p));
    return wg_rows_pick(&d->p, 0, &at, WG_DRAW_NEXT, 0);
}

static bool is_remembered(const synthetic_drafter *d, const wg_seq *s)
{
    const int n = s->n < d->remembered ? s->n : d->remembered;
    return n > 0 && memcmp(d->memory, s->token, (size_t)n * sizeof *s->token) == 0;
}

/* Drafts for sequence i from the remembered text. */
static void recall(synthetic_drafter *d, const wg_seq *s, int i, wg_tree *t, wg_rows *q)
{
    if (!is_remembered(d, s)) return;
    for (int at = s->n; at < d->remembered && extend(d, s, i, d->memory[at], t, q); at++) {}
}

static void observe(wg_drafter *base, const wg_seq *s, const wg_tree *tree, const wg_path *path, wg_rows *target)
{
    synthetic_drafter *d = (synthetic_drafter *)base;
    (void)tree, (void)path, (void)target;
    if (!d->memory || (is_remembered(d, s) && d->remembered >= s->n)) return;
    memcpy(d->memory, s->token, (size_t)s->n * sizeof *s->token);
    d->remembered = s->n;
}

static wg_status propose(wg_drafter *base, wg_seq *const *seq, int n, wg_tree *out, wg_rows *q, wg_error *err)
{
    synthetic_drafter *d = (synthetic_drafter *)base;
    const int vocab = d->p.vocab;
    int active = 0;
    for (int i = 0; i < n; i++) {
        const wg_seq *s = seq[i];
        int k = d->opt.k < WG_TREE_MAX - 1 ? d->opt.k : WG_TREE_MAX - 1;
        if (k > wg_seq_room(s)) k = wg_seq_room(s);
        wg_tree_reset(&out[i], s->token[s->n - 1], WG_LAW_COUPLED);
        if (d->text[s->slot].at == 0) d->text[s->slot].at = s->n;
        walk(d, s, &d->text[s->slot], s->n);
        d->ahead[i] = d->text[s->slot];
        d->length[i] = k;
        if (k <= 0) continue;
        if (d->memory) {
            recall(d, s, i, &out[i], q);
            continue;
        }
        WG_TRY(wg_kv_reserve(s->kv, k, err));
        d->active[active++] = i;
    }
    for (int node = 0; active; node++) {
        int left = 0;
        wg_batch_clear(&d->batch);
        for (int a = 0; a < active; a++) {
            const wg_tree *t = &out[d->active[a]];
            wg_batch_node(&d->batch, seq[d->active[a]]->kv, node, node, t->anc[node], t->token[node], true);
        }
        WG_TRY(wg_lm_forward(base->env->target, &d->batch, d->logits, err));
        for (int a = 0; a < active; a++) {
            const int i = d->active[a];
            const int32_t right = right_token(d, seq[i], d->logits + (size_t)a * (size_t)vocab, &out[i]);
            if (extend(d, seq[i], i, right, &out[i], q)) d->active[left++] = i;
        }
        active = left;
    }
    return WG_OK;
}

static void forget(wg_drafter *base, const wg_seq *seq) { ((synthetic_drafter *)base)->text[seq->slot] = (stretch){ 0 }; }

const wg_drafter_class wg_drafter_synthetic = {
    .name = "synthetic",
    .doc = "SYNTHETIC, for load studies only: the target's own next tokens, spoiled to a wanted acceptance",
    .size = sizeof(synthetic_drafter),
    .options = options,
    .options_at = offsetof(synthetic_drafter, opt),
    .test_options =
        (const wg_drafter_test[]){
            { .options = "k=4,rate=0.7", .own_request = true, .runs_target = true, .keeps = 0.3 },
            { .options = NULL },
        },
    .laws = WG_LAW_COUPLED,
    .open = open,
    .propose = propose,
    .observe = observe,
    .forget = forget,
    .close = close,
    .cross_request = true,
};
