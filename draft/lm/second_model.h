/* SPDX-License-Identifier: MIT
 * A language model beside the target, with the target's vocabulary or with the tokens that both vocabularies have. */
#ifndef WG_DRAFT_LM_SECOND_MODEL_H
#define WG_DRAFT_LM_SECOND_MODEL_H

#include "core/engine/drafter.h"
#include "core/model/model.h"
#include "draft/lm/draft_vocab.h"

#define WG_SECOND_MODEL_QUANTIZE                                                                                               \
    "that model's weights are converted when they are loaded: TYPE[,PATTERN=TYPE]..., as target.quantize; empty: not"

/* The file at `path`, converted while it is loaded (core/file/quantize.h; "": as it is), for passes of at most max_rows rows
 * (0: as the model's own), on the device of that name. */
typedef struct wg_second_model_spec {
    const char *path, *quantize, *device; /* names of devices: core/model/device.h */
    int kv_type;                          /* indexes wg_kv_type_names */
    int max_rows;
} wg_second_model_spec;

/* Opens it. EVOCAB when its token ids may not mean the target's. On failure *out may be half open: close it. */
wg_status wg_second_model_open(wg_model **out, const wg_env *env, const wg_second_model_spec *spec, wg_error *err);

/* The same for a model whose vocabulary may be another (`intersection`) or is to be pruned (by the file `pruned`, or ""): its
 * head has only the rows of *v, which is to be closed, also on failure. */
wg_status wg_second_model_open_part(wg_model **out, wg_draft_vocab *v, bool intersection, const char *pruned, const wg_env *env,
                                    const wg_second_model_spec *spec, wg_error *err);

/* The same for a model whose vocabulary does not matter, with its tokenizer (to be closed). EMODEL when it has none. */
wg_status wg_second_model_open_foreign(wg_model **out, wg_tokenizer **tokenizer, const wg_env *env,
                                       const wg_second_model_spec *spec, wg_error *err);

#endif
