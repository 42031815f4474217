/* SPDX-License-Identifier: MIT
 * Several drafters draft, and the tree with the most expected accepted tokens is verified (METHODS C6). Scores are functions
 * of the prefix (composite.h), so the choice does not depend on a draw (METHODS L3); among equals the drafter named first
 * wins. All components draft at every step: useful for drafters without a model. */
#include "draft/draft.h"

#include "core/base/mem.h"
#include "draft/compose/composite.h"

typedef struct best_of_options {
    char of[WG_OPTION_STRING];
} best_of_options;

typedef struct best_of_drafter {
    wg_drafter base;
    best_of_options opt;
    wg_component in[WG_COMPONENT_MAX];
    int n;
    struct {
        int place, taken;
    } * last; /* (max_batch) of the sequence in a slot: in the last batch; whose tree */
} best_of_drafter;

static const wg_option options[] = {
    WG_OPTION_STR(best_of_options, of, "", "the drafters, as KIND:option=value;option=value|KIND|... (needed)"),
    WG_OPTION_END,
};

static wg_status open(wg_drafter *d, const wg_env *env, wg_error *err)
{
    best_of_drafter *b = (best_of_drafter *)d;
    const size_t n = (size_t)env->max_batch;
    if (!(b->last = wg_calloc(n, sizeof *b->last))) return wg_nomem(err, n * sizeof *b->last, "the drafts of a step");
    return wg_component_open_list(b->in, &b->n, env, "best_of", "of", b->opt.of, err);
}

static void close(wg_drafter *d)
{
    best_of_drafter *b = (best_of_drafter *)d;
    for (int k = 0; k < b->n; k++) wg_component_close(&b->in[k]);
    wg_free(b->last);
}

static wg_status propose(wg_drafter *d, wg_seq *const *seq, int n, wg_tree *out, wg_rows *q, wg_error *err)
{
    best_of_drafter *b = (best_of_drafter *)d;
    for (int k = 0; k < b->n; k++) WG_TRY(wg_component_propose(&b->in[k], seq, n, err));
    for (int i = 0; i < n; i++) {
        int best = 0;
        for (int k = 1; k < b->n; k++)
            if (wg_component_score(&b->in[k], i) > wg_component_score(&b->in[best], i)) best = k;
        for (int k = 0; k < b->n; k++)
            if (k != best) wg_component_drop(&b->in[k], seq[i]);
        wg_component_take(&b->in[best], i, &out[i], q);
        b->last[seq[i]->slot].place = i;
        b->last[seq[i]->slot].taken = best;
    }
    return WG_OK;
}

static void observe(wg_drafter *d, const wg_seq *seq, const wg_tree *tree, const wg_path *path, wg_rows *target)
{
    const best_of_drafter *b = (best_of_drafter *)d;
    for (int k = 0; k < b->n; k++) wg_component_observe(&b->in[k], seq, tree, path, target);
}

static int account(const wg_drafter *d, const wg_seq *seq, wg_composite_stats *out, int most)
{
    const best_of_drafter *b = (const best_of_drafter *)d;
    for (int k = 0; k < b->n && k < most; k++)
        out[k] = wg_composite_account(&b->in[k], b->last[seq->slot].place, b->last[seq->slot].taken == k, seq);
    return b->n < most ? b->n : most;
}

static void forget(wg_drafter *d, const wg_seq *seq)
{
    const best_of_drafter *b = (best_of_drafter *)d;
    for (int k = 0; k < b->n; k++) wg_component_forget(&b->in[k], seq);
}

const wg_drafter_class wg_drafter_best_of = {
    .name = "best_of",
    .doc = "of several drafts the one that expects to keep most tokens",
    .size = sizeof(best_of_drafter),
    .options = options,
    .options_at = offsetof(best_of_drafter, opt),
    .test_options =
        (const wg_drafter_test[]){
            { .options = "of=ngram:k=5|model:model=$near;length=3|model:model=$far;tree=2-1",
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
