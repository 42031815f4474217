/* SPDX-License-Identifier: MIT
 * The prefix cache (prefix_cache.h). A few hundred texts are compared one by one: the first token that differs ends a
 * comparison. */
#include "core/sched/prefix_cache.h"

#include <string.h>

#include "core/base/mem.h"

wg_status wg_prefix_cache_open(wg_prefix_cache *c, int cap, wg_error *err)
{
    *c = (wg_prefix_cache){ .cap = cap };
    c->text = wg_calloc((size_t)cap, sizeof *c->text);
    c->seq = wg_calloc((size_t)cap, sizeof *c->seq);
    if (c->text && c->seq) return WG_OK;
    wg_prefix_cache_close(c);
    return wg_nomem(err, (size_t)cap * (sizeof *c->text + sizeof *c->seq), "a prefix cache");
}

static void drop(wg_prefix_cache *c, wg_cached_text *t)
{
    wg_kv_seq_close(t->kv);
    wg_free(t->token);
    *t = c->text[--c->n];
}

void wg_prefix_cache_close(wg_prefix_cache *c)
{
    while (c->n > 0) drop(c, &c->text[c->n - 1]);
    wg_free(c->text);
    wg_free(c->seq);
    *c = (wg_prefix_cache){ 0 };
}

int wg_shared_prefix(const int32_t *a, int n, const int32_t *b, int m)
{
    int i = 0;
    while (i < n && i < m && a[i] == b[i]) i++;
    return i;
}

bool wg_prefix_cache_evict(wg_prefix_cache *c)
{
    wg_cached_text *oldest = NULL;
    for (int i = 0; i < c->n; i++)
        if (!oldest || c->text[i].used < oldest->used) oldest = &c->text[i];
    if (!oldest) return false;
    drop(c, oldest);
    c->evictions++;
    return true;
}

void wg_prefix_cache_put(wg_prefix_cache *c, const int32_t *token, int n, wg_kv_seq *kv)
{
    for (int i = c->n - 1; i >= 0; i--) {
        const int shared = wg_shared_prefix(c->text[i].token, c->text[i].n, token, n);
        if (shared == n) n = 0; /* that entry has all of it */
        else if (shared == c->text[i].n) drop(c, &c->text[i]);
        if (n == 0) break;
    }
    if (n < wg_kv_len(kv)) wg_kv_truncate(kv, n); /* slots that cannot be shared are dropped */
    if (n > wg_kv_len(kv)) n = wg_kv_len(kv);     /* pages behind a window may have been freed */
    int32_t *copy = n > 0 ? wg_alloc((size_t)n, sizeof *copy) : NULL;
    if (!copy) {
        wg_kv_seq_close(kv);
        return;
    }
    if (c->n == c->cap) wg_prefix_cache_evict(c);
    memcpy(copy, token, (size_t)n * sizeof *copy);
    c->text[c->n++] = (wg_cached_text){ copy, n, kv, ++c->clock };
}

wg_cached_text *wg_prefix_cache_find(wg_prefix_cache *c, const int32_t *token, int n, int *shared)
{
    wg_cached_text *best = NULL;
    *shared = 0;
    for (int i = 0; i < c->n; i++) {
        const int k = wg_shared_prefix(c->text[i].token, c->text[i].n, token, n);
        if (k > *shared) *shared = k, best = &c->text[i];
    }
    return best;
}

void wg_prefix_cache_use(wg_prefix_cache *c, wg_cached_text *t) { t->used = ++c->clock; }

int wg_prefix_cache_pages(const wg_prefix_cache *c)
{
    for (int i = 0; i < c->n; i++) c->seq[i] = c->text[i].kv;
    return wg_kv_pages_alone(c->seq, c->n);
}
