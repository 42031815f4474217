/* SPDX-License-Identifier: MIT
 * Texts that have ended, for requests that begin in the same way: tokens, and a cache sequence that holds them in every space
 * that had them, the target's and the drafter's. So a hit finds the state of a draft model too, and the draft is that after a
 * prefill (law_sched). A text stays until its pages are needed; the one used least recently goes first. */
#ifndef WG_CORE_SCHED_PREFIX_CACHE_H
#define WG_CORE_SCHED_PREFIX_CACHE_H

#include "core/kv/kv.h"

typedef struct wg_cached_text {
    int32_t *token; /* (n) owned */
    int n;          /* what may be shared of the cache sequence (wg_seq_shareable) */
    wg_kv_seq *kv;  /* owned; IDLE */
    uint64_t used;
} wg_cached_text;

typedef struct wg_prefix_cache {
    wg_cached_text *text; /* (cap) owned */
    wg_kv_seq **seq;      /* (cap) owned; scratch of wg_prefix_cache_pages */
    int n, cap;
    uint64_t clock; /* one more at each use */
    int64_t evictions;
} wg_prefix_cache;

wg_status wg_prefix_cache_open(wg_prefix_cache *c, int cap, wg_error *err);
void wg_prefix_cache_close(wg_prefix_cache *c); /* before the cache of its sequences. Zeroed is fine */

/* Takes over kv, whose first n slots hold token[0 .. n-1]. Texts that are its beginning go, since it has their pages; it goes
 * itself where another text begins with it, or where memory for it is lacking. */
void wg_prefix_cache_put(wg_prefix_cache *c, const int32_t *token, int n, wg_kv_seq *kv);

/* The text that shares most of its first tokens with token[0 .. n-1]: *shared so many; NULL: none shares any. */
wg_cached_text *wg_prefix_cache_find(wg_prefix_cache *c, const int32_t *token, int n, int *shared);
void wg_prefix_cache_use(wg_prefix_cache *c, wg_cached_text *t);

bool wg_prefix_cache_evict(wg_prefix_cache *c); /* the text used least recently. False: it is empty */

int wg_prefix_cache_pages(const wg_prefix_cache *c); /* pages that cached texts alone hold; those that several share once */

int wg_shared_prefix(const int32_t *a, int n, const int32_t *b, int m);

#endif
