/* SPDX-License-Identifier: MIT
 * Self-speculation: the target drafts for itself with a part of its own layers, or of its own cache (core/model/submodel.h).
 * What is drawn, laws, trees and passes are those of any drafter that runs a language model (draft/lm/lm_draft.h).
 *
 * Pages. A draft reads the history where the target left it, so there is nothing to catch up and nothing to keep: no prefill,
 * no space, no memory beside a pass's rows of logits. The keys and values of drafted nodes go to the tail slots of the target's
 * own space. When the draft is done they no longer count as written there, and the target's pass over the tree writes these
 * slots again in all of its layers; so nothing that a draft wrote is ever seen by the target, or committed. */
#ifndef WG_DRAFT_LM_SELF_H
#define WG_DRAFT_LM_SELF_H

#include "core/model/submodel.h"
#include "draft/lm/lm_draft.h"

typedef struct wg_self_drafter {
    wg_lm_drafter m; /* first; and this is first in the drafter */
    wg_submodel *part;
} wg_self_drafter;

/* Opens the part of the target that the plan says. Errors say which drafter. EUNSUPPORTED: the target is no transformer. */
wg_status wg_self_open(wg_self_drafter *d, const wg_growth *growth, const wg_layer_plan *plan, const wg_env *env,
                       wg_error *err);
void wg_self_close(wg_drafter *d);
wg_status wg_self_propose(wg_drafter *d, wg_seq *const *seq, int n, wg_tree *out, wg_rows *q, wg_error *err);

/* The members of the class of a drafter that begins with a wg_self_drafter and drafts like one; `open` is its own. */
#define WG_SELF_DRAFTER_MEMBERS WG_LM_DRAFTER_MEMBERS, .propose = wg_self_propose, .close = wg_self_close

/* Layers of the target; 0 when it has none that we know. */
int wg_self_layers(const wg_env *env);

#endif
