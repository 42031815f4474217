/* SPDX-License-Identifier: MIT
 * A hashed n-gram table (as in llama.cpp's ngram-mod): the hash of the last n tokens gives the token that last followed them in
 * any sequence. A draft continues from its own tokens while the table has an entry. A drafted token costs one lookup; memory is
 * memory_mb for any load; a newer n-gram overwrites an older one.
 *
 * A slot holds 32 more bits of the key's hash beside the token, so another n-gram in the same slot is recognised and gives no
 * token. Tokens are learned at the next draft of their sequence; the only state of a sequence is the number of tokens learned.
 * Law FIXED: a function of the texts; rows of q are one-hot. */
#include "draft/draft.h"

#include <string.h>

#include "core/base/mem.h"
#include "draft/one_hot.h"

enum { KEY_MAX = 32 };

typedef struct hash_options {
    int k, n, memory_mb;
} hash_options;

typedef struct entry {
    uint32_t tag;
    int32_t token; /* token + 1; 0: free */
} entry;

typedef struct hash_drafter {
    wg_drafter base;
    hash_options opt;
    entry *table;
    uint64_t mask; /* entries - 1; entries are a power of two */
    int *done;     /* (max_batch) by slot: learned tokens of the sequence */
} hash_drafter;

static const wg_option options[] = {
    WG_OPTION_INT(hash_options, k, 8, 1, WG_DRAFT_MAX,
                  "most tokens per draft (8: ours; llama.cpp drafts 48 to 64, after keys of 24)"),
    WG_OPTION_INT(hash_options, n, 4, 1, KEY_MAX, "tokens of a key"),
    WG_OPTION_INT(hash_options, memory_mb, 16, 1, 65536, "memory for the table (rounded down to a power of two)"),
    WG_OPTION_END,
};

static wg_status open(wg_drafter *base, const wg_env *env, wg_error *err)
{
    hash_drafter *d = (hash_drafter *)base;
    uint64_t entries = 1;
    while (entries * 2 * sizeof *d->table <= (uint64_t)d->opt.memory_mb << 20) entries *= 2;
    d->mask = entries - 1;
    d->done = wg_calloc((size_t)env->max_batch, sizeof *d->done);
    d->table = wg_calloc(entries, sizeof *d->table);
    if (!d->done || !d->table) return wg_nomem(err, entries * sizeof *d->table, "n-grams; lower the drafter's memory_mb?");
    return WG_OK;
}

static void close(wg_drafter *base)
{
    hash_drafter *d = (hash_drafter *)base;
    wg_free(d->done);
    wg_free(d->table);
}

static void forget(wg_drafter *base, const wg_seq *s) { ((hash_drafter *)base)->done[s->slot] = 0; }

/* The slot of a key, and its tag. */
static entry *slot_of(const hash_drafter *d, const int32_t *key, uint32_t *tag)
{
    uint64_t h = 0;
    for (int i = 0; i < d->opt.n; i++) h = wg_hash_mix(h + (uint32_t)key[i] + 1);
    *tag = (uint32_t)(h >> 32);
    return &d->table[h & d->mask];
}

static void learn(hash_drafter *d, const wg_seq *s)
{
    int i = d->done[s->slot];
    uint32_t tag;
    if (i < d->opt.n) i = d->opt.n;
    for (; i < s->n; i++) {
        entry *e = slot_of(d, s->token + i - d->opt.n, &tag);
        *e = (entry){ tag, s->token[i] + 1 };
    }
    d->done[s->slot] = s->n;
}

static void propose_one(hash_drafter *d, const wg_seq *s, wg_tree *t, wg_rows *q)
{
    int32_t key[KEY_MAX + WG_TREE_MAX]; /* a window that slides over the last tokens and the draft */
    wg_tree_reset(t, s->token[s->n - 1], WG_LAW_FIXED);
    const int depth = wg_one_hot_depth(s, d->opt.k), n = d->opt.n;
    learn(d, s);
    if (s->n < n) return;
    memcpy(key, s->token + s->n - n, (size_t)n * sizeof *key);
    for (int i = 0; i < depth; i++) {
        uint32_t tag;
        const entry *e = slot_of(d, key + i, &tag);
        if (e->token == 0 || e->tag != tag) break;
        key[n + i] = e->token - 1;
        wg_one_hot_push(t, i, key[n + i], q);
        if (wg_env_is_eog(d->base.env, key[n + i])) break;
    }
}

WG_PROPOSE_EACH(hash_drafter);

const wg_drafter_class wg_drafter_ngram_hash = {
    .name = "ngram_hash",
    .doc = "hashed n-grams of all sequences: one table of constant size, n tokens to the token that followed them last",
    .size = sizeof(hash_drafter),
    .options = options,
    .options_at = offsetof(hash_drafter, opt),
    .test_options =
        (const wg_drafter_test[]){
            { .options = "n=2,memory_mb=1" },
            { .options = "n=1,k=5,memory_mb=1" },
            { .options = NULL },
        },
    WG_LOOKUP_MEMBERS,
    .forget = forget,
    .cross_request = true,
};
