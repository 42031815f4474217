/* SPDX-License-Identifier: MIT
 * The KV-cache manager: one pool of pages, one page table per sequence, and in every page room for each registered space
 * (the target's layers, the draft model's ...). Allocation, sharing, fork, commit and rollback are decided once for all
 * models. Modelled on a database pager: reserve -> (forward passes write) -> commit | rollback.
 *
 *      IDLE --reserve--> TAIL --commit | rollback--> IDLE          (reserve in TAIL grows the tail)
 *
 * Slots 0..len-1 of a sequence are committed: slot i holds position i. Slots len..len+tail-1 are the tail: slot len + i belongs
 * to node i of the draft tree (or to the ith token of a prefill chain). A slot is not a position: keys are rotated by depth
 * before they are stored, so that commit is a plain copy.
 *
 * Invariants (wg_kv_check tests them all; a hard build after every step):
 *  (1) a page with no references is on the free list, and only there; references count the page tables that hold it;
 *  (2) slot i of a sequence is page[i / P], offset i % P, and exactly the pages for len + tail slots are held, but for the
 *      first ones that have gone back (7);
 *  (3) every page that holds a slot >= the lowest valid length of any space (what may still be written) has exactly one
 *      reference while in TAIL: reserve copies shared pages first;
 *  (4) commit and rollback leave the tail empty; commit keeps the slots of path[0] < path[1] < ... in that order, compacted;
 *  (5) reserve either succeeds or changes nothing; commit and rollback never fail and never allocate;
 *  (6) first[space] <= valid[space] <= len: slots first..valid-1 of that space hold the keys and values of these tokens. first
 *      is 0 unless the space was restarted there: a model whose context is shorter than the text reads the end of it;
 *  (7) pages of which no space will read a slot go back to the pool at a commit: those behind the windows of all spaces (or
 *      before their first slot). Committed slots within WG_KV_BACK of the end can still be dropped.                          */
#ifndef WG_CORE_KV_KV_H
#define WG_CORE_KV_KV_H

#include <stdint.h>

#include "core/base/error.h"
#include "kernels/mask.h"
#include "kernels/ops.h"

enum { WG_KV_SPACES = 8, WG_KV_TAIL_MAX = 1024, WG_KV_BACK = WG_TREE_NODES };

/* Element types of a cache by the names that options give them, and their ids in the same order. */
extern const char *const wg_kv_type_names[]; /* "f32", "f16", "bf16", "q8", NULL */
extern const int wg_kv_type_ids[];
const char *wg_kv_type_name(int type);                                      /* of any type, for messages */
size_t wg_kv_token_bytes(int type, int layers, int kv_heads, int head_dim); /* a token's keys and values, with their scales */

typedef struct wg_kv wg_kv;         /* one per engine; not thread-safe */
typedef struct wg_kv_seq wg_kv_seq; /* owned by the wg_kv; closed with wg_kv_seq_close */

/* page_slots: tokens per page (1..256; a hard build uses 2, and as many pages as hold the same tokens). max_slots: the longest
 * sequence incl. its tail. Pages are allocated when the first sequence opens: `pages` of them. */
wg_status wg_kv_open(wg_kv **out, int page_slots, int pages, int max_slots, wg_error *err);
void wg_kv_close(wg_kv *kv); /* NULL is fine; all sequences must be closed */

/* Registers a model's storage: layers x (keys, values) x kv_heads x head_dim elements of type f32, f16, bf16 or WG_KV_Q8 per
 * slot. Only before the first sequence is opened. *space is its number. EINVAL, EFULL (more than WG_KV_SPACES). */
wg_status wg_kv_space(wg_kv *kv, int layers, int kv_heads, int head_dim, int type, int *space, wg_error *err);

/* No row of this space reads more than the last `window` slots before the one that it fills, itself included; 0 (as after
 * registering): it may read all. Only before the first sequence is opened. */
void wg_kv_window(wg_kv *kv, int space, int window);
/* The most slots whose pages a sequence holds at once if all spaces have this window and tails have at most `tail` slots. */
int wg_kv_window_slots(int window, int tail, int page_slots);

/* Moves of slots within a pool, in order. A slot is `count` pieces of `bytes` bytes, `stride` apart; from and to are offsets of
 * the first piece, in bytes from the pool's begin. No slot is read after it was written. */
enum { WG_KV_MOVES = 64 };
typedef struct wg_kv_moves {
    size_t bytes, stride;
    int count, n;
    size_t to[WG_KV_MOVES], from[WG_KV_MOVES];
} wg_kv_moves;

