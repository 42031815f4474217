/* SPDX-License-Identifier: MIT
 * Lookup cache (llama.cpp's lookup decoding, after LLMA, Yang et al. 2023): counts of the tokens that followed the last n_min
 * .. n_max tokens, over prompts and outputs of all sequences, and optionally over a static corpus (a datastore, see `wager
 * datastore build`). The longest key whose best continuation is frequent enough gives the next token; dynamic counts come
 * before static ones; the draft continues from its own tokens. It is better than `ngram` where a short key is ambiguous.
 *
 * A key's entry is one cache line: its hash and up to NEXT continuations with counts. A new continuation replaces the rarest
 * and takes over its count plus one (Space-Saving, Metwally et al. 2005), so counts are never too small and a frequent token is
 * never lost. A key may lie in any of WAYS neighbouring lines; a new one replaces the least recently used. So memory is
 * memory_mb (and corpus_mb) for any load, allocated at open. Tokens are learned at the next draft of their sequence; the only
 * state of a sequence is the number of tokens learned. Law FIXED: a function of the texts; rows of q are one-hot. */
#include "draft/draft.h"

#include <string.h>

#include "core/base/mem.h"
#include "draft/lookup/datastore.h"
#include "draft/one_hot.h"

enum { KEY_MAX = 16, NEXT = 6, WAYS = 4 };

typedef struct cache_options {
    int k, n_min, n_max, hits, memory_mb, corpus_mb;
    double p_min;
    char corpus[WG_OPTION_STRING];
} cache_options;

typedef struct entry {
    uint64_t key; /* 0: free */
    uint32_t total, touched;
    struct {
        int32_t token;
        uint32_t count; /* 0: free */
    } next[NEXT];
} entry;
_Static_assert(sizeof(entry) == 64, "one cache line");

typedef struct table {
    entry *entry; /* (mask + 1) NULL: no table */
    uint64_t mask;
    uint32_t now;
} table;

typedef struct cache_drafter {
    wg_drafter base;
    cache_options opt;
    table dynamic, fixed;
    int *done; /* (max_batch) by slot: learned tokens of the sequence */
} cache_drafter;

static const wg_option options[] = {
    WG_OPTION_INT(cache_options, k, 16, 1, WG_DRAFT_MAX, "most tokens per draft (16: llama.cpp)"),
    WG_OPTION_INT(cache_options, n_min, 1, 1, KEY_MAX, "shortest key"),
    WG_OPTION_INT(cache_options, n_max, 4, 1, KEY_MAX, "longest key"),
    WG_OPTION_INT(cache_options, hits, 2, 1, 1000000, "occurrences after which a key is used"),
    WG_OPTION_INT(cache_options, memory_mb, 32, 1, 65536, "memory for counts (rounded down to a power of two)"),
    WG_OPTION_INT(cache_options, corpus_mb, 64, 1, 65536, "memory for the corpus's counts (likewise)"),
    WG_OPTION_FLOAT(cache_options, p_min, 0.5, 0, 1, "least share of the best continuation among those of its key"),
    WG_OPTION_NAME(cache_options, corpus, WG_NAMES_FILE, "", "a datastore whose n-grams are counted at open; empty: none"),
    WG_OPTION_END,
};

/* ---- counts */

static wg_status table_open(table *t, int mb, const char *option, wg_error *err)
{
    uint64_t entries = WAYS;
    while (entries * 2 * sizeof *t->entry <= (uint64_t)mb << 20) entries *= 2;
    t->mask = entries - 1;
    t->entry = wg_calloc(entries, sizeof *t->entry);
    return t->entry ? WG_OK : wg_nomem(err, entries * sizeof *t->entry, option);
}

/* hash[n] for the keys of the last n = 1 .. most tokens before `end`. */
static void hash_keys(const int32_t *end, int most, uint64_t hash[KEY_MAX + 1])
{
    uint64_t h = 0;
    for (int n = 1; n <= most; n++) {
        h = wg_hash_mix(h + (uint32_t)end[-n] + 1);
        hash[n] = h ? h : 1;
    }
}

static entry *table_find(const table *t, uint64_t key)
{
    for (int i = 0; t->entry && i < WAYS; i++) {
        entry *e = &t->entry[(key + (uint64_t)i) & t->mask];
        if (e->key == key) return e;
    }
    return NULL;
}

static void table_put(table *t, uint64_t key, int32_t token)
{
    entry *e = table_find(t, key);
    if (!e) {
        for (int i = 0; i < WAYS; i++) {
            entry *x = &t->entry[(key + (uint64_t)i) & t->mask];
            if (!e || (e->key && (!x->key || t->now - x->touched > t->now - e->touched))) e = x;
        }
        *e = (entry){ .key = key };
    }
    int at = 0;
    for (int i = 0; i < NEXT; i++) {
        if (e->next[i].count && e->next[i].token == token) {
            at = i;
            break;
        }
        if (e->next[i].count < e->next[at].count) at = i;
    }
    e->next[at].token = token;
    e->next[at].count++;
    e->total++;
    e->touched = t->now++;
}

