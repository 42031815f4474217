/* SPDX-License-Identifier: MIT
 * Facts of a model's file, as JSON with the keys of docs/models.md. `wager inspect` prints its text from it. */
#ifndef WG_EXPERIMENTS_CLI_MODEL_FACTS_H
#define WG_EXPERIMENTS_CLI_MODEL_FACTS_H

#include <jansson.h>

#include "core/file/dialect.h"

typedef struct wg_facts_options {
    int context, batch; /* of the cache; context 0: the model's */
    int kv_type;
} wg_facts_options;

/* The facts of an open file (`w`), or, with w NULL, of the tensors of a file that cannot be opened. refused: why it cannot be a
 * target, NULL: it can. Freed by json_decref; NULL: out of memory. */
json_t *wg_model_facts(const wg_weights *w, const char *path, const wg_tensor_list *list, const char *refused,
                       const wg_facts_options *o);

/* Whether the model in the file `draft` can draft for the target `w`, with which drafters, and the obstacles. */
json_t *wg_draft_facts(const wg_weights *w, const char *draft);

#endif
