/* SPDX-License-Identifier: MIT
 * Pages of a space that several ranks hold: each has the same page numbers and its own heads of keys and values. One rank has
 * the cache (kv.h) and decides; what it does to pages is repeated on the others by number. */
#ifndef WG_CORE_KV_KV_PART_H
#define WG_CORE_KV_KV_PART_H

#include "core/kv/kv.h"

typedef struct wg_kv_part wg_kv_part;

/* The pages of a rank. type: as in wg_kv_space. */
typedef struct wg_kv_shape {
    int page_slots, pages, layers, kv_heads, head_dim, type;
} wg_kv_shape;

/* Allocates the pages, zeroed. ENOMEM. */
wg_status wg_kv_part_open(wg_kv_part **out, const wg_kv_shape *shape, wg_error *err);
void wg_kv_part_close(wg_kv_part *p); /* NULL is fine */
char *wg_kv_part_pool(wg_kv_part *p); /* the pages, as memory of a cache of this shape */
size_t wg_kv_part_page_bytes(const wg_kv_part *p);

/* A slot by page and offset. */
typedef struct wg_kv_place {
    int32_t page, offset;
} wg_kv_place;

/* The slot that an offset of wg_kv_moves is, on the rank that has the cache. */
wg_kv_place wg_kv_part_place(const wg_kv_part *p, size_t at);

void wg_kv_part_copy(wg_kv_part *p, int32_t to, int32_t from);         /* a page */
void wg_kv_part_move(wg_kv_part *p, wg_kv_place to, wg_kv_place from); /* a slot, with its scales */

/* Sequence `i` as rows of a pass read it, with this page table, which is borrowed. It serves wg_kv_view_of with space 0 alone;
 * valid until the part is closed. ENOMEM. */
wg_status wg_kv_part_seq(wg_kv_part *p, int i, int32_t *page, wg_kv_seq **out, wg_error *err);

#endif
