/* SPDX-License-Identifier: MIT
 * The prefix cache: texts that have ended, kept for requests that begin with the same tokens. An entry has the tokens and a
 * cache sequence that holds them in the spaces of the target and of the drafter, so a hit also restores the state of a draft
 * model, and drafts are those after a prefill (law_sched). An entry is evicted when its pages are needed, the least recently
 * used first. */
#ifndef WG_CORE_SCHED_PREFIX_CACHE_H
#define WG_CORE_SCHED_PREFIX_CACHE_H

#include "core/kv/kv.h"

typedef struct wg_cached_text {
    int32_t *token; /* (n) owned */
    int n;          /* slots of the cache sequence that may be shared (wg_seq_shareable) */
    wg_kv_seq *kv;  /* owned; IDLE */
    uint64_t used;
} wg_cached_text;

typedef struct wg_prefix_cache {
    wg_cached_text *text; /* (cap) owned */
    wg_kv_seq **seq;      /* (cap) owned; scratch of wg_prefix_cache_pages */
    int n, cap;
    uint64_t clock; /* counts uses */
    int64_t evictions;
} wg_prefix_cache;

wg_status wg_prefix_cache_open(wg_prefix_cache *c, int cap, wg_error *err);
void wg_prefix_cache_close(wg_prefix_cache *c); /* call it before the KV cache is closed; a zeroed one is allowed */

/* Takes ownership of kv, whose first n slots hold token[0 .. n-1]. Entries that are a prefix of it are dropped, since it shares
 * their pages. It is dropped itself when it is a prefix of another entry, or when memory is short. */
void wg_prefix_cache_put(wg_prefix_cache *c, const int32_t *token, int n, wg_kv_seq *kv);

/* The entry with the longest common prefix with token[0 .. n-1]; *shared: the length of that prefix, in tokens. NULL: no entry
 * shares any. */
wg_cached_text *wg_prefix_cache_find(wg_prefix_cache *c, const int32_t *token, int n, int *shared);
void wg_prefix_cache_use(wg_prefix_cache *c, wg_cached_text *t);

bool wg_prefix_cache_evict(wg_prefix_cache *c); /* the least recently used entry. False: the cache is empty */

int wg_prefix_cache_pages(const wg_prefix_cache *c); /* pages that only cached texts hold; a shared page counts once */

int wg_shared_prefix(const int32_t *a, int n, const int32_t *b, int m);

#endif
