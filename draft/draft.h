/* SPDX-License-Identifier: MIT
 * The drafters of this folder: a line each, in the order of `wager list`, and a NULL-terminated table of them. */
#ifndef WG_DRAFT_DRAFT_H
#define WG_DRAFT_DRAFT_H

#include "core/engine/drafter.h"

/* clang-format off */
#define WG_DRAFTERS(X) \
    X(none) \
    X(model) \
    X(slem) \
    X(ngram) \
    X(ngram_cache) \
    X(ngram_hash) \
    X(suffix) \
    X(sam) \
    X(retrieval) \
    X(recycle) \
    X(lookahead) \
    X(layer_skip) \
    X(early_exit) \
    X(sparse_kv) \
    X(eagle) \
    X(block) \
    X(mtp) \
    X(hybrid) \
    X(best_of) \
    X(full_information) \
    X(auto) \
    X(cascade) \
    X(plugin) \
    X(process) \
    X(synthetic)
/* clang-format on */

#define WG_DRAFTER_DECLARE(name) extern const wg_drafter_class wg_drafter_##name;
WG_DRAFTERS(WG_DRAFTER_DECLARE)
#undef WG_DRAFTER_DECLARE

extern const wg_drafter_class *const wg_drafters[];

/* The class that an open drafter of class `plugin` has loaded from its shared object. */
const wg_drafter_class *wg_drafter_in_object(const wg_drafter *d);

#endif
