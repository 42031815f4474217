/* SPDX-License-Identifier: MIT
 * SAM decoding (Hu et al. 2024): drafts, as a chain, the tokens that followed the first occurrence of the longest suffix of the
 * text that occurred before. A suffix automaton finds it, at any length, in amortised constant time per token. One automaton
 * grows with the sequence; a static one over a corpus (a datastore, see `wager datastore build`) carries its match from token
 * to token. The corpus is used where its match is longer than the sequence's own by more than `bias`; a match shorter than
 * n_min drafts nothing.
 *
 * Unlike in `ngram`, matches have no maximal length and the cost does not grow with the text; unlike `suffix`, it keeps no
 * counts and takes a third of the memory. The sequence's automaton is allocated for its whole length at its first draft and
 * freed with it (without memory it learns nothing); the corpus's, about 110 bytes per token, at open. A copy may run into
 * itself, as in ngram. Law FIXED: a function of the prefix; rows of q are one-hot. */
#include "draft/draft.h"

#include "core/base/mem.h"
#include "draft/lookup/automaton.h"
#include "draft/lookup/datastore.h"
#include "draft/one_hot.h"

typedef struct sam_options {
    int k, n_min, bias;
    char corpus[WG_OPTION_STRING];
} sam_options;

typedef struct local {
    wg_automaton automaton;
    int room;       /* capacity of own in tokens; 0: not allocated */
    int done;       /* tokens of the sequence read so far */
    int state, len; /* state and length of the match in the corpus */
} local;

typedef struct sam_drafter {
    wg_drafter base;
    sam_options opt;
    local *local;        /* (max_batch) */
    wg_datastore *store; /* NULL: no corpus */
    wg_automaton corpus;
} sam_drafter;

static const wg_option options[] = {
    WG_OPTION_INT(sam_options, k, 15, 1, WG_DRAFT_MAX,
                  "tokens per draft (15: SAM decoding's program without a second drafter)"),
    WG_OPTION_INT(sam_options, n_min, 2, 1, 1000000, "shortest match that is used"),
    WG_OPTION_INT(sam_options, bias, 5, 0, 1000000, "a match in the corpus must be longer by more than this"),
    WG_OPTION_NAME(sam_options, corpus, WG_NAMES_FILE, "", "a datastore whose texts are searched too; empty: none"),
    WG_OPTION_END,
};

static wg_status read_corpus(sam_drafter *d, const wg_env *env, wg_error *err)
{
    WG_TRY(wg_datastore_open(&d->store, d->opt.corpus, "sam", env, err));
    const wg_datastore *s = d->store;
    if (s->tokens > 1 << 28 || !wg_automaton_open(&d->corpus, (int)s->tokens, 0))
        return wg_nomem(err, s->tokens > 1 << 28 ? (size_t)s->tokens * 110 : wg_automaton_bytes((int)s->tokens, 0),
                        "the corpus's automaton; use a smaller one, or the drafter retrieval");
    for (int64_t i = 0; i < s->tokens; i++) {
        const int32_t x = wg_datastore_token(s, i);
        if (x < 0) wg_automaton_begin(&d->corpus);
        else wg_automaton_put(&d->corpus, x, (int32_t)i);
    }
    return WG_OK;
}

static wg_status open(wg_drafter *base, const wg_env *env, wg_error *err)
{
    sam_drafter *d = (sam_drafter *)base;
    d->local = wg_calloc((size_t)env->max_batch, sizeof *d->local);
    if (!d->local) return wg_nomem(err, (size_t)env->max_batch * sizeof *d->local, "the drafter sam");
    return *d->opt.corpus ? read_corpus(d, env, err) : WG_OK;
}

static void close(wg_drafter *base)
{
    sam_drafter *d = (sam_drafter *)base;
    for (int i = 0; d->local && i < base->env->max_batch; i++) wg_automaton_close(&d->local[i].automaton);
    wg_free(d->local);
    wg_automaton_close(&d->corpus);
    wg_datastore_close(d->store);
}

static void forget(wg_drafter *base, const wg_seq *s)
{
    local *l = &((sam_drafter *)base)->local[s->slot];
    wg_automaton_close(&l->automaton);
    *l = (local){ 0 };
}

static local *learn(sam_drafter *d, const wg_seq *s)
{
    local *l = &d->local[s->slot];
    if (l->room < s->cap) { /* a new sequence, or an extended one (wg_seq_extend), which is read again */
        wg_automaton_close(&l->automaton);
        *l = (local){ .room = s->cap };
        wg_automaton_open(&l->automaton, s->cap, 0);
    }
    for (; l->done < s->n; l->done++) {
        if (l->automaton.cap) wg_automaton_put(&l->automaton, s->token[l->done], l->done);
        if (d->store) l->state = wg_automaton_step(&d->corpus, l->state, &l->len, s->token[l->done]);
    }
    return l;
}

static void propose_one(sam_drafter *d, const wg_seq *s, wg_tree *t, wg_rows *q)
{
    wg_tree_reset(t, s->token[s->n - 1], WG_LAW_FIXED);
    const local *l = learn(d, s);
    const wg_automaton *a = &l->automaton;
    const int depth = wg_one_hot_depth(s, d->opt.k);
    const int own = a->cap ? a->state[a->last].link : 0; /* the longest suffix that occurred earlier */
    const int own_len = own > 0 ? a->state[own].len : 0;
    const bool foreign = d->store && l->len > own_len + d->opt.bias;
    const int len = foreign ? l->len : own_len;
    if (len < d->opt.n_min) return;
    int64_t from = 1 + (foreign ? d->corpus.state[l->state].end : a->state[own].end);
    for (int i = 0; i < depth; i++, from++) {
        const int32_t x = foreign       ? wg_datastore_token(d->store, from)
                          : from < s->n ? s->token[from]
                                        : t->token[from - s->n + 1]; /* node 0 is token n - 1 */
        if (x < 0) break;
        wg_one_hot_push(t, i, x, q);
        if (wg_env_is_eog(d->base.env, x)) break;
    }
    t->score = len < t->n - 1 ? len : t->n - 1;
}

WG_PROPOSE_EACH(sam_drafter);

const wg_drafter_class wg_drafter_sam = {
    .name = "sam",
    .doc = "SAM decoding: what followed the longest suffix that occurred before, here or in a corpus",
    .size = sizeof(sam_drafter),
    .options = options,
    .options_at = offsetof(sam_drafter, opt),
    .test_options =
        (const wg_drafter_test[]){
            { .options = "corpus=$store,n_min=1,bias=1" },
            { .options = "" },
            { .options = NULL },
        },
    WG_LOOKUP_MEMBERS,
    .forget = forget,
};
