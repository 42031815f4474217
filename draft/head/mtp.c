/* SPDX-License-Identifier: MIT
 * Layers for multi-token prediction (Gloeckle et al. 2024; DeepSeek-V3; methods.md, Heads), which a model was trained with or
 * got later: one layer over the target's last hidden state and the embedding of the token behind it (head.h). It is fed its
 * own state for later tokens, which it may not have been trained for: acceptance falls with depth. */
#include "draft/draft.h"
#include "draft/head/head_drafter.h"

static const wg_option options[] = { WG_HEAD_OPTION_ROWS("speculators' layout, or of a whole model of MiMo's") };

static wg_status open(wg_drafter *d, const wg_env *env, wg_error *err)
{
    return wg_head_drafter_open_chain((wg_head_drafter *)d, env, err);
}

const wg_drafter_class wg_drafter_mtp = {
    .name = "mtp",
    .doc = "the target's layer for multi-token prediction: MiMo, speculators",
    .size = sizeof(wg_head_drafter),
    .options = options,
    .test_options =
        (const wg_drafter_test[]){
            { .options = "model=$head/mtp,length=4" },
            { .options = "model=$head/mtp,tree=2-2", .siblings = true },
            { .options = "model=$head/mtp,grow=best_first,length=3,budget=6", .siblings = true },
            { .options = NULL },
        },
    WG_HEAD_DRAFTER_MEMBERS,
    .close = wg_head_drafter_close,
};
