/* SPDX-License-Identifier: MIT
 * A datastore: texts as tokens of one tokenizer, with a suffix array, in a memory-mapped file. The drafters `retrieval`,
 * `sam` and `ngram_cache` use it; `wager datastore build` writes it.
 *
 * File (little-endian): a header of 128 bytes, `tokens` int32 (ids; -1 between texts), `suffixes` uint32 (the positions of
 * all ids, sorted by the tokens that follow; -1 and the end sort first). Header: "WAGERDS\n", u32 version, u32 vocabulary,
 * u64 tokens, u64 suffixes, 64 hex digits of the tokenizer's digest, 24 zero bytes, u64 FNV-1a of the 120 bytes before.
 * Every length is checked at open; ids and positions are checked where they are used, so a damaged file can only produce
 * poor drafts. */
#ifndef WG_DRAFT_LOOKUP_DATASTORE_H
#define WG_DRAFT_LOOKUP_DATASTORE_H

#include "core/base/hash.h"
#include "core/engine/drafter.h"

typedef struct wg_datastore {
    int64_t tokens, suffixes;
    int vocab;
    const int32_t *token;   /* (tokens) */
    const uint32_t *suffix; /* (suffixes) */
    char digest[WG_SHA256_HEX];
    void *map; /* the mapping; NULL: the bytes are the caller's */
    size_t map_bytes;
} wg_datastore;

/* Maps a file for a drafter. Errors: ENOENT, EIO, EFORMAT (which part is wrong), EVOCAB (it was built for another tokenizer
 * than env's), EMODEL (env has none). */
wg_status wg_datastore_open(wg_datastore **out, const char *path, const char *drafter, const wg_env *env, wg_error *err);
void wg_datastore_close(wg_datastore *d); /* NULL is fine */

/* The same over n bytes in memory (aligned to 8, borrowed), for any tokenizer. *out is not closed. */
wg_status wg_datastore_view(wg_datastore *out, const char *name, const void *bytes, size_t n, wg_error *err);

/* Writes a datastore of n places (ids, or -1 between texts) with at least one id. Sorting takes 5 bytes per byte of sort key,
 * two or three of which encode a token. Errors: EINVAL (an id outside the vocabulary, no text, too many: 2^31 bytes), ENOMEM,
 * and those of saving. */
wg_status wg_datastore_write(const char *path, const wg_tokenizer *t, const int32_t *token, size_t n, wg_error *err);

/* The id at a place; -1 between texts, outside the store, and where the file is damaged. */
static inline int32_t wg_datastore_token(const wg_datastore *d, int64_t at)
{
    const int32_t x = at >= 0 && at < d->tokens ? d->token[at] : -1;
    return x < d->vocab ? x : -1;
}

/* Finds the suffixes [*low, *high) that begin with the n tokens of the key. */
void wg_datastore_find(const wg_datastore *d, const int32_t *key, int n, int64_t *low, int64_t *high);

#endif
