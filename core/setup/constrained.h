/* SPDX-License-Identifier: MIT
 * Constraints of texts by a GBNF grammar or a JSON schema (docs/constrained.md), which flags of the program and keys of an
 * experiment name. */
#ifndef WG_CORE_SETUP_CONSTRAINED_H
#define WG_CORE_SETUP_CONSTRAINED_H

#include <string.h>

#include "core/engine/engine.h"
#include "core/text/grammar/constraint.h"

typedef struct wg_constrained {
    wg_token_trie *trie;
    wg_constraint of; /* of.acceptor NULL: texts are free */
} wg_constrained;

/* grammar: a path. schema: a path, or a schema itself, which begins with "{". At most one is set; if both are empty or NULL,
 * *out is zero. vocab: the model's. Errors: those of wg_read_file and wg_constraint_open, with the file's name. */
wg_status wg_constrained_open(wg_constrained *out, const char *grammar, const char *schema, const wg_tokenizer *t, int vocab,
                              wg_error *err);
void wg_constrained_close(wg_constrained *c); /* call it after its sequences are closed. Zeroed is fine */

/* Whether tokens that a grammar forces are drafted in this engine: unless its drafter is `none`, so that plain decoding stays
 * plain. The function is here because the engine knows no drafter by its name. */
static inline bool wg_drafts_forced(const wg_engine *e) { return strcmp(wg_engine_drafter(e)->class->name, "none") != 0; }

#endif
