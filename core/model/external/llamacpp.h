/* SPDX-License-Identifier: MIT
 * llama.cpp's library as a target: libllama, loaded when it is asked for, computes the rows; drafts, rules and sampling are
 * ours.
 *
 * A tree is decoded in one batch: every leaf has a sequence id of its own, a node carries the ids of the leaves below it and
 * its position is its depth, so it sees its own path and nothing of its siblings. Siblings share a position, not a cell, so
 * there are more cells than the text has tokens. The path that became text is given to the text's id before the next batch,
 * and the leaves are dropped. */
#ifndef WG_CORE_MODEL_EXTERNAL_LLAMACPP_H
#define WG_CORE_MODEL_EXTERNAL_LLAMACPP_H

#include "core/model/external/external.h"

enum { WG_LLAMACPP_CONTEXT = 4096 };

typedef struct wg_llamacpp_target {
    const char *library, *model; /* libllama.so, by a path or a name that the loader finds; a file that it reads */
    int threads;                 /* 0: the library's default */
    int sequences;               /* that it holds at once; 0: 1 */
    int context;                 /* the longest sequence; 0: the model's, at most WG_LLAMACPP_CONTEXT */
} wg_llamacpp_target;

/* Errors: EUNSUPPORTED: not such a library, or one whose parameters lie elsewhere than here is known; a model that keeps a
 * state instead of keys and values. EMODEL: the library cannot load the model. ENOMEM. */
wg_status wg_llamacpp_open(wg_lm **out, const wg_llamacpp_target *o, wg_error *err);

#endif
