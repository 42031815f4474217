/* SPDX-License-Identifier: MIT
 * Constraints of texts (constrained.h). */
#include "core/setup/constrained.h"

#include "core/base/mem.h"
#include "core/base/read_file.h"

static wg_status open_file(wg_constrained *c, wg_constraint_kind kind, const char *path, wg_error *err)
{
    char *text;
    size_t n;
    WG_TRY(wg_read_file(path, WG_BNF_TEXT, &text, &n, err));
    const wg_status s = wg_constraint_open(&c->of, kind, path, text, n, c->trie, err);
    wg_free(text);
    return s;
}

wg_status wg_constrained_open(wg_constrained *out, const char *grammar, const char *schema, const wg_tokenizer *t, int vocab,
                              wg_error *err)
{
    const bool bnf = grammar && *grammar;
    *out = (wg_constrained){ 0 };
    if (!bnf && !(schema && *schema)) return WG_OK;
    wg_status s = wg_token_trie_of(&out->trie, t, vocab, err);
    if (!s && bnf) s = open_file(out, WG_CONSTRAINT_GBNF, grammar, err);
    else if (!s && *schema != '{') s = open_file(out, WG_CONSTRAINT_SCHEMA, schema, err);
    else if (!s) s = wg_constraint_open(&out->of, WG_CONSTRAINT_SCHEMA, "schema", schema, strlen(schema), out->trie, err);
    if (s) wg_constrained_close(out);
    return s;
}

void wg_constrained_close(wg_constrained *c)
{
    wg_constraint_close(&c->of);
    wg_token_trie_close(c->trie);
    *c = (wg_constrained){ 0 };
}
