/* SPDX-License-Identifier: MIT
 * A ragged batch of rows for one forward pass: rows of many sequences, of chains and of trees, in any order that puts a
 * parent before its children. */
#ifndef WG_CORE_KV_BATCH_H
#define WG_CORE_KV_BATCH_H

#include <stdint.h>

#include "core/kv/kv.h"
#include "kernels/mask.h"

_Static_assert(WG_TREE_NODES <= (int)WG_KV_TAIL_MAX, "a tree fits the tail of a sequence");

typedef struct wg_row {
    int32_t token, position;
    int32_t slot;   /* the slot of its key and value */
    int32_t base;   /* the slot of position 0 (wg_batch_rebase) */
    int32_t prefix; /* it attends to slots 0..prefix-1, then slots tail + b for the bits b of anc: itself last */
    int32_t tail;
    wg_mask anc;
    int32_t sinks, gap; /* a sparse view leaves slots sinks..sinks+gap-1 of the prefix out; gap 0: none (ops.h) */
    int32_t logits;     /* row of the logits output that it fills, or -1 */
    wg_kv_seq *kv;
} wg_row;

struct wg_taps;
typedef struct wg_batch {
    int n, cap; /* rows */
    int logits; /* logit rows requested so far */
    wg_row *row;
    struct wg_taps *taps; /* receives the hidden states of all rows (core/model/taps.h); NULL: not requested. Borrowed */
} wg_batch;

wg_status wg_batch_open(wg_batch *b, int cap, wg_error *err);
void wg_batch_close(wg_batch *b);
void wg_batch_clear(wg_batch *b); /* no rows, no taps */

/* Appends a chain: tokens at positions = slots first, first+1, ...; each sees all slots before it and itself. `logits`: the
 * last `logits` rows get logits. Slots must be reserved (or be committed ones that are being caught up). Returns the index
 * of the first logit row (or -1). The caller keeps within cap. */
int wg_batch_chain(wg_batch *b, wg_kv_seq *kv, int first, const int32_t *token, int n, int logits);

/* Appends node `node` of a tree whose root is at tail slot 0: position wg_kv_len + depth, slot wg_kv_len + node, anc = bits of
 * the path root..node, itself included. Returns its logit row (or -1). */
int wg_batch_node(wg_batch *b, wg_kv_seq *kv, int node, int depth, wg_mask anc, int32_t token, bool logits);

/* Rows `from` .. n-1 become rows of a text that begins at slot `base` with position 0: they see no slot before it. Not for rows
 * with a sparse view. */
void wg_batch_rebase(wg_batch *b, int from, int base);

/* The row restricted to the last `window` positions, itself included: earlier slots of its prefix are left out, and when the
 * prefix ends before them, its first ancestors too. Sinks stay. */
wg_row wg_row_within(wg_row r, int window);

#endif