/* The memory of a space's pages, when it is not the host's; page numbers are common to all spaces, memory is not. */
typedef struct wg_kv_memory {
    const char *name; /* "cuda:0" */
    void *user;
    char *(*alloc)(void *user, size_t bytes); /* all pages at once, zeroed; NULL: out of memory */
    void (*free)(void *user, char *pool);     /* frees the result of alloc; `user` must live until then */
    /* These cannot fail, and run in order with the passes that read and write. copy: a page. */
    void (*copy)(void *user, char *to, const char *from, size_t bytes);
    void (*move)(void *user, char *pool, const wg_kv_moves *moves);
    bool scales; /* move takes a slot's scales along, so the type may be q8 */
} wg_kv_memory;
/* The same with pages in `memory` (copied; NULL: host memory). */
wg_status wg_kv_space_at(wg_kv *kv, const wg_kv_memory *memory, int layers, int kv_heads, int head_dim, int type, int *space,
                         wg_error *err);

int wg_kv_page_slots(const wg_kv *kv);
int wg_kv_pages(const wg_kv *kv);
int wg_kv_pages_free(const wg_kv *kv);
int wg_kv_pages_most(const wg_kv *kv); /* most pages of one sequence */
int wg_kv_pages_held(const wg_kv_seq *s);
/* The number of pages that only these n sequences of one cache hold; a shared page counts once. Uses the cache's scratch. */
int wg_kv_pages_alone(wg_kv_seq *const *seq, int n);
int wg_kv_spaces(const wg_kv *kv); /* registered so far */

wg_status wg_kv_seq_open(wg_kv *kv, wg_kv_seq **out, wg_error *err);
void wg_kv_seq_close(wg_kv_seq *s); /* NULL is fine; in TAIL it rolls back first */

/* A new sequence with the same committed slots; pages are shared, copy-on-write. `from` must be IDLE. */
wg_status wg_kv_fork(wg_kv_seq *from, wg_kv_seq **out, wg_error *err);

/* Makes the tail at least n slots long. EFULL: no pages (the message says how many are missing and which option to raise);
 * ECONTEXT: past max_slots; nothing has changed then. */
wg_status wg_kv_reserve(wg_kv_seq *s, int n, wg_error *err);

/* Keeps tail slots path[0] < path[1] < ... < path[n-1] as committed slots len .. len+n-1 and drops the rest. A space in which
 * not all of the path was written keeps the longest written prefix (its valid length). */
void wg_kv_commit(wg_kv_seq *s, const int16_t *path, int n);
void wg_kv_commit_chain(wg_kv_seq *s, int n); /* path = 0, 1, ..., n-1; n up to the tail */
void wg_kv_rollback(wg_kv_seq *s);            /* IDLE or TAIL */

/* Drops committed slots from `len` on (a prompt that continues differently); all of them where a page has gone back that the
 * next token would read (7). IDLE only. */
void wg_kv_truncate(wg_kv_seq *s, int len);

int wg_kv_len(const wg_kv_seq *s);
int wg_kv_tail(const wg_kv_seq *s);
int wg_kv_first(const wg_kv_seq *s, int space);
int wg_kv_valid(const wg_kv_seq *s, int space);
bool wg_kv_holds(const wg_kv_seq *s, int space, int slot); /* whether the slot, committed or in the tail, was written in this
                                                            * space */

/* Marks a slot as written by a forward pass; slot < len + tail. A slot < len must be the space's valid length (the next
 * committed slot to be caught up). */
void wg_kv_wrote(wg_kv_seq *s, int space, int slot);

/* Empties a space before it is read again from slot `from` <= len on: first and valid become `from`. False, with nothing
 * changed: pages of these slots have gone back, or are shared while in TAIL. */
bool wg_kv_restart(wg_kv_seq *s, int space, int from);

/* Invalidates tail slots len + from .. of a space: their contents belong to a draft that was dropped. */
void wg_kv_unwrite(wg_kv_seq *s, int space, int from);
/* Renumbers the nodes of a draft tree in a space: tail slot i takes the contents of tail slot slot[i], i < n, slot[] ascending;
 * the rest of the tail is invalidated. Cannot fail. */
void wg_kv_renumber(wg_kv_seq *s, int space, const int16_t *slot, int n);

/* The view of layer `layer` of a space for attention and kv_store. Valid until the next reserve, commit, fork or close. */
wg_kv_view wg_kv_view_of(const wg_kv_seq *s, int space, int layer);

/* The key of a slot in a space of one key of four bytes; its value is value_at bytes after it. For language models that keep
 * tokens instead of keys. */
static inline char *wg_kv_key4(const wg_kv_view *v, int slot)
{
    return v->pool + (size_t)v->page[slot / v->page_slots] * v->stride + (size_t)(slot % v->page_slots) * 4;
}

/* Checks every invariant over the pool and all sequences. EINVAL with the number of the broken invariant. */
wg_status wg_kv_check(const wg_kv *kv, wg_error *err);

#endif