/* The continuation of a key that is frequent enough, and its share, or -1. */
static int32_t table_best(const table *t, uint64_t key, const cache_options *o, double *share)
{
    const entry *e = table_find(t, key);
    if (!e || e->total < (uint32_t)o->hits) return -1;
    int best = 0;
    for (int i = 1; i < NEXT; i++)
        if (e->next[i].count > e->next[best].count) best = i;
    *share = (double)e->next[best].count / e->total;
    return e->next[best].count >= o->p_min * e->total ? e->next[best].token : -1;
}

/* Counts token[i] after the keys before it, for i = from .. n-1; keys do not reach before token[0]. */
static void count(table *t, const cache_options *o, const int32_t *token, int from, int n)
{
    uint64_t hash[KEY_MAX + 1];
    for (int i = from; i < n; i++) {
        const int most = i < o->n_max ? i : o->n_max;
        hash_keys(token + i, most, hash);
        for (int k = o->n_min; k <= most; k++) table_put(t, hash[k], token[i]);
    }
}

/* ---- the drafter */

/* Counts the corpus's texts window by window, so that no text is copied as a whole. */
static wg_status read_corpus(cache_drafter *d, const wg_env *env, wg_error *err)
{
    wg_datastore *store;
    WG_TRY(wg_datastore_open(&store, d->opt.corpus, "ngram_cache", env, err));
    wg_status s = table_open(&d->fixed, d->opt.corpus_mb, "the corpus's n-grams; lower corpus_mb?", err);
    int32_t window[256];
    int n = 0;
    for (int64_t i = 0; s == WG_OK && i < store->tokens; i++) {
        const int32_t x = wg_datastore_token(store, i);
        if (x < 0) {
            n = 0;
            continue;
        }
        if (n == 256) {
            memmove(window, window + 256 - KEY_MAX, KEY_MAX * sizeof *window);
            n = KEY_MAX;
        }
        window[n++] = x;
        count(&d->fixed, &d->opt, window, n - 1, n);
    }
    wg_datastore_close(store);
    return s;
}

static wg_status open(wg_drafter *base, const wg_env *env, wg_error *err)
{
    cache_drafter *d = (cache_drafter *)base;
    if (d->opt.n_min > d->opt.n_max)
        return wg_fail(err, WG_ECONFIG, "drafter ngram_cache: n_min=%d is longer than n_max=%d; no key could be looked up",
                       d->opt.n_min, d->opt.n_max);
    d->done = wg_calloc((size_t)env->max_batch, sizeof *d->done);
    if (!d->done) return wg_nomem(err, (size_t)env->max_batch * sizeof *d->done, "the drafter ngram_cache");
    WG_TRY(table_open(&d->dynamic, d->opt.memory_mb, "n-grams; lower the drafter's memory_mb?", err));
    return *d->opt.corpus ? read_corpus(d, env, err) : WG_OK;
}

static void close(wg_drafter *base)
{
    cache_drafter *d = (cache_drafter *)base;
    wg_free(d->done);
    wg_free(d->dynamic.entry);
    wg_free(d->fixed.entry);
}

static void forget(wg_drafter *base, const wg_seq *s) { ((cache_drafter *)base)->done[s->slot] = 0; }

/* The continuation of the text of n tokens that ends before `end`; -1: none is frequent enough. */
static int32_t look_up(const cache_drafter *d, const int32_t *end, int n, double *share)
{
    uint64_t hash[KEY_MAX + 1];
    const int most = n < d->opt.n_max ? n : d->opt.n_max;
    hash_keys(end, most, hash);
    for (int k = most; k >= d->opt.n_min; k--) {
        int32_t x = table_best(&d->dynamic, hash[k], &d->opt, share);
        if (x < 0) x = table_best(&d->fixed, hash[k], &d->opt, share);
        if (x >= 0) return x;
    }
    return -1;
}

static void propose_one(cache_drafter *d, const wg_seq *s, wg_tree *t, wg_rows *q)
{
    int32_t text[KEY_MAX + WG_TREE_MAX]; /* the last tokens, then the draft */
    wg_tree_reset(t, s->token[s->n - 1], WG_LAW_FIXED);
    count(&d->dynamic, &d->opt, s->token, d->done[s->slot], s->n);
    d->done[s->slot] = s->n;
    const int depth = wg_one_hot_depth(s, d->opt.k), n = s->n < KEY_MAX ? s->n : KEY_MAX;
    memcpy(text, s->token + s->n - n, (size_t)n * sizeof *text);
    double p = 1; /* probability of the chain so far, estimated by the counts */
    for (int i = 0; i < depth; i++) {
        double share;
        const int32_t x = look_up(d, text + n + i, n + i, &share);
        if (x < 0) break;
        t->score += p *= share;
        text[n + i] = x;
        wg_one_hot_push(t, i, x, q);
        if (wg_env_is_eog(d->base.env, x)) break;
    }
}

WG_PROPOSE_EACH(cache_drafter);

const wg_drafter_class wg_drafter_ngram_cache = {
    .name = "ngram_cache",
    .doc = "lookup cache: the most frequent continuation of the last tokens, in all sequences and in a corpus",
    .size = sizeof(cache_drafter),
    .options = options,
    .options_at = offsetof(cache_drafter, opt),
    .test_options =
        (const wg_drafter_test[]){
            { .options = "memory_mb=1" },
            { .options = "corpus=$store,hits=1,memory_mb=1,corpus_mb=1" },
            { .options = NULL },
        },
    WG_LOOKUP_MEMBERS,
    .forget = forget,
    .cross_request = true,
};
