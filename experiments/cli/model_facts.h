/* SPDX-License-Identifier: MIT
 * What a model's file says of itself, as JSON with the keys of docs/models.md ("wager inspect"); the text of the command is
 * printed from it. */
#ifndef WG_EXPERIMENTS_CLI_MODEL_FACTS_H
#define WG_EXPERIMENTS_CLI_MODEL_FACTS_H

#include <jansson.h>

#include "core/file/dialect.h"

typedef struct wg_facts_options {
    int context, batch; /* of the cache; context 0: the model's */
    int kv_type;
} wg_facts_options;

/* The facts of an open file (`w`), or of tensors alone where it cannot be opened (NULL). `refused`: what keeps it from being a
 * target; NULL: nothing. NULL: out of memory. To be freed with json_decref. */
json_t *wg_model_facts(const wg_weights *w, const char *path, const wg_tensor_list *list, const char *refused,
                       const wg_facts_options *o);

/* Whether the model of the file `draft` can draft for the target `w`, with which drafters, and what is in the way. */
json_t *wg_draft_facts(const wg_weights *w, const char *draft);

#endif
