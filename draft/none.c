/* SPDX-License-Identifier: MIT
 * No draft: the tree is its root, so a step scores one row and draws one token. This is plain decoding, and the baseline of
 * every speed-up. It produces no siblings, so every rule can check it. */
#include "draft/draft.h"

static wg_status propose(wg_drafter *d, wg_seq *const *seq, int n, wg_tree *out, wg_rows *q, wg_error *err)
{
    (void)d, (void)q, (void)err;
    for (int i = 0; i < n; i++) wg_tree_reset(&out[i], seq[i]->token[seq[i]->n - 1], WG_LAW_FIXED);
    return WG_OK;
}

static bool device_chain(const wg_drafter *d, wg_device_chain *out)
{
    (void)d;
    *out = (wg_device_chain){ .source = WG_CHAIN_EMPTY, .law = WG_LAW_FIXED };
    return true;
}

const wg_drafter_class wg_drafter_none = {
    .name = "none",
    .doc = "plain decoding: one token a pass, nothing drafted",
    .size = sizeof(wg_drafter),
    .test_options =
        (const wg_drafter_test[]){
            { .options = "" },
            { .options = NULL },
        },
    .stands_alone = true,
    .propose = propose,
    .device_chain = device_chain,
};
