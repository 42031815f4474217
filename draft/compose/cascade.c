/* SPDX-License-Identifier: MIT
 * A cascade: a draft that is itself drafted and verified (staged speculation, Spector and Re 2023; CS-Drafting, Chen et al.
 * 2023). A middle model writes a chain of `length` tokens, speculatively, with a smaller drafter and a rule. The middle model
 * runs in an inner engine, the same code as the outer one, with its own cache.
 *
 * Law. The inner rule is lossless, so the inner engine emits exactly the middle model's law: given the prefix, each token of
 * the chain is a draw from the middle model's row there, and these rows are the q of the draft (IID; FIXED at temperature 0).
 * The length of the chain does not depend on draws: the inner engine runs until the chain is full, and surplus tokens are cut.
 *
 * Draws. The inner engine's seed is derived from the address of the outer step (seed; request, position), so it shares no draw
 * with the outer rule or with the next step (methods.md, L2, Arithmetic). When the outer rule rejects, the inner sequence is
 * cut to the common text; an inner drafter with state per sequence then starts again. */
#include "draft/draft.h"

#include <string.h>

#include "core/base/mem.h"
#include "core/engine/build.h"
#include "draft/compose/composite.h"
#include "draft/lm/second_model.h"
#include "kernels/philox.h"

typedef struct cascade_options {
    char model[WG_OPTION_STRING], quantize[WG_OPTION_STRING], device[WG_OPTION_STRING], inner[WG_OPTION_STRING],
        rule[WG_OPTION_STRING];
    int length, kv_type;
    double temperature;
} cascade_options;

typedef struct cascade_drafter {
    wg_drafter base;
    cascade_options opt;
    wg_model *model;
    wg_engine *engine;
    wg_sibling_law law;
    wg_seq **seq;    /* (max_batch) by slot of the outer sequence; NULL: none yet */
    wg_seq **active; /* (max_batch) sequences that still draft; their places in the batch */
    int *place;
} cascade_drafter;

static const wg_option options[] = {
    WG_OPTION_NAME(cascade_options, model, WG_NAMES_FILE, "", "weights file of the middle model (needed)"),
    WG_OPTION_NAME(cascade_options, inner, WG_NAMES_DRAFTERS, "ngram", "what drafts for it, as KIND:option=value;option=value"),
    WG_OPTION_STR(cascade_options, rule, "rejection", "the rule that verifies these drafts; it must be lossless"),
    WG_OPTION_INT(cascade_options, length, 4, 1, WG_DRAFT_MAX, "tokens of the chain"),
    WG_OPTION_FLOAT(cascade_options, temperature, -1, -1, 100, "of the middle model; negative: the target's"),
    WG_OPTION_STR(cascade_options, quantize, "", WG_SECOND_MODEL_QUANTIZE),
    WG_OPTION_STR(cascade_options, device, "cpu", "where that model runs: " WG_DEVICE_NAMES),
    WG_OPTION_ENUM(cascade_options, kv_type, 1, wg_kv_type_names, "element type of the middle model's cache"),
    WG_OPTION_END,
};

/* The law of the chain: tokens are drawn from their rows; at temperature 0 they are functions of the text. */
static unsigned law_of(double temperature, const wg_sampling *sampling)
{
    const double t = temperature >= 0 ? temperature : sampling->temperature;
    return t > 0 && sampling->top_k != 1 ? WG_LAW_IID : WG_LAW_FIXED;
}

static unsigned laws_for(const void *opt, const wg_sampling *sampling)
{
    return law_of(((const cascade_options *)opt)->temperature, sampling);
}

/* ---- open */

/* Finds the inner rule, which must be lossless so that the middle model's rows are the law of the chain. */
static wg_status find_rule(const cascade_drafter *c, const wg_env *env, bool greedy, const wg_verifier_class **rule,
                           wg_error *err)
{
    const wg_status s = wg_find_verifier(env->plugins, c->opt.rule, rule, err);
    if (s) return wg_fail_in(err, s, "drafter cascade: rule");
    if (wg_verifier_lossless(*rule, greedy ? 0 : 1)) return WG_OK;
    return wg_fail(err, WG_ECONFIG,
                   "drafter cascade: rule=%s does not emit the middle model's law here, so its rows would not be the "
                   "law of the draft; choose rejection or match",
                   c->opt.rule);
}

