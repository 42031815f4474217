/* SPDX-License-Identifier: MIT
 * A draft model beside the target, with the target's vocabulary, a part of it, or another one. */
#ifndef WG_DRAFT_LM_SECOND_MODEL_H
#define WG_DRAFT_LM_SECOND_MODEL_H

#include "core/engine/drafter.h"
#include "core/model/model.h"
#include "draft/lm/draft_vocab.h"

#define WG_SECOND_MODEL_QUANTIZE                                                                                               \
    "that model's weights are converted when they are loaded: TYPE[,PATTERN=TYPE]..., as target.quantize; empty: not"

/* What to open: the file at `path`, its weights converted while they are loaded (core/file/quantize.h; "": not), for passes of
 * at most max_rows rows (0: the model's default), on a device. */
typedef struct wg_second_model_spec {
    const char *path, *quantize, *device; /* device: a name of core/model/device.h */
    int kv_type;                          /* an index of wg_kv_type_names */
    int max_rows;
} wg_second_model_spec;

/* Opens a model with the target's vocabulary. EVOCAB: its ids may have other meanings than the target's. On failure *out may be
 * half open: close it. */
wg_status wg_second_model_open(wg_model **out, const wg_env *env, const wg_second_model_spec *spec, wg_error *err);

/* The same for a model whose vocabulary may differ (`intersection`) or is pruned by the file `pruned` ("": no). Its head has
 * only the rows of *v, which the caller closes, also after a failure. */
wg_status wg_second_model_open_part(wg_model **out, wg_draft_vocab *v, bool intersection, const char *pruned, const wg_env *env,
                                    const wg_second_model_spec *spec, wg_error *err);

/* Whether the file is a student cut to what its target lacks (core/model/arch.h), which only wg_second_model_open_part opens.
 * Errors: those of opening the file. */
wg_status wg_second_model_is_cut(bool *cut, const char *path, wg_error *err);

/* The same for a model of any vocabulary, with its tokenizer, which the caller closes. EMODEL: it has none. */
wg_status wg_second_model_open_foreign(wg_model **out, wg_tokenizer **tokenizer, const wg_env *env,
                                       const wg_second_model_spec *spec, wg_error *err);

#endif
