/* SPDX-License-Identifier: MIT
 * A bounded store of n-grams by their first token (the key), with the most recent continuations of each key. A new key evicts
 * the least recently used one among the WG_POOL_WAYS of its set, so the cost of an operation does not depend on the number of
 * entries. */
#ifndef WG_DRAFT_LOOKUP_NGRAM_POOL_H
#define WG_DRAFT_LOOKUP_NGRAM_POOL_H

#include <stdbool.h>
#include <stdint.h>

enum { WG_POOL_WAYS = 8 };

typedef struct wg_pool_key {
    int32_t token, have;
    uint64_t used;
} wg_pool_key; /* have: continuations, 0: the place is free; used: clock of the last use */

typedef struct wg_ngram_pool {
    int sets, each, n; /* sets, a power of two; most continuations of a key; tokens of a continuation */
    uint64_t clock;
    wg_pool_key *key; /* (sets, WG_POOL_WAYS) */
    int32_t *token;   /* (sets, WG_POOL_WAYS, each, n) most recent continuation first */
} wg_ngram_pool;

/* Allocates room for at least `keys` keys. False: out of memory; the pool is closed. */
bool wg_ngram_pool_open(wg_ngram_pool *p, int keys, int each, int n);
void wg_ngram_pool_close(wg_ngram_pool *p); /* a zeroed one is fine */

/* Adds the n tokens of `rest` as the most recent continuation of `first`, and drops the oldest when there are too many. */
void wg_ngram_pool_put(wg_ngram_pool *p, int32_t first, const int32_t *rest);

/* The continuations of a token, (*have, n); borrowed until the next put. *have 0: there are none. */
const int32_t *wg_ngram_pool_get(wg_ngram_pool *p, int32_t first, int *have);

#endif
