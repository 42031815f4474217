/* SPDX-License-Identifier: MIT
 * EAGLE: a head of one or a few layers over hidden states of the target (head.h): of its last one and an embedding (EAGLE-1, Li
 * et al. 2024; EAGLE-2 has the same files), or of several (Li et al. 2025, EAGLE-3: Scaling up Inference Acceleration of Large
 * Language Models via Training-Time Test). It drafts better than a model of its size, and its passes
 * cost as much as its layers and its reduced vocabulary. It needs a head that was trained for this target. */
#include "draft/draft.h"
#include "draft/head/head_drafter.h"

static const wg_option options[] = { WG_HEAD_OPTION_ROWS("SafeAILab's or speculators' layout, or a GGUF file") };

static wg_status open(wg_drafter *d, const wg_env *env, wg_error *err)
{
    return wg_head_drafter_open_chain((wg_head_drafter *)d, env, err);
}

const wg_drafter_class wg_drafter_eagle = {
    .name = "eagle",
    .doc = "a head over the target's hidden states: EAGLE-1, 2 and 3",
    .size = sizeof(wg_head_drafter),
    .options = options,
    .test_options =
        (const wg_drafter_test[]){
            { .options = "model=$head,length=4" },
            { .options = WG_TREE_MAX > 8 ? "model=$head,tree=3-2-1" : "model=$head,tree=3-1", .siblings = true },
            { .options = "model=$head,grow=best_first,length=4,budget=7", .siblings = true },
            { .options = "model=$head,length=3,kv_type=f32,quantize=q8_0,temperature=1.3" },
            { .options = "model=$head/eagle-1,length=3" },
            { .options = NULL },
        },
    WG_HEAD_DRAFTER_MEMBERS,
    .close = wg_head_drafter_close,
};
