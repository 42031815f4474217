/* SPDX-License-Identifier: MIT
 * The acceptor of a grammar: the bytes, and the tokens of a vocabulary, that may follow a text.
 *
 * A state is a set of places of the network, each with the calls that are open there (a stack). Stacks share their tails and
 * equal ones are one number; equal states are one number too; the states after a byte are remembered. So the network is made
 * deterministic lazily, only where it is used. The tokens that may follow a state are found by one walk over the trie of the
 * vocabulary, and remembered.
 *
 * Bounds. Memory is that of fixed tables in a mapping of their own, touched as they fill, whatever the grammar. Tables that are
 * half full are cleared between texts (tidy), and a text's state is found again from its bytes. A text with more than
 * WG_ACCEPTOR_DEPTH open calls, or a state of more than WG_ACCEPTOR_PLACES places, does not continue. WG_ACCEPTOR_WORK bounds
 * the cost of a single query. An acceptor is used by one thread at a time. */
#ifndef WG_CORE_TEXT_GRAMMAR_ACCEPTOR_H
#define WG_CORE_TEXT_GRAMMAR_ACCEPTOR_H

#include "core/text/grammar/bnf.h"
#include "core/text/grammar/token_trie.h"

enum {
    WG_ACCEPTOR_DEPTH = 512,
    WG_ACCEPTOR_PLACES = 2048,
    WG_ACCEPTOR_WORK = 50000000, /* visited places per query */
};

/* Answers other than a state, which is 0 or more. */
enum {
    WG_ACCEPTOR_DEAD = -1, /* the grammar has no text with this beginning */
    WG_ACCEPTOR_FULL = -2  /* a bound is exceeded: the grammar is too ambiguous */
};

typedef struct wg_acceptor wg_acceptor;

/* Both are borrowed. ENOMEM. EINVAL: the grammar's first state has too many places. */
wg_status wg_acceptor_open(wg_acceptor **out, const wg_bnf *grammar, const wg_token_trie *trie, wg_error *err);
void wg_acceptor_close(wg_acceptor *m); /* NULL is fine */

int32_t wg_acceptor_start(const wg_acceptor *m);
/* The state after n more bytes; after a token, which is dead if it stands for no text. */
int32_t wg_acceptor_bytes(wg_acceptor *m, int32_t state, const char *bytes, size_t n);
int32_t wg_acceptor_token(wg_acceptor *m, int32_t state, int32_t token);
bool wg_acceptor_accepts(const wg_acceptor *m, int32_t state); /* the text may end here */
/* The tokens that may follow, as bits (wg_token_in of core/dist/sampler.h), valid until the next call; *n: how many. NULL:
 * FULL. */
const uint64_t *wg_acceptor_allowed(wg_acceptor *m, int32_t state, int *n);
/* Writes the forced bytes, at most `size`: those that follow as long as only one byte may follow and the text may not end. */
size_t wg_acceptor_forced(wg_acceptor *m, int32_t state, char *out, size_t size);

/* rest frees the tables; ready must make them again before the next query (on ENOMEM nothing has changed). So a waiting grammar
 * takes only the memory of its network. */
void wg_acceptor_rest(wg_acceptor *m);
wg_status wg_acceptor_ready(wg_acceptor *m, wg_error *err);
size_t wg_acceptor_size(const wg_acceptor *m); /* bytes of the tables that have been touched, about */

/* Clears the tables if they are half full; then all states but the start are void, and wg_acceptor_age changes. */
void wg_acceptor_tidy(wg_acceptor *m);
uint32_t wg_acceptor_age(const wg_acceptor *m);
const wg_token_trie *wg_acceptor_trie(const wg_acceptor *m);

#endif
