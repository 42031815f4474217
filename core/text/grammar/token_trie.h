/* SPDX-License-Identifier: MIT
 * The tokens of a vocabulary as a trie of their bytes, in preorder: a walk that leaves a prefix leaves all tokens with it. */
#ifndef WG_CORE_TEXT_GRAMMAR_TOKEN_TRIE_H
#define WG_CORE_TEXT_GRAMMAR_TOKEN_TRIE_H

#include "core/text/tokenizer.h"

enum { WG_TRIE_DEPTH = 256 }; /* longer tokens are left out */

typedef struct wg_trie_node {
    uint8_t byte;
    uint8_t depth; /* 0: first bytes */
    int32_t end;   /* the node after its subtree */
    int32_t first; /* of token[]: its tokens are those up to the next node's first */
} wg_trie_node;

typedef struct wg_token_trie {
    int vocab, n;
    wg_trie_node *node; /* (n + 1) */
    int32_t *token;     /* ids, in the order of the nodes */
    uint32_t *at;       /* (vocab + 1): token id is bytes[at[id]] .. */
    char *bytes;
} wg_token_trie;

/* text[id], id < vocab: the bytes of each token; n == 0: it stands for no text (control tokens). ENOMEM. */
wg_status wg_token_trie_open(wg_token_trie **out, const wg_text *text, int vocab, wg_error *err);
/* Of a tokenizer's tokens as they continue a text; `vocab` (the model's) may be larger: padding is no text. */
wg_status wg_token_trie_of(wg_token_trie **out, const wg_tokenizer *t, int vocab, wg_error *err);
void wg_token_trie_close(wg_token_trie *t); /* NULL is fine */

/* The longest token that the n bytes begin with; of equal ones the lowest id; -1: none. */
int32_t wg_token_longest(const wg_token_trie *t, const char *bytes, size_t n);

static inline wg_text wg_token_bytes(const wg_token_trie *t, int32_t id)
{
    return (wg_text){ t->bytes + t->at[id], t->at[id + 1] - t->at[id] };
}

#endif