static wg_status open_engine(cascade_drafter *c, const wg_env *env, const wg_sampling *sampling, wg_error *err)
{
    wg_engine_parts parts = {
        .target = wg_model_lm(c->model),
        .pool = env->pool,
        .ops = env->ops,
        .tokenizer = env->tokenizer,
        .is_eog = env->is_eog,
        .is_eog_user = env->is_eog_user,
        .target_name = c->opt.model,
        .plugins = env->plugins,
    };
    const int context = parts.target->context, longest = env->target->context;
    const wg_engine_options o = { .max_batch = env->max_batch,
                                  .max_tokens = longest < context ? longest : context,
                                  .sampling = *sampling,
                                  .lengths = env->lengths };
    const char *inner;
    WG_TRY(wg_component_find(env, "cascade", "inner", c->opt.inner, &parts.drafter, &inner, err));
    WG_TRY(find_rule(c, env, c->law == WG_LAW_FIXED, &parts.verifier, err));
    parts.rules = env->plugins->verifiers;
    void *inner_options = wg_calloc(1, parts.drafter->size);
    if (!inner_options) return wg_nomem(err, parts.drafter->size, "the options of an inner drafter");
    wg_option_defaults(parts.drafter->options, inner_options);
    parts.drafter_options = inner_options;
    wg_status s = wg_drafter_set(parts.drafter, inner_options, inner, err);
    if (!s) s = wg_engine_open(&c->engine, &parts, &o, err);
    wg_free(inner_options);
    return s ? wg_fail_in(err, s, "drafter cascade: inner=%s", c->opt.inner) : WG_OK;
}

static wg_status open(wg_drafter *d, const wg_env *env, wg_error *err)
{
    cascade_drafter *c = (cascade_drafter *)d;
    const size_t n = (size_t)env->max_batch;
    wg_sampling sampling = *env->sampling;
    if (c->opt.temperature >= 0) sampling.temperature = c->opt.temperature;
    c->law = (wg_sibling_law)law_of(c->opt.temperature, env->sampling);
    if (!*c->opt.model) return wg_fail(err, WG_ECONFIG, "drafter cascade: no middle model is named; set its option model=FILE");
    const wg_second_model_spec spec = {
        .path = c->opt.model, .quantize = c->opt.quantize, .device = c->opt.device, .kv_type = c->opt.kv_type
    };
    WG_TRY(wg_second_model_open(&c->model, env, &spec, err));
    if (wg_model_lm(c->model)->vocab != env->target->vocab)
        return wg_fail(err, WG_EVOCAB, "drafter cascade: %s has %d tokens, the target %d: a middle model needs as many",
                       c->opt.model, wg_model_lm(c->model)->vocab, env->target->vocab);
    WG_TRY(open_engine(c, env, &sampling, err));
    c->seq = wg_calloc(n, sizeof *c->seq);
    c->active = wg_calloc(n, sizeof *c->active);
    c->place = wg_calloc(n, sizeof *c->place);
    return c->seq && c->active && c->place ? WG_OK : wg_nomem(err, n * sizeof *c->seq, "the sequences of a cascade");
}

static void close(wg_drafter *d)
{
    cascade_drafter *c = (cascade_drafter *)d;
    for (int i = 0; c->seq && i < d->env->max_batch; i++) wg_seq_close(c->engine, c->seq[i]);
    wg_free(c->seq);
    wg_free(c->active);
    wg_free(c->place);
    wg_engine_close(c->engine);
    wg_model_close(c->model);
}

/* ---- propose */

/* Cuts the inner sequence to its common prefix with the outer text; that prefix stays in the cache. */
static void rewind_to(const cascade_drafter *c, wg_seq *in, const wg_seq *s)
{
    int same = 0;
    while (same < in->n && same < s->n && in->token[same] == s->token[same]) same++;
    if (same < in->n) wg_engine_forget(c->engine, in);
    if (same > s->n - 1) same = s->n - 1; /* the last token is never in the cache between steps */
    if (same < wg_kv_len(in->kv)) wg_seq_truncate(c->engine, in, same);
    memcpy(in->token, s->token, (size_t)s->n * sizeof *s->token);
    in->n = in->prompt = s->n;
}

