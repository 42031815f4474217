/* SPDX-License-Identifier: MIT
 * The structs of the cache, shared by kv.c and kv_check.c, and by the test that corrupts them. Private to core/kv. */
#ifndef WG_CORE_KV_KV_IMPL_H
#define WG_CORE_KV_KV_IMPL_H

#include "core/kv/kv.h"

enum { WG_KV_WORDS = WG_KV_TAIL_MAX / 64 };

/* One model's storage. A page of it: [layer]{ keys (page_slots, kv_dim), values (page_slots, kv_dim) }, each part, with
 * its scales behind it, at a multiple of 64 bytes. Page numbers are common to all spaces, bytes are not: each space has its
 * own block. */
typedef struct wg_kv_store {
    int layers, kv_dim, head_dim, type;
    int window;       /* wg_kv_window */
    size_t row_bytes; /* one slot's key, or value, of one layer, */
    int scales;       /* and its scales, of types that have any */
    size_t value_at;  /* from a layer's keys to its values, */
    size_t scale_at;  /* and to the scales of its keys; those of its values are value_at further */
    size_t layer_bytes, page_bytes;
    char *pool;          /* pages x page_bytes; NULL before the first sequence */
    wg_kv_memory memory; /* of the pool; no alloc: host memory */
} wg_kv_store;

struct wg_kv {
    int page_slots, pages, max_slots;
    int spaces, sequences; /* registered, open */
    int back;              /* WG_KV_BACK */
    bool placed;           /* page memory exists: no more spaces */
    wg_kv_store space[WG_KV_SPACES];
    int32_t *refs; /* (pages) page tables that hold the page */
    int32_t *free; /* (pages) a stack of free pages */
    int free_pages;
    int32_t *count;   /* (pages) scratch of wg_kv_check and wg_kv_pages_alone */
    wg_kv_seq *first; /* all open sequences */
};

struct wg_kv_seq {
    wg_kv *kv;
    wg_kv_seq *prev, *next;
    int len, tail; /* committed slots, tail slots; IDLE is tail == 0 */
    int pages;     /* pages of the table, */
    int gone;      /* of which the first `gone` were returned to the pool; their numbers are void */
    int first[WG_KV_SPACES], valid[WG_KV_SPACES];
    uint64_t wrote[WG_KV_SPACES][WG_KV_WORDS]; /* tail slots written, per space */
    int32_t *page;                             /* (max_slots / page_slots, rounded up) */
};

/* Copies a slot of a space in host memory, by page and offset, with its scales. */
void wg_kv_slot_copy(const wg_kv *kv, const wg_kv_store *t, int32_t to_page, int to, int32_t from_page, int from);

static inline int wg_kv_pages_for(const wg_kv *kv, int slots) { return (slots + kv->page_slots - 1) / kv->page_slots; }

/* Slots below this are read in no space by rows at `len` or later; rows of a space that lags begin at its valid length. spare:
 * slots that are kept before them. */
static inline int wg_kv_unread(const wg_kv_seq *s, int len, int spare)
{
    int low = s->kv->spaces ? len : 0;
    for (int i = 0; i < s->kv->spaces; i++) {
        const int window = s->kv->space[i].window, next = s->valid[i] < len ? s->valid[i] : len;
        int from = window ? next + 1 - window - spare : 0;
        if (s->first[i] > len) from = 0; /* it will be read anew */
        else if (s->first[i] > from) from = s->first[i];
        if (from < low) low = from;
    }
    return low > 0 ? low : 0;
}

/* Slots from here on may still be written: the lowest valid length of any space, at most len. */
static inline int wg_kv_final_len(const wg_kv_seq *s)
{
    int low = s->len;
    for (int i = 0; i < s->kv->spaces; i++)
        if (s->valid[i] < low) low = s->valid[i];
    return low;
}

#endif
