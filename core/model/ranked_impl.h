/* SPDX-License-Identifier: MIT
 * What a model has beside its weights when several ranks compute it (split.h says which part each has). Rank 0 has the cache
 * and decides; it tells the others each pass, and what happens to pages, and all run the same stages, whose outputs they join.
 * Private to core/model. */
#ifndef WG_CORE_MODEL_RANKED_IMPL_H
#define WG_CORE_MODEL_RANKED_IMPL_H

#include "core/kv/kv_part.h"
#include "core/model/model_impl.h"
#include "core/model/ranks.h"

/* What rank 0 tells the others. */
typedef enum wg_order {
    WG_ORDER_QUIT,
    WG_ORDER_OPEN,
    WG_ORDER_CLOSE,
    WG_ORDER_POOL,
    WG_ORDER_FREE,
    WG_ORDER_COPY,
    WG_ORDER_MOVE,
    WG_ORDER_PASS,
    WG_ORDER_TIME
} wg_order;

/* An order begins with this; its parts follow, each at a multiple of 8 bytes. */
typedef struct wg_order_head {
    uint32_t order;          /* wg_order */
    uint32_t model;          /* its number */
    uint32_t pipeline, none; /* of OPEN */
} wg_order_head;

/* Pages of a cache that the model is attached to. The number of a pool is its place in the list. */
typedef struct wg_ranked_pool {
    wg_model *model;
    uint32_t number;
    wg_kv_shape shape; /* on this rank */
    wg_kv_part *part;  /* NULL: not allocated yet, or freed */
} wg_ranked_pool;

typedef struct wg_ranked {
    wg_comm *comm;
    wg_comm_span stage; /* the ranks of this one's stage */
    uint32_t number;
    bool agreed; /* all ranks have opened it: the others wait for orders */
    wg_rank_held held[WG_RANKS_MOST];
    wg_ranked_pool **pool;   /* they do not move: caches point to them */
    size_t pools, pool_room; /* of rank 0: those attached; of others those told */
    float *whole;            /* (rows, widest) joined columns */
    wg_row *row;             /* (rows) rows of this rank's tokens */
    wg_kv_seq **seq;         /* (rows) sequences of the pass */
    float *head;             /* (head_room) own columns of logits */
    size_t head_room;
    char *order; /* (order_room) of rank 0 */
    size_t order_room;
    double waited;   /* seconds in which this rank had no rows of other stages */
    wg_error lost;   /* the first failure of a join of this pass; code WG_OK: none */
    uint64_t digest; /* of this pass's rows, which all ranks compute alike */
} wg_ranked;

/* Sets m->part, and opens m->ranked where there are several ranks; the model's shape and its most rows are set. EINVAL: more
 * ranks than the model can have. EUNSUPPORTED: a device that ranks do not share. */
wg_status wg_ranked_open(wg_model *m, const wg_model_ranks *in, wg_error *err);
void wg_ranked_close(wg_model *m); /* tells the others; NULL is fine */

/* Registers storage in a cache: pages of all ranks. */
wg_status wg_ranked_attach(wg_model *m, wg_kv *kv, int *space, wg_error *err);

/* The pass as the others will run it. Rank 0, before its own stages. */
wg_status wg_ranked_tell_pass(wg_model *m, const wg_layer_plan *plan, int space, const wg_batch *b, wg_error *err);
/* Begins a pass on every rank, and ends it: rank 0 compares the digests of all. EIO: a join failed, or a rank's differs. */
void wg_ranked_begin(wg_model *m);
wg_status wg_ranked_end(wg_model *m, wg_error *err);
/* Whether all joins since the last pass began succeeded. */
wg_status wg_ranked_lost(const wg_model *m, wg_error *err);

/* Runs an order of rank 0. `order` is the whole message, which may be written. */
wg_status wg_ranked_obey(wg_model *m, void *order, size_t bytes, wg_error *err);

/* Joins columns of a split, `each` floats per unit: own (rows, own part), to (rows, all). The floats of `to`. */
const float *wg_ranked_join(wg_model *m, wg_split of, int each, const float *own, float *to, int rows);
/* The joined outputs of attention; x (rows, dim), what the layer adds them to, becomes a part of the pass's digest. */
const float *wg_ranked_attention(wg_model *m, const float *x, const float *own, float *to, int rows);
/* This rank's columns of a joined buffer. */
void wg_ranked_part(int from, int n, const float *whole, int all, float *own, int rows);
/* Of stages (split.h): takes the rows (rows, dim) of the stage before; hands them to the next one, the last to the first. */
void wg_ranked_take(wg_model *m, float *x, int rows);
void wg_ranked_post(wg_model *m, const float *x, int rows);
/* Rows of the first part of a pass that stages compute in two, so that one computes while the other waits; 0: in one. */
int wg_ranked_half(const wg_model *m, int rows);
/* Rows of the embedding: each rank reads its tokens'. own: scratch (rows, dim). */
void wg_ranked_embed(wg_model *m, const wg_row *row, int rows, float *x, float *own);
/* Logits of rank 0 from the columns of all. */
void wg_ranked_head(wg_model *m, const float *h, int rows, float *logits);
/* give of wg_experts: the rows of the rank that has expert i. */
const float *wg_ranked_expert(void *model, int i, const float *y, int rows);

#endif
