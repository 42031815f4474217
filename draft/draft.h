/* SPDX-License-Identifier: MIT
 * The drafters of this folder, as one NULL-terminated table. */
#ifndef WG_DRAFT_DRAFT_H
#define WG_DRAFT_DRAFT_H

#include "core/engine/drafter.h"

extern const wg_drafter_class *const wg_drafters[];

extern const wg_drafter_class wg_drafter_none, wg_drafter_model, wg_drafter_ngram;

/* The language model that a drafter runs (its seconds, passes and rows are the cost of drafting), or NULL: it runs none. */
const wg_lm *wg_drafter_lm(const wg_drafter *d);

#endif
