/* SPDX-License-Identifier: MIT
 * Dumps of hidden states (taps, core/model/taps.h) in the two layouts that trainers of heads exchange:
 *
 *   vllm      a safetensors file per sample (vLLM's extract_hidden_states, speculators' hs_0.safetensors ...):
 *             token_ids (n) and hidden_states (n, taps, dim) in F32, BF16 or F16
 *   deepspec  a folder (DeepSpec's target cache, version 2): manifest.json, samples.idx with a record of 56 bytes a sample, and
 *             shards with the five arrays of each: tokens int32, attention and loss mask uint8, hidden states (n, taps, dim)
 *             and behind the final norm (n, dim), both BF16. Its target_layer_ids name what a layer puts out: id i is tap
 *             i + 1, id -1 the embedding.
 *
 * Writing streams: a few rows are in memory. A file appears when it is whole, a cache is one when its manifest is there, last.
 * Reading maps one file at a time; every length, offset and count is checked against the file before it is used. */
#ifndef WG_CORE_FILE_TAP_DUMP_H
#define WG_CORE_FILE_TAP_DUMP_H

#include "core/base/json.h"
#include "core/file/weights.h"

typedef enum wg_dump_layout { WG_DUMP_VLLM, WG_DUMP_DEEPSPEC } wg_dump_layout;
extern const char *const wg_dump_layouts[]; /* "vllm", "deepspec", NULL */

enum { WG_DUMP_TAPS = 64, WG_DUMP_RECORD = 56 };

/* ---- writing */

typedef struct wg_dump_plan {
    wg_dump_layout layout;
    int type; /* WG_F32 or WG_BF16 */
    int tap[WG_DUMP_TAPS], taps, dim;
    const char *model;    /* its path or name, for the manifest */
    uint64_t shard_bytes; /* deepspec: a sample that would make a shard larger begins the next one */
} wg_dump_plan;

typedef struct wg_dump_writer wg_dump_writer;

/* Makes the folder, which may exist if it is empty. EINVAL: a deepspec cache in another type than BF16, or with taps that do
 * not ascend; a folder that is not empty. EIO, ENOENT, ENOMEM. */
wg_status wg_dump_create(wg_dump_writer **out, const char *dir, const wg_dump_plan *plan, wg_error *err);

/* Begins a sample of n > 0 tokens. loss: (n) 1 where a token is trained on; NULL: all. */
wg_status wg_dump_begin(wg_dump_writer *w, const int32_t *token, const uint8_t *loss, int n, wg_error *err);

/* Its next rows: (rows, columns, dim), columns the taps of the plan and, of a deepspec cache, the state behind the norm. */
wg_status wg_dump_rows(wg_dump_writer *w, const float *x, int rows, wg_error *err);
wg_status wg_dump_end(wg_dump_writer *w, wg_error *err); /* of a sample all of whose rows were written */

/* Completes the dump. Frees w, also on failure. */
wg_status wg_dump_finish(wg_dump_writer *w, wg_error *err);
void wg_dump_abandon(wg_dump_writer *w); /* leaves whole files of samples, no cache; NULL is fine */

/* ---- reading */

/* Pointers into a mapped file, at any alignment: wg_dump_token and wg_dump_row read them. */
typedef struct wg_dump_sample {
    int64_t n;             /* tokens, 1 or more */
    const uint8_t *token;  /* (n) of token_bytes (4 or 8): none is negative or larger than INT32_MAX */
    const uint8_t *loss;   /* (n) NULL: the layout has none, as of: */
    const uint8_t *last;   /* (n, dim) behind the final norm */
    const uint8_t *hidden; /* (n, taps, dim) */
    int token_bytes, type, taps;
    int64_t dim;
} wg_dump_sample;

typedef struct wg_dump wg_dump;

/* Opens a safetensors file, a folder of them (in the order of the numbers in their names), or a cache. ENOENT, EIO; EFORMAT,
 * EUNSUPPORTED naming file and place. */
wg_status wg_dump_open(wg_dump **out, const char *path, wg_error *err);
void wg_dump_close(wg_dump *d); /* NULL is fine */

wg_dump_layout wg_dump_layout_of(const wg_dump *d);
int64_t wg_dump_samples(const wg_dump *d);
/* The taps of a cache: their number, at most WG_DUMP_TAPS. 0: the layout does not say which ones it has. */
int wg_dump_taps(const wg_dump *d, int tap[WG_DUMP_TAPS]);

/* Sample i, valid until the next call. Errors as of wg_dump_open. */
wg_status wg_dump_sample_at(wg_dump *d, int64_t i, wg_dump_sample *out, wg_error *err);

int32_t wg_dump_token(const wg_dump_sample *s, int64_t i);
/* Row i of tap t (from 0, of those that there are), or with t -1 of `last`: dim floats. */
void wg_dump_row(const wg_dump_sample *s, int64_t i, int t, float *out);

/* ---- the same over bytes in memory (borrowed); `path` stands in messages */

typedef struct wg_dump_cache {
    int64_t samples, dim;
    int tap[WG_DUMP_TAPS], taps, shards;
    char **shard; /* (shards) file names, owned */
} wg_dump_cache;

wg_status wg_dump_read_sample(const char *path, const void *bytes, size_t n, wg_dump_sample *out, wg_error *err);
wg_status wg_dump_read_manifest(wg_dump_cache *out, const wg_json *doc, wg_error *err);
void wg_dump_cache_free(wg_dump_cache *c);

/* Record i of the n bytes of samples.idx: which shard the sample is in, its tokens, and where its arrays begin there. */
typedef struct wg_dump_record {
    int shard;
    int64_t n;
    uint64_t at[5]; /* tokens, attention mask, loss mask, hidden, last */
} wg_dump_record;
wg_status wg_dump_read_record(const wg_dump_cache *c, const char *path, const void *index, size_t n, int64_t i,
                              wg_dump_record *out, wg_error *err);
wg_status wg_dump_place(const wg_dump_cache *c, const wg_dump_record *r, const char *path, const void *shard, size_t n,
                        wg_dump_sample *out, wg_error *err);

#endif
