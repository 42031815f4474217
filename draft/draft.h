/* SPDX-License-Identifier: MIT
 * The drafters of this folder, as one NULL-terminated table. */
#ifndef WG_DRAFT_DRAFT_H
#define WG_DRAFT_DRAFT_H

#include "core/engine/drafter.h"

extern const wg_drafter_class *const wg_drafters[];

extern const wg_drafter_class wg_drafter_none, wg_drafter_model, wg_drafter_slem, wg_drafter_ngram, wg_drafter_ngram_cache,
    wg_drafter_ngram_hash, wg_drafter_suffix, wg_drafter_sam, wg_drafter_retrieval, wg_drafter_recycle, wg_drafter_lookahead;
extern const wg_drafter_class wg_drafter_layer_skip, wg_drafter_early_exit, wg_drafter_sparse_kv;
extern const wg_drafter_class wg_drafter_hybrid, wg_drafter_best_of, wg_drafter_full_information, wg_drafter_cascade,
    wg_drafter_plugin, wg_drafter_process, wg_drafter_synthetic;

#endif
