/* SPDX-License-Identifier: MIT
 * Two drafters: the first drafts if its score is high enough, else the second (suffix decoding falls back to a model in this
 * way when its match is short: Oliaro et al. 2024; methods.md, Lookups). The score is declared by the tree: the tokens that the
 * drafter expects to be accepted (ngram: the length of its match). It is a function of the prefix, so the choice does not
 * depend on a draw (methods.md, L3), and the law of the verified tree is its drafter's.
 *
 * The second drafter runs only for sequences that the first did not serve. Both observe every commit; a drafter whose tree was
 * not verified observes the other's tree. */
#include "draft/draft.h"

#include "core/base/mem.h"
#include "draft/compose/composite.h"

typedef struct hybrid_options {
    char first[WG_OPTION_STRING], second[WG_OPTION_STRING];
    double min_score;
} hybrid_options;

enum { FIRST, SECOND, DRAFTERS };

typedef struct hybrid_drafter {
    wg_composite of; /* first; FIRST, SECOND */
    hybrid_options opt;
    wg_seq **left; /* (max_batch) sequences for the second */
    int *place;    /* (max_batch) their places in the batch */
} hybrid_drafter;

static const wg_option options[] = {
    WG_OPTION_NAME(hybrid_options, first, WG_NAMES_DRAFTERS, "",
                   "the drafter that drafts first, as KIND:option=value;option=value (needed)"),
    WG_OPTION_NAME(hybrid_options, second, WG_NAMES_DRAFTERS, "", "the drafter for what the first leaves (needed)"),
    WG_OPTION_FLOAT(hybrid_options, min_score, 2, 0, 64, "tokens the first must expect to be kept"),
    WG_OPTION_END,
};

static wg_status open(wg_drafter *d, const wg_env *env, wg_error *err)
{
    hybrid_drafter *h = (hybrid_drafter *)d;
    const size_t n = (size_t)env->max_batch;
    h->of.n = DRAFTERS;
    WG_TRY(wg_component_open(&h->of.in[FIRST], 1, env, "hybrid", "first", h->opt.first, err));
    WG_TRY(wg_component_open(&h->of.in[SECOND], 2, env, "hybrid", "second", h->opt.second, err));
    WG_TRY(wg_composite_open_steps(&h->of, env, err));
    h->left = wg_calloc(n, sizeof *h->left);
    h->place = wg_calloc(n, sizeof *h->place);
    return h->left && h->place ? WG_OK : wg_nomem(err, n * sizeof *h->left, "the sequences of a hybrid draft");
}

static void close(wg_drafter *d)
{
    hybrid_drafter *h = (hybrid_drafter *)d;
    wg_composite_close(d);
    wg_free(h->left);
    wg_free(h->place);
}

static wg_status propose(wg_drafter *d, wg_seq *const *seq, int n, wg_tree *out, wg_rows *q, wg_error *err)
{
    hybrid_drafter *h = (hybrid_drafter *)d;
    wg_component *first = &h->of.in[FIRST], *second = &h->of.in[SECOND];
    int left = 0;
    WG_TRY(wg_component_propose(first, seq, n, err));
    for (int i = 0; i < n; i++) {
        const double score = wg_component_score(first, i);
        const bool sure = score >= 0 && score >= h->opt.min_score;
        h->of.last[seq[i]->slot] = (wg_composite_step){ .tree = { i, sure ? -1 : left }, .taken = sure ? FIRST : SECOND };
        if (sure) {
            wg_component_take(first, i, &out[i], q);
            continue;
        }
        wg_component_drop(first, seq[i]);
        h->left[left] = seq[i];
        h->place[left++] = i;
    }
    if (left) WG_TRY(wg_component_propose(second, h->left, left, err));
    for (int k = 0; k < left; k++) wg_component_take(second, k, &out[h->place[k]], q);
    return WG_OK;
}

const wg_drafter_class wg_drafter_hybrid = {
    .name = "hybrid",
    .doc = "one drafter where it is sure enough, another where it is not",
    .size = sizeof(hybrid_drafter),
    .options = options,
    .options_at = offsetof(hybrid_drafter, opt),
    .test_options =
        (const wg_drafter_test[]){
            { .options = "first=ngram:k=5;n_max=4,second=model:model=$near;length=3", .own_request = true, .keeps = 0.3 },
            { .options = "first=sparse_kv:window=8;length=3,second=early_exit:layer=1;tree=2-1,min_score=2",
              .siblings = true,
              .own_request = true },
            { .options = NULL },
        },
    WG_COMPOSITE_MEMBERS,
    .observe = wg_composite_observe,
    .forget = wg_composite_forget,
    .close = close,
};
