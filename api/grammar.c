/* SPDX-License-Identifier: MIT
 * Grammars of requests. A text is compiled once: requests that have the same one share it, and the last used ones are kept for
 * the next. The trie of the vocabulary is made once for a scheduler, by the first grammar. */
#include "api/scheduler_impl.h"

#include <string.h>

#include "core/base/hash.h"
#include "core/base/mem.h"

enum { KEPT = 64 << 20 }; /* bytes of grammars that nobody uses */

static wg_status take_trie(wg_scheduler *s, wg_error *err)
{
    const wg_tokenizer *t = s->session->target->tokenizer;
    wg_status status = WG_OK;
    pthread_mutex_lock(&s->grammar_lock);
    if (!s->trie) status = wg_token_trie_of(&s->trie, t, wg_engine_target(s->session->engine)->vocab, err);
    pthread_mutex_unlock(&s->grammar_lock);
    return status;
}

static void release(wg_grammar *g)
{
    if (!g) return;
    wg_constraint_close(&g->of);
    wg_free(g->text);
    wg_free(g);
}

/* Releases a list. */
static void release_all(wg_grammar *g)
{
    for (wg_grammar *next; g; g = next) {
        next = g->next;
        release(g);
    }
}

void wg_scheduler_free_grammars(wg_scheduler *s)
{
    release_all(s->grammars);
    wg_token_trie_close(s->trie);
}

static bool is_same(const wg_grammar *a, const wg_grammar *b)
{
    return a->kind == b->kind && a->hash == b->hash && a->bytes == b->bytes && !memcmp(a->text, b->text, a->bytes);
}

/* Takes the grammar of the same text out of the list. NULL: there is none. Under the lock. */
static wg_grammar *take(wg_scheduler *s, const wg_grammar *like)
{
    wg_grammar **at = &s->grammars;
    while (*at && !is_same(*at, like)) at = &(*at)->next;
    wg_grammar *g = *at;
    if (g) *at = g->next;
    return g;
}

static void put_first(wg_scheduler *s, wg_grammar *g)
{
    g->next = s->grammars;
    s->grammars = g;
}

/* Puts a user's grammar first: the one that is there, or `made` (NULL: none). Returns it; NULL: there is none. */
static wg_grammar *share(wg_scheduler *s, const wg_grammar *like, wg_grammar *made)
{
    pthread_mutex_lock(&s->grammar_lock);
    wg_grammar *g = take(s, like);
    if (!g) g = made;
    if (g) {
        g->users++;
        put_first(s, g);
    }
    pthread_mutex_unlock(&s->grammar_lock);
    return g;
}

static wg_status compile(wg_grammar **out, const wg_grammar *like, wg_error *err)
{
    static const wg_constraint_kind kinds[] = { [WG_GRAMMAR_GBNF] = WG_CONSTRAINT_GBNF,
                                                [WG_GRAMMAR_SCHEMA] = WG_CONSTRAINT_SCHEMA,
                                                [WG_GRAMMAR_JSON] = WG_CONSTRAINT_JSON };
    static const char *const names[] = { "grammar", "schema", "json" };
    wg_grammar *g = wg_calloc(1, sizeof *g);
    char *text = wg_alloc(like->bytes + 1, 1);
    if (!g || !text) {
        wg_free(g);
        wg_free(text);
        return wg_nomem(err, sizeof *g + like->bytes, "a grammar");
    }
    *g = *like;
    memcpy(text, like->text, like->bytes);
    g->text = text;
    wg_status status = wg_constraint_open(&g->of, kinds[g->kind], names[g->kind], text, g->bytes, g->scheduler->trie, err);
    if (status) {
        release(g);
        return status;
    }
    wg_acceptor_rest(g->of.acceptor); /* until a request that has it runs */
    *out = g;
    return WG_OK;
}

wg_status wg_grammar_open(wg_grammar **out, wg_scheduler *s, wg_grammar_kind kind, const char *text, size_t bytes,
                          wg_error *err)
{
    if (!out || !s) return wg_missing("wg_grammar_open", out ? "the scheduler" : "out", err);
    if ((int)kind < 0 || kind > WG_GRAMMAR_JSON)
        return wg_fail(err, WG_EINVAL, "wg_grammar_open: kind %d; expected 0..%d", (int)kind, (int)WG_GRAMMAR_JSON);
    if (!text && kind != WG_GRAMMAR_JSON) return wg_missing("wg_grammar_open", "text", err);
    WG_TRY(take_trie(s, err));
    if (!text) text = "", bytes = 0;
    const wg_grammar like = {
        .scheduler = s, .kind = kind, .text = (char *)text, .bytes = bytes, .hash = wg_hash64(WG_HASH_START, text, bytes)
    };
    wg_grammar *made = NULL, *g = share(s, &like, NULL);
    if (!g) {
        WG_TRY(compile(&made, &like, err)); /* without the lock: it may take long */
        g = share(s, &like, made);
        if (g != made) release(made); /* another thread has been faster */
    }
    *out = g;
    return WG_OK;
}

static size_t size_of(const wg_grammar *g)
{
    return sizeof *g + g->bytes + (size_t)g->of.bnf->n * sizeof *g->of.bnf->node + wg_acceptor_size(g->of.acceptor);
}

/* Takes those that nobody uses, behind the last used ones that KEPT has room for, out of the list. Under the lock. */
static wg_grammar *take_old(wg_scheduler *s)
{
    wg_grammar *old = NULL, *g;
    size_t kept = 0;
    for (wg_grammar **at = &s->grammars; (g = *at);) {
        if (g->users == 0) kept += size_of(g);
        if (g->users == 0 && kept > KEPT) {
            *at = g->next;
            g->next = old;
            old = g;
        } else at = &g->next;
    }
    return old;
}

void wg_grammar_close(wg_grammar *g)
{
    if (!g) return;
    wg_scheduler *s = g->scheduler;
    pthread_mutex_lock(&s->grammar_lock);
    wg_grammar *old = --g->users == 0 ? take_old(s) : NULL;
    pthread_mutex_unlock(&s->grammar_lock);
    release_all(old);
}
