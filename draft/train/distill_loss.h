/* SPDX-License-Identifier: MIT
 * The losses of loss.h as plug-ins for the training of a network (net.h), with p the target's rows of the pass (target_rows.h).
 * Rows without a token to predict have no loss; a token that the rows do not keep ends a block, as no draft has it. A block
 * begins where a document or a part of at most WG_LOSS_ROWS rows begins; of a head every draft is one. */
#ifndef WG_DRAFT_TRAIN_DISTILL_LOSS_H
#define WG_DRAFT_TRAIN_DISTILL_LOSS_H

#include "draft/train/loss.h"
#include "draft/train/target_rows.h"

typedef struct wg_distill_loss wg_distill_loss;

/* Opens losses over the tokens of the target's rows, for `threads` threads. temperature: of q. steps: of a head (wg_net_row),
 * whose blocks are its drafts; else 0. spec is copied, target borrowed. ENOMEM. */
wg_status wg_distill_loss_open(wg_distill_loss **out, const wg_loss_spec *spec, const wg_target_rows *target, int steps,
                               double temperature, int threads, wg_error *err);
void wg_distill_loss_close(wg_distill_loss *l);         /* NULL is fine */
wg_train_loss wg_distill_loss_plug(wg_distill_loss *l); /* borrows l */
/* What the loss takes of row `logits` of a pass's logits. */
wg_loss_target wg_distill_loss_target(const wg_target_rows *target, int steps, int logits);
size_t wg_distill_loss_need(int width, int threads); /* bytes; width: of the target's rows */

#endif
