/* SPDX-License-Identifier: MIT
 * The whole target with a sparse view of its cache as drafter: attention sinks and a recent window (StreamingLLM, Xiao et al.
 * 2023; as a self-draft in TriForce, Sun et al. 2024, and MagicDec, Sadhukhan et al. 2024). All weights are read for every
 * draft token, so it gains only where the cache is most of what a pass reads: long contexts, large batches.
 *
 * Keys keep the rotation of their own positions; so, unlike in StreamingLLM, distances are the true ones, as in the target. */
#include "draft/draft.h"

#include "draft/lm/self.h"

typedef struct sparse_options {
    wg_growth growth; /* first */
    int sinks, window;
} sparse_options;

typedef struct sparse_drafter {
    wg_self_drafter self;
    sparse_options opt;
} sparse_drafter;

static const wg_option options[] = {
    WG_OPTION_INT(sparse_options, sinks, 4, 0, 1 << 20, "first tokens of the text that every token sees"),
    WG_OPTION_INT(sparse_options, window, 256, 1, 1 << 20, "last tokens that it sees, itself included"),
    WG_GROWTH_OPTIONS,
    WG_OPTION_END,
};

static wg_status open(wg_drafter *d, const wg_env *env, wg_error *err)
{
    sparse_drafter *s = (sparse_drafter *)d;
    const wg_layer_plan plan = { .layers = wg_self_layers(env), .sinks = s->opt.sinks, .window = s->opt.window };
    return wg_self_open(&s->self, &s->opt.growth, &plan, env, err);
}

const wg_drafter_class wg_drafter_sparse_kv = {
    .name = "sparse_kv",
    .doc = "the target with the first and the last tokens of its cache alone: for long contexts",
    .size = sizeof(sparse_drafter),
    .options = options,
    .options_at = offsetof(sparse_drafter, opt),
    .test_options =
        (const wg_drafter_test[]){
            { .options = "window=128,length=3", .keeps = 1 },
            { .options = "sinks=2,window=6,tree=2-1-1", .siblings = true },
            { .options = NULL },
        },
    WG_SELF_DRAFTER_MEMBERS,
};
