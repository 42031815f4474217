/* SPDX-License-Identifier: MIT
 * A constraint of texts, ready for one vocabulary: a grammar in GBNF, or that of a JSON schema, with its acceptor. */
#ifndef WG_CORE_TEXT_GRAMMAR_CONSTRAINT_H
#define WG_CORE_TEXT_GRAMMAR_CONSTRAINT_H

#include "core/text/grammar/acceptor.h"

typedef enum wg_constraint_kind {
    WG_CONSTRAINT_GBNF,
    WG_CONSTRAINT_SCHEMA, /* a JSON schema */
    WG_CONSTRAINT_JSON    /* any JSON object; without a text */
} wg_constraint_kind;

typedef struct wg_constraint {
    wg_bnf *bnf;
    wg_acceptor *acceptor; /* for one thread at a time */
} wg_constraint;

/* `name` stands for the text in messages; the trie is borrowed. Errors: those of bnf.h and json_schema.h; EFORMAT: the
 * schema is no JSON; EINVAL: no token begins a text of it. On failure *out is zero. */
wg_status wg_constraint_open(wg_constraint *out, wg_constraint_kind kind, const char *name, const char *text, size_t n,
                             const wg_token_trie *trie, wg_error *err);
void wg_constraint_close(wg_constraint *c); /* zero is fine */

#endif
