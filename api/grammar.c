/* SPDX-License-Identifier: MIT
 * Grammars of requests. The trie of the vocabulary is made once for a scheduler, by the first grammar. */
#include "api/scheduler_impl.h"

#include "core/base/mem.h"

static wg_status take_trie(wg_scheduler *s, wg_error *err)
{
    const wg_tokenizer *t = s->session->target->tokenizer;
    wg_status status = WG_OK;
    pthread_mutex_lock(&s->trie_lock);
    if (!s->trie) status = wg_token_trie_of(&s->trie, t, wg_engine_target(s->session->engine)->vocab, err);
    pthread_mutex_unlock(&s->trie_lock);
    return status;
}

wg_status wg_grammar_open(wg_grammar **out, wg_scheduler *s, wg_grammar_kind kind, const char *text, size_t bytes,
                          wg_error *err)
{
    static const wg_constraint_kind kinds[] = { [WG_GRAMMAR_GBNF] = WG_CONSTRAINT_GBNF,
                                                [WG_GRAMMAR_SCHEMA] = WG_CONSTRAINT_SCHEMA,
                                                [WG_GRAMMAR_JSON] = WG_CONSTRAINT_JSON };
    static const char *const names[] = { "grammar", "schema", "json" };
    if (!out || !s) return wg_missing("wg_grammar_open", out ? "the scheduler" : "out", err);
    if ((int)kind < 0 || kind > WG_GRAMMAR_JSON)
        return wg_fail(err, WG_EINVAL, "wg_grammar_open: kind %d; expected 0..%d", (int)kind, (int)WG_GRAMMAR_JSON);
    if (!text && kind != WG_GRAMMAR_JSON) return wg_missing("wg_grammar_open", "text", err);
    WG_TRY(take_trie(s, err));
    wg_grammar *g = wg_calloc(1, sizeof *g);
    if (!g) return wg_nomem(err, sizeof *g, "a grammar");
    const wg_status status = wg_constraint_open(&g->of, kinds[kind], names[kind], text, bytes, s->trie, err);
    if (status) wg_free(g);
    else *out = g;
    return status;
}

void wg_grammar_close(wg_grammar *g)
{
    if (!g) return;
    wg_constraint_close(&g->of);
    wg_free(g);
}
