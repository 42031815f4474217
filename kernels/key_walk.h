/* SPDX-License-Identifier: MIT
 * Iterates over the keys of a row, chunk by chunk, as addresses; pages are resolved once per run of slots. Private to
 * kernels/. */
#ifndef WG_KERNELS_KEY_WALK_H
#define WG_KERNELS_KEY_WALK_H

#include "kernels/ops.h"

typedef struct wg_key_walk {
    const wg_row_keys *keys;
    int slot;    /* next slot of the prefix */
    wg_mask anc; /* tail slots still to come */
} wg_key_walk;

static inline size_t wg_slot_bytes(const wg_kv_view *kv) { return wg_kv_row_bytes(kv->type, kv->kv_dim); }

static inline const char *wg_slot_at(const wg_kv_view *kv, int slot)
{
    return kv->pool + (size_t)kv->page[slot / kv->page_slots] * kv->stride +
           (size_t)(slot % kv->page_slots) * wg_slot_bytes(kv);
}

/* WG_KV_Q8: the first scale of a slot's key; the next is page_slots further. */
static inline const float *wg_scales_at(const wg_kv_view *kv, int slot)
{
    return (const float *)(const void *)(kv->pool + (size_t)kv->page[slot / kv->page_slots] * kv->stride + kv->scale_at) +
           slot % kv->page_slots;
}

/* Addresses of the next chunk's keys, and of their first scales where `scale` is not NULL (WG_KV_Q8); returns their number,
 * 0 at the end. The rest of the last group of four repeats the last address, so that groups of four can be read completely. */
static inline int wg_chunk_next(wg_key_walk *walk, const char *key[WG_CHUNK_KEYS], const float **scale)
{
    const wg_kv_view *kv = walk->keys->kv;
    const size_t bytes = wg_slot_bytes(kv);
    int n = 0;
    while (n < WG_CHUNK_KEYS) {
        if (walk->slot == walk->keys->sinks) walk->slot += walk->keys->gap;
        const int end = walk->slot < walk->keys->sinks ? walk->keys->sinks : walk->keys->prefix;
        if (walk->slot >= end) break;
        const char *at = wg_slot_at(kv, walk->slot);
        const float *by = scale ? wg_scales_at(kv, walk->slot) : NULL;
        int run = kv->page_slots - walk->slot % kv->page_slots;
        if (run > end - walk->slot) run = end - walk->slot;
        if (run > WG_CHUNK_KEYS - n) run = WG_CHUNK_KEYS - n;
        walk->slot += run;
        for (; run > 0; run--, at += bytes) {
            if (scale) scale[n] = by++;
            key[n++] = at;
        }
    }
    for (int b; n < WG_CHUNK_KEYS && (b = wg_mask_take(&walk->anc)) >= 0;) {
        if (scale) scale[n] = wg_scales_at(kv, walk->keys->tail + b);
        key[n++] = wg_slot_at(kv, walk->keys->tail + b);
    }
    for (int i = n; n && i % 4; i++) {
        if (scale) scale[i] = scale[n - 1];
        key[i] = key[n - 1];
    }
    return n;
}

/* The same of chunk `chunk` alone. */
static inline int wg_chunk_keys(const wg_row_keys *keys, int chunk, const char *key[WG_CHUNK_KEYS], const float **scale)
{
    const int prefix = keys->prefix - keys->gap, at = chunk * WG_CHUNK_KEYS;
    wg_key_walk walk = { keys, keys->prefix, keys->anc };
    if (at < prefix) walk.slot = at < keys->sinks ? at : at + keys->gap;
    for (int i = prefix; i < at; i++) wg_mask_take(&walk.anc);
    return wg_chunk_next(&walk, key, scale);
}

/* Whether two rows see the same keys in a chunk, as far as their prefixes and views show it. */
static inline bool wg_same_chunk(const wg_row_keys *a, const wg_row_keys *b, int chunk)
{
    const int end = (chunk + 1) * WG_CHUNK_KEYS;
    return a->kv->page == b->kv->page && a->kv->pool == b->kv->pool && a->sinks == b->sinks && a->gap == b->gap &&
           a->prefix - a->gap >= end && b->prefix - b->gap >= end;
}

/* A rectangle of the items of a stage (op_list.h): kv heads [head,heads_end), of each the columns [column,columns_end), of each
 * the slots [slot,end). More than one column: all slots; more than one kv head: all of both. */
typedef struct wg_rect {
    int head, heads_end, column, columns_end, slot, end;
} wg_rect;

/* The rectangle with which the items [i,last) begin, where a kv head has `columns` columns of `slots` slots; returns the item
 * after it. */
static inline int wg_rect_next(wg_rect *r, int i, int last, int slots, int columns)
{
    const int x = i / slots, slot = i % slots, whole = slot ? 0 : (last - i) / slots, column = x % columns;
    *r = (wg_rect){ .head = x / columns,
                    .heads_end = x / columns + 1,
                    .column = column,
                    .columns_end = column + 1,
                    .slot = slot,
                    .end = slots };
    if (whole == 0) {
        if (last - i < slots - slot) r->end = slot + last - i;
        return i + r->end - slot;
    }
    r->columns_end = whole < columns - column ? column + whole : columns;
    if (column == 0 && whole > columns) r->heads_end = r->head + whole / columns;
    return i + slots * (r->columns_end - column) * (r->heads_end - r->head);
}

#endif
