/* SPDX-License-Identifier: MIT
 * A language model beside the target, with the target's vocabulary. */
#ifndef WG_DRAFT_SECOND_MODEL_H
#define WG_DRAFT_SECOND_MODEL_H

#include "core/engine/drafter.h"
#include "core/model/model.h"

extern const char *const wg_second_kv_types[]; /* choices of an option: element types of its cache */

/* Opens the file at `path` for passes of at most max_rows rows; kv_type indexes wg_second_kv_types. EVOCAB when its token ids
 * may not mean the target's. On failure *out may be half open: close it. */
wg_status wg_second_model_open(wg_model **out, const wg_env *env, const char *path, int kv_type, int max_rows, wg_error *err);

#endif
