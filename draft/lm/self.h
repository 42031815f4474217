/* SPDX-License-Identifier: MIT
 * Self-speculation: the target drafts for itself with a submodel (core/model/submodel.h). Drafting is that of every drafter
 * with a language model (draft/lm/lm_draft.h).
 *
 * Pages. A draft reads the target's pages, so it needs no prefill, no space and no memory but rows of logits. The keys and
 * values of drafted nodes go to the tail slots of the target's own space. After the draft they are invalidated, and the
 * target's pass over the tree writes all layers of these slots again, so the target never reads or commits a value of the
 * draft. */
#ifndef WG_DRAFT_LM_SELF_H
#define WG_DRAFT_LM_SELF_H

#include "core/model/submodel.h"
#include "draft/lm/lm_draft.h"

typedef struct wg_self_drafter {
    wg_lm_drafter m; /* first member; wg_self_drafter is the first member of the drafter */
    wg_submodel *part;
} wg_self_drafter;

/* Opens the target's submodel under this plan. Messages name the drafter. EUNSUPPORTED: the target is not a transformer. */
wg_status wg_self_open(wg_self_drafter *d, const wg_growth *growth, const wg_layer_plan *plan, const wg_env *env,
                       wg_error *err);
void wg_self_close(wg_drafter *d);
wg_status wg_self_propose(wg_drafter *d, wg_seq *const *seq, int n, wg_tree *out, wg_rows *q, wg_error *err);

/* Members of the class of a drafter that begins with a wg_self_drafter; `open` is the drafter's own function. */
#define WG_SELF_DRAFTER_MEMBERS WG_LM_DRAFTER_MEMBERS, .propose = wg_self_propose, .close = wg_self_close

/* The number of the target's layers; 0 when it is not a transformer. */
int wg_self_layers(const wg_env *env);

#endif
