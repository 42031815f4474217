/* SPDX-License-Identifier: MIT
 * Several drafters draft, and the tree with the most expected accepted tokens is verified (methods.md, Composites). Scores are
 * functions of the prefix (composite.h), so the choice does not depend on a draw (methods.md, L3); among equals the drafter
 * named first wins. All components draft at every step, which suits drafters without a model. */
#include "draft/draft.h"

#include "draft/compose/composite.h"

typedef struct best_of_options {
    char of[WG_OPTION_STRING];
} best_of_options;

typedef struct best_of_drafter {
    wg_composite of; /* first */
    best_of_options opt;
} best_of_drafter;

static const wg_option options[] = {
    WG_OPTION_NAME(best_of_options, of, WG_NAMES_DRAFTERS, "",
                   "the drafters, as KIND:option=value;option=value|KIND|... (needed)"),
    WG_OPTION_END,
};

static wg_status open(wg_drafter *d, const wg_env *env, wg_error *err)
{
    best_of_drafter *b = (best_of_drafter *)d;
    return wg_composite_open(&b->of, env, "best_of", b->opt.of, err);
}

static wg_status propose(wg_drafter *d, wg_seq *const *seq, int n, wg_tree *out, wg_rows *q, wg_error *err)
{
    wg_composite *of = (wg_composite *)d;
    WG_TRY(wg_composite_ask(of, seq, n, err));
    for (int i = 0; i < n; i++) {
        int best = 0;
        for (int k = 1; k < of->n; k++)
            if (wg_component_score(&of->in[k], i) > wg_component_score(&of->in[best], i)) best = k;
        wg_composite_take(of, best, seq[i], i, &out[i], q);
        for (int k = 1; k < of->n; k++) /* all drafts are empty: report the first reason other than "nothing found" */
            if (out[i].no_draft == WG_NO_DRAFT_NOTHING) out[i].no_draft = of->in[k].tree[i].no_draft;
    }
    return WG_OK;
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
    WG_COMPOSITE_MEMBERS,
    .observe = wg_composite_observe,
    .forget = wg_composite_forget,
    .close = wg_composite_close,
};
