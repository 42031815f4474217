/* SPDX-License-Identifier: MIT
 * The merge loop of both kinds of byte-pair encoding (BPE): while two neighbours can be joined, join the pair with the best
 * rank, leftmost on ties. Symbols form a linked list in text order; candidate pairs lie in a binary heap, and a pair with a
 * half that was joined elsewhere is dropped when it is popped. O(n log n), also for one word of a million characters. */
#ifndef WG_CORE_TEXT_MERGE_H
#define WG_CORE_TEXT_MERGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"
#include "core/text/normal.h"

typedef struct wg_symbol {
    uint32_t at, n;     /* its bytes in the piece of text; n == 0: merged away */
    int32_t prev, next; /* neighbours, -1 at the ends */
    int32_t id;         /* token, or -1 */
} wg_symbol;

typedef struct wg_pair {
    uint64_t key; /* rank above, index of the left symbol below: order of the heap */
    uint32_t n;   /* bytes of both halves when the pair was seen */
    int32_t id;   /* what the pair becomes */
} wg_pair;

typedef struct wg_merger { /* zero-initialise; grows to the longest piece, then allocates no more */
    wg_symbol *symbol;
    wg_pair *heap;
    char *text; /* of the piece, for kinds that rewrite it */
    wg_normal_room normal;
    size_t n_symbols, n_pairs, symbol_capacity, pair_capacity, text_capacity;
} wg_merger;

/* Whether two neighbours can be joined; then the token of the join, and its rank: lower is joined earlier. */
typedef bool wg_merge_fn(const void *user, const wg_symbol *left, const wg_symbol *right, uint32_t *rank, int32_t *id);

void wg_merger_free(wg_merger *m);

/* Starts a piece that will have at most n symbols (n < 2^31). Error: ENOMEM. */
wg_status wg_merger_begin(wg_merger *m, size_t n, wg_error *err);
/* Makes room for n bytes in m->text (the old ones are lost). Error: ENOMEM. */
wg_status wg_merger_text(wg_merger *m, size_t n, wg_error *err);
/* Appends a symbol of n bytes to the piece. */
void wg_merger_push(wg_merger *m, size_t n, int32_t id);
/* Joins until nothing can be joined. The result is the list from symbol 0 along `next`. */
void wg_merger_run(wg_merger *m, wg_merge_fn *may_join, const void *user);

/* The ids of a text under construction. */
typedef struct wg_ids {
    int32_t *v;
    size_t n, capacity;
    size_t unknown; /* an unknown token from here on may stand for what follows too */
} wg_ids;
wg_status wg_ids_push(wg_ids *ids, int32_t id, wg_error *err);

#endif
