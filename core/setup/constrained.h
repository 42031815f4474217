/* SPDX-License-Identifier: MIT
 * Texts that are constrained by a file: a grammar in GBNF, or a JSON schema (docs/constrained.md), as flags of the program and
 * keys of an experiment name it. */
#ifndef WG_CORE_SETUP_CONSTRAINED_H
#define WG_CORE_SETUP_CONSTRAINED_H

#include <string.h>

#include "core/engine/engine.h"
#include "core/text/grammar/constraint.h"

typedef struct wg_constrained {
    wg_token_trie *trie;
    wg_constraint of; /* of.acceptor NULL: texts are free */
} wg_constrained;

/* grammar: a path. schema: a path, or a schema itself, which begins with "{". At most one is not empty; both empty or NULL:
 * *out is zero. vocab: the model's. Errors: of reading the file (wg_read_file) and of wg_constraint_open, with the file's
 * name. */
wg_status wg_constrained_open(wg_constrained *out, const char *grammar, const char *schema, const wg_tokenizer *t, int vocab,
                              wg_error *err);
void wg_constrained_close(wg_constrained *c); /* after the sequences that it constrains. Zero is fine */

/* Whether what a grammar forces is drafted in this engine: unless it drafts nothing, so that plain decoding stays plain. It
 * stands here, for the program and libwager, because the engine knows no drafter by its name. */
static inline bool wg_drafts_forced(const wg_engine *e) { return strcmp(wg_engine_drafter(e)->class->name, "none") != 0; }

#endif
