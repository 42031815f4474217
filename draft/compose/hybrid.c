/* SPDX-License-Identifier: MIT
 * The first drafter where its score is high enough, else the second (as suffix decoding falls back to a model when its match
 * is short: Oliaro et al. 2024; METHODS A4, C5). The score is declared by the tree: the tokens that the drafter expects to
 * be accepted (ngram: the length of its match). It is a function of the prefix, so the choice does not depend on a draw
 * (METHODS L3), and the law of the verified tree is its drafter's.
 *
 * The second drafter runs only for the sequences that the first left. Both observe every commit; a drafter whose tree was
 * not verified observes the other's tree. */
#include "draft/draft.h"

#include "core/base/mem.h"
#include "draft/compose/composite.h"

typedef struct hybrid_options {
    char first[WG_OPTION_STRING], second[WG_OPTION_STRING];
    double min_score;
} hybrid_options;

typedef struct hybrid_drafter {
    wg_drafter base;
    hybrid_options opt;
    wg_component first, second;
    wg_seq **left; /* (max_batch) sequences for the second */
    int *place;    /* (max_batch) where they stand in the batch */
    struct {
        int first, second;
    } * last; /* (max_batch) of the sequence in a slot: which trees were its own; second -1: none */
} hybrid_drafter;

static const wg_option options[] = {
    WG_OPTION_STR(hybrid_options, first, "", "the drafter that is asked first, as KIND:option=value;option=value (needed)"),
    WG_OPTION_STR(hybrid_options, second, "", "the drafter for what the first leaves (needed)"),
    WG_OPTION_FLOAT(hybrid_options, min_score, 2, 0, 64, "tokens the first must expect to be kept"),
    WG_OPTION_END,
};

static wg_status open(wg_drafter *d, const wg_env *env, wg_error *err)
{
    hybrid_drafter *h = (hybrid_drafter *)d;
    const size_t n = (size_t)env->max_batch;
    WG_TRY(wg_component_open(&h->first, 1, env, "hybrid", "first", h->opt.first, err));
    WG_TRY(wg_component_open(&h->second, 2, env, "hybrid", "second", h->opt.second, err));
    h->left = wg_calloc(n, sizeof *h->left);
    h->place = wg_calloc(n, sizeof *h->place);
    h->last = wg_calloc(n, sizeof *h->last);
    return h->left && h->place && h->last ? WG_OK : wg_nomem(err, n * sizeof *h->left, "the sequences of a hybrid draft");
}

static void close(wg_drafter *d)
{
    hybrid_drafter *h = (hybrid_drafter *)d;
    wg_component_close(&h->second);
    wg_component_close(&h->first);
    wg_free(h->left);
    wg_free(h->place);
    wg_free(h->last);
}

static wg_status propose(wg_drafter *d, wg_seq *const *seq, int n, wg_tree *out, wg_rows *q, wg_error *err)
{
    hybrid_drafter *h = (hybrid_drafter *)d;
    int left = 0;
    WG_TRY(wg_component_propose(&h->first, seq, n, err));
    for (int i = 0; i < n; i++) {
        const double score = wg_component_score(&h->first, i);
        h->last[seq[i]->slot].first = i;
        h->last[seq[i]->slot].second = -1;
        if (score >= 0 && score >= h->opt.min_score) {
            wg_component_take(&h->first, i, &out[i], q);
            continue;
        }
        wg_component_drop(&h->first, seq[i]);
        h->last[seq[i]->slot].second = left;
        h->left[left] = seq[i];
        h->place[left++] = i;
    }
    if (left) WG_TRY(wg_component_propose(&h->second, h->left, left, err));
    for (int k = 0; k < left; k++) wg_component_take(&h->second, k, &out[h->place[k]], q);
    return WG_OK;
}

static void observe(wg_drafter *d, const wg_seq *seq, const wg_tree *tree, const wg_path *path, wg_rows *target)
{
    const hybrid_drafter *h = (hybrid_drafter *)d;
    wg_component_observe(&h->first, seq, tree, path, target);
    wg_component_observe(&h->second, seq, tree, path, target);
}

static int account(const wg_drafter *d, const wg_seq *seq, wg_composite_stats *out, int most)
{
    const hybrid_drafter *h = (const hybrid_drafter *)d;
    const int first = h->last[seq->slot].first, second = h->last[seq->slot].second;
    if (most < 2) return 0;
    out[0] = wg_composite_account(&h->first, first, second < 0, seq);
    out[1] = wg_composite_account(&h->second, second, second >= 0, seq);
    return 2;
}

static void forget(wg_drafter *d, const wg_seq *seq)
{
    const hybrid_drafter *h = (hybrid_drafter *)d;
    wg_component_forget(&h->first, seq);
    wg_component_forget(&h->second, seq);
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
    .laws = WG_COMPONENT_LAWS,
    .open = open,
    .propose = propose,
    .observe = observe,
    .forget = forget,
    .close = close,
    .cross_request = true,
    .composite_stats = account,
};
