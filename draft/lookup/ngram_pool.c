/* SPDX-License-Identifier: MIT
 * The n-gram pool: sets of ways, as in a processor's cache. See ngram_pool.h. */
#include "draft/lookup/ngram_pool.h"

#include <string.h>

#include "core/base/mem.h"
#include "draft/one_hot.h"

bool wg_ngram_pool_open(wg_ngram_pool *p, int keys, int each, int n)
{
    *p = (wg_ngram_pool){ .sets = 1, .each = each, .n = n };
    while (p->sets < (keys + WG_POOL_WAYS - 1) / WG_POOL_WAYS) p->sets *= 2;
    const size_t places = (size_t)p->sets * WG_POOL_WAYS;
    p->key = wg_calloc(places, sizeof *p->key);
    p->token = wg_calloc(places, (size_t)each * (size_t)n * sizeof *p->token);
    if (p->key && p->token) return true;
    wg_ngram_pool_close(p);
    return false;
}

void wg_ngram_pool_close(wg_ngram_pool *p)
{
    wg_free(p->key);
    wg_free(p->token);
    *p = (wg_ngram_pool){ 0 };
}

/* The index of a key; -1: it is absent, and *oldest is the free or least recently used index of its set. */
static int find(const wg_ngram_pool *p, int32_t first, int *oldest)
{
    const int set = (int)(wg_hash_mix((uint64_t)(uint32_t)first) & (uint64_t)(p->sets - 1)) * WG_POOL_WAYS;
    *oldest = set;
    for (int i = set; i < set + WG_POOL_WAYS; i++) {
        if (p->key[i].have && p->key[i].token == first) return i;
        if (p->key[i].used < p->key[*oldest].used) *oldest = i;
    }
    return -1;
}

static int32_t *continuations(const wg_ngram_pool *p, int place) { return p->token + (size_t)place * (size_t)(p->each * p->n); }

void wg_ngram_pool_put(wg_ngram_pool *p, int32_t first, const int32_t *rest)
{
    int oldest, place = find(p, first, &oldest), old = 0;
    const size_t bytes = (size_t)p->n * sizeof *p->token;
    if (place < 0) p->key[place = oldest] = (wg_pool_key){ .token = first };
    wg_pool_key *k = &p->key[place];
    int32_t *list = continuations(p, place);
    while (old < k->have && memcmp(list + old * p->n, rest, bytes) != 0) old++;
    if (old == k->have) { /* not among the stored ones */
        if (k->have < p->each) k->have++;
        else old--;
    }
    memmove(list + p->n, list, (size_t)old * bytes);
    memcpy(list, rest, bytes);
    k->used = ++p->clock;
}

const int32_t *wg_ngram_pool_get(wg_ngram_pool *p, int32_t first, int *have)
{
    int oldest;
    const int place = find(p, first, &oldest);
    *have = 0;
    if (place < 0) return NULL;
    p->key[place].used = ++p->clock;
    *have = p->key[place].have;
    return continuations(p, place);
}