/* The address of the inner engine's draws for this step. */
static wg_chance inner_chance(const wg_chance *outer)
{
    const wg_philox r = wg_philox_at(outer->seed, 0, 0xCA5CADE, outer->position, outer->request);
    wg_chance c = *outer;
    c.seed = (uint64_t)r.v[0] << 32 | r.v[1];
    return c;
}

/* Prepares the inner sequence to write `length` tokens after the outer text. */
static wg_status begin(cascade_drafter *c, const wg_seq *s, int length, wg_seq **out, wg_error *err)
{
    wg_seq **in = &c->seq[s->slot];
    if (*in) rewind_to(c, *in, s);
    else WG_TRY(wg_seq_open(c->engine, in, s->request, s->token, s->n, wg_engine_options_of(c->engine)->max_tokens, err));
    (*in)->finish = WG_RUNNING;
    (*in)->limit = s->n + length;
    (*in)->chance = inner_chance(&s->chance);
    *out = *in;
    return WG_OK;
}

/* Adds the tokens that the inner step emitted for place `at` of its batch, each with the row it was drawn from. */
static void extend(const cascade_drafter *c, const wg_seq *in, int at, wg_tree *out, wg_rows *q)
{
    const wg_last_step last = wg_engine_last_step(c->engine);
    wg_rows *p = last.p;
    const wg_tree *t = &last.tree[at];
    for (int i = 0; i < in->path.n; i++) {
        const int from = t->row + in->path.node[i], row = wg_rows_push(q);
        wg_assert(row >= 0);
        q->point[row] = wg_rows_one_hot(p, from);
        if (q->point[row] < 0) memcpy(wg_rows_at(q, row), wg_rows_at(p, from), (size_t)p->vocab * sizeof *p->p);
        wg_tree_push(out, out->n - 1, in->token[in->n - in->path.n + i], row);
    }
}

static wg_status propose(wg_drafter *d, wg_seq *const *seq, int n, wg_tree *out, wg_rows *q, wg_error *err)
{
    cascade_drafter *c = (cascade_drafter *)d;
    const int longest = wg_engine_options_of(c->engine)->max_tokens;
    int active = 0;
    for (int i = 0; i < n; i++) {
        const wg_seq *s = seq[i];
        int length = c->opt.length;
        if (length > wg_seq_room(s)) length = wg_seq_room(s);
        if (length > longest - s->n) length = longest - s->n;
        if (length > WG_TREE_MAX - 1) length = WG_TREE_MAX - 1;
        wg_tree_reset(&out[i], s->token[s->n - 1], c->law);
        if (s->n >= longest) out[i].no_draft = WG_NO_DRAFT_CONTEXT;
        if (length <= 0) continue;
        WG_TRY(begin(c, s, length, &c->active[active], err));
        c->place[active++] = i;
    }
    while (active) {
        WG_TRY(wg_engine_step(c->engine, c->active, active, err));
        for (int k = 0; k < active; k++) extend(c, c->active[k], k, &out[c->place[k]], q);
        int left = 0;
        for (int k = 0; k < active; k++) {
            if (c->active[k]->finish != WG_RUNNING) continue;
            c->place[left] = c->place[k];
            c->active[left++] = c->active[k];
        }
        active = left;
    }
    return WG_OK;
}

/* The longest text for which the middle model can still write a token. */
static int context(const wg_drafter *d, bool *slides)
{
    *slides = false;
    return wg_engine_options_of(((const cascade_drafter *)d)->engine)->max_tokens;
}

static void forget(wg_drafter *d, const wg_seq *seq)
{
    cascade_drafter *c = (cascade_drafter *)d;
    wg_seq_close(c->engine, c->seq[seq->slot]);
    c->seq[seq->slot] = NULL;
}

const wg_drafter_class wg_drafter_cascade = {
    .name = "cascade",
    .doc = "a middle model whose own decoding is speculative: its drafter and its rule by name",
    .size = sizeof(cascade_drafter),
    .options = options,
    .options_at = offsetof(cascade_drafter, opt),
    .test_options =
        (const wg_drafter_test[]){
            { .options = "model=$near,length=4,inner=model:model=$far;length=2", .own_request = true, .keeps = 0.5 },
            { .options = "model=$near,inner=ngram:k=2", .own_request = true },
            { .options = NULL },
        },
    .laws = WG_COMPONENT_LAWS,
    .laws_for = laws_for,
    .open = open,
    .propose = propose,
    .forget = forget,
    .close = close,
    .context = context,
    .cross_request = true,
};
