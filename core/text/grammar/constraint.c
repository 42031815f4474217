/* SPDX-License-Identifier: MIT
 * Constraints (constraint.h). */
#include "core/text/grammar/constraint.h"

#include <string.h>

#include "core/base/json.h"
#include "core/base/mem.h"
#include "core/text/grammar/json_schema.h"

static wg_status open_schema(wg_bnf **out, const char *name, const json_t *schema, wg_error *err)
{
    char *text;
    size_t n;
    WG_TRY(wg_schema_grammar(name, schema, &text, &n, err));
    const wg_status status = wg_bnf_open(out, name, text, n, err);
    wg_free(text);
    return status;
}

static wg_status open_bnf(wg_bnf **out, wg_constraint_kind kind, const char *name, const char *text, size_t n, wg_error *err)
{
    wg_json *doc;
    if (kind == WG_CONSTRAINT_GBNF) return wg_bnf_open(out, name, text, n, err);
    if (kind == WG_CONSTRAINT_JSON) return open_schema(out, name, NULL, err);
    /* schemas, though no documents */
    if (n == 4 && !memcmp(text, "true", 4)) return open_schema(out, name, json_true(), err);
    if (n == 5 && !memcmp(text, "false", 5)) return open_schema(out, name, json_false(), err);
    WG_TRY(wg_json_parse_foreign(&doc, name, text, n, err));
    const wg_status status = open_schema(out, name, wg_json_root(doc), err);
    wg_json_close(doc);
    return status;
}

/* Refuses a grammar of which the vocabulary has no text, nor the beginning of one. */
static wg_status check_start(const wg_constraint *c, const char *name, wg_error *err)
{
    int n;
    const int32_t start = wg_acceptor_start(c->acceptor);
    if (!wg_acceptor_allowed(c->acceptor, start, &n) || n > 0 || wg_acceptor_accepts(c->acceptor, start)) return WG_OK;
    return wg_fail(err, WG_EINVAL,
                   "%s: no token of the model begins a text of this grammar; its characters are not in the "
                   "vocabulary",
                   name);
}

wg_status wg_constraint_open(wg_constraint *out, wg_constraint_kind kind, const char *name, const char *text, size_t n,
                             const wg_token_trie *trie, wg_error *err)
{
    *out = (wg_constraint){ 0 };
    WG_TRY(open_bnf(&out->bnf, kind, name, text, n, err));
    wg_status status = wg_acceptor_open(&out->acceptor, out->bnf, trie, err);
    if (!status) status = check_start(out, name, err);
    if (status) wg_constraint_close(out);
    return status;
}

void wg_constraint_close(wg_constraint *c)
{
    wg_acceptor_close(c->acceptor);
    wg_bnf_close(c->bnf);
    *c = (wg_constraint){ 0 };
}
