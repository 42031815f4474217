/* SPDX-License-Identifier: MIT
 * A language model beside the target, with the target's vocabulary or with the tokens that both vocabularies have. */
#ifndef WG_DRAFT_LM_SECOND_MODEL_H
#define WG_DRAFT_LM_SECOND_MODEL_H

#include "core/engine/drafter.h"
#include "core/model/model.h"
#include "draft/lm/draft_vocab.h"

/* Opens the file at `path` for passes of at most max_rows rows, on the device of that name (core/model/device.h); kv_type
 * indexes wg_kv_type_names. EVOCAB when its token ids may not mean the target's. On failure *out may be half open: close it.
 * */
wg_status wg_second_model_open(wg_model **out, const wg_env *env, const char *path, const char *device, int kv_type,
                               int max_rows, wg_error *err);

/* The same for a model whose vocabulary may be another (`intersection`) or is to be pruned (by the file `pruned`, or ""): its
 * head has only the rows of *v, which is to be closed, also on failure. */
wg_status wg_second_model_open_part(wg_model **out, wg_draft_vocab *v, bool intersection, const char *pruned, const wg_env *env,
                                    const char *path, const char *device, int kv_type, int max_rows, wg_error *err);

/* The same for a model whose vocabulary does not matter, with its tokenizer (to be closed). EMODEL when it has none. */
wg_status wg_second_model_open_foreign(wg_model **out, wg_tokenizer **tokenizer, const wg_env *env, const char *path,
                                       const char *device, int kv_type, int max_rows, wg_error *err);

#endif
