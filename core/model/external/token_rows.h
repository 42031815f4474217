/* SPDX-License-Identifier: MIT
 * Rows of a batch for an external model: tokens and parents in place of slots and masks. The cache stores tokens in place of
 * keys, so commits, rollbacks and trees are those of every model, and such a model gets the prefix that the cache holds. */
#ifndef WG_CORE_MODEL_EXTERNAL_TOKEN_ROWS_H
#define WG_CORE_MODEL_EXTERNAL_TOKEN_ROWS_H

#include "core/kv/batch.h"

/* The space of a cache that holds one token a slot (wg_lm_class.attach). */
wg_status wg_token_space(wg_kv *kv, int *space, wg_error *err);

/* The first row behind `lo` that belongs to another sequence. */
int wg_token_rows_end(const wg_batch *b, int lo);

/* Writes the tokens of rows [lo, hi), which are one sequence's, into the cache. Returns the length of their common prefix:
 * slots before the first of theirs. */
int wg_token_rows_put(const wg_batch *b, int lo, int hi, int space);

/* The n tokens of the prefix of row lo's sequence. */
void wg_token_rows_prefix(const wg_batch *b, int lo, int space, int n, int32_t *prefix);

/* parent[i]: of row lo + i, as an index of these rows, or -1: the last token of the prefix of n tokens. Written until hi. */
void wg_token_rows_parents(const wg_batch *b, int lo, int hi, int n, int32_t *parent);

/* Marks slots of all rows as written, after a pass that succeeded. */
void wg_token_rows_wrote(const wg_batch *b, int space);

#endif
