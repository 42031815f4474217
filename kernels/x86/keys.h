/* SPDX-License-Identifier: MIT
 * Walks the keys of a row, chunk by chunk, as addresses; pages are resolved once per run of slots. Private to kernels/x86. */
#ifndef WG_KERNELS_X86_KEYS_H
#define WG_KERNELS_X86_KEYS_H

#include "kernels/ops.h"

typedef struct wg_key_walk {
    const wg_row_keys *keys;
    int slot;    /* next slot of the prefix */
    wg_mask anc; /* tail slots still to come */
} wg_key_walk;

static inline size_t wg_slot_bytes(const wg_kv_view *kv) { return (size_t)kv->kv_dim * (kv->type == WG_F32 ? 4 : 2); }

static inline const char *wg_slot_at(const wg_kv_view *kv, int slot)
{
    return kv->pool + (size_t)kv->page[slot / kv->page_slots] * kv->stride +
           (size_t)(slot % kv->page_slots) * wg_slot_bytes(kv);
}

/* Addresses of the next chunk's keys; returns their number, 0 at the end. The rest of the last group of four repeats the last
 * address, so that groups of four may be read whole. */
static inline int wg_chunk_next(wg_key_walk *walk, const char *key[WG_CHUNK_KEYS])
{
    const wg_kv_view *kv = walk->keys->kv;
    const size_t bytes = wg_slot_bytes(kv);
    int n = 0;
    while (n < WG_CHUNK_KEYS) {
        if (walk->slot == walk->keys->sinks) walk->slot += walk->keys->gap;
        const int end = walk->slot < walk->keys->sinks ? walk->keys->sinks : walk->keys->prefix;
        if (walk->slot >= end) break;
        const char *at = wg_slot_at(kv, walk->slot);
        int run = kv->page_slots - walk->slot % kv->page_slots;
        if (run > end - walk->slot) run = end - walk->slot;
        if (run > WG_CHUNK_KEYS - n) run = WG_CHUNK_KEYS - n;
        walk->slot += run;
        for (; run > 0; run--, at += bytes) key[n++] = at;
    }
    for (int b; n < WG_CHUNK_KEYS && (b = wg_mask_take(&walk->anc)) >= 0;) key[n++] = wg_slot_at(kv, walk->keys->tail + b);
    for (int i = n; n && i % 4; i++) key[i] = key[n - 1];
    return n;
}

#endif
