/* SPDX-License-Identifier: MIT
 * Attention on a pool (attend.h). The room has the scores of one span of chunks; more rows or heads make the spans shorter. */
#include "core/model/cpu/attend.h"

enum {
    SLOTS = 512,    /* most slots of a call, where one row has no more */
    SCORES = 4096,  /* chunks of scores, 64 each, that the room holds: 1 MB, near the size of a core's cache */
    ROWS_MOST = 64, /* of a call */
};

int wg_attend_rows(int heads)
{
    const int rows = SLOTS / heads;
    return rows < 1 ? 1 : rows < ROWS_MOST ? rows : ROWS_MOST;
}

static size_t at_least(int n, int heads) { return (size_t)(n > heads ? n : heads); }

size_t wg_attend_floats(int heads) { return at_least(SCORES, heads) * (WG_CHUNK_KEYS + 1) + 2 * at_least(SLOTS, heads); }

typedef struct job {
    const wg_ops *ops;
    const wg_attention *a;
} job;

static void scores_part(void *arg, int lo, int hi)
{
    const job *j = arg;
    j->ops->attention_scores(j->a, lo, hi);
}

static void weights_part(void *arg, int lo, int hi)
{
    const job *j = arg;
    j->ops->attention_weights(j->a, lo, hi);
}

static void values_part(void *arg, int lo, int hi)
{
    const job *j = arg;
    j->ops->attention_values(j->a, lo, hi);
}

/* All slots of a kv head together, as far as that leaves two grains for every thread. */
static int grain_of(int items, int together, int threads)
{
    const int even = items / (2 * threads);
    return even < 1 ? 1 : even < together ? even : together;
}

void wg_attend(const wg_ops *ops, wg_pool *pool, wg_attention *a, float *room)
{
    const int slots = wg_attention_slots(a), shared = wg_attention_shared(a), threads = pool ? wg_pool_threads(pool) : 1;
    const int heads = a->of->heads, span = (int)at_least(SCORES, heads) / slots;
    job j = { ops, a };
    a->score = (float(*)[WG_CHUNK_KEYS])room;
    a->c = room + at_least(SCORES, heads) * WG_CHUNK_KEYS;
    a->m = a->c + at_least(SCORES, heads);
    a->l = a->m + at_least(SLOTS, heads);
    a->all = 0;
    for (int r = 0; r < a->rows; r++) {
        const int chunks = wg_key_chunks(wg_keys_seen(&a->keys[r]));
        if (chunks > a->all) a->all = chunks;
    }
    for (a->first = 0; a->first < a->all; a->first += a->chunks) {
        a->chunks = a->all - a->first < span ? a->all - a->first : span;
        const int score = wg_score_items(a), value = wg_value_items(a);
        wg_pool_each(pool, score, grain_of(score, shared, threads), scores_part, &j);
        wg_pool_each(pool, slots, grain_of(slots, 8, threads), weights_part, &j);
        wg_pool_each(pool, value, grain_of(value, shared, threads), values_part, &j);
    }
}
