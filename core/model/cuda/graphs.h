/* SPDX-License-Identifier: MIT
 * A CUDA graph per recorded pass, found by a key of everything that determines its launches. The first pass of a key runs
 * without a graph (a pass that runs once is not worth recording, and it loads every kernel), the second is recorded, later
 * ones are replayed.
 *
 * Invariant: a graph holds addresses of weights, buffers and pages, so all graphs are dropped when any of these is freed.
 * There are at most WG_GRAPHS keys; a new one replaces the least recently used. */
#ifndef WG_CORE_MODEL_CUDA_GRAPHS_H
#define WG_CORE_MODEL_CUDA_GRAPHS_H

#include "core/model/submodel.h"
#include "kernels/cuda/gpu.h"

enum { WG_GRAPHS = 64, WG_GRAPH_ROWS = 64, WG_GRAPH_LAYERS = 128 }; /* keys; rows of the largest; layers of a plan that skips */

/* Compared as bytes: zeroed before it is filled. */
typedef struct wg_graph_key {
    const void *model, *pool;   /* whose pass, over which pages */
    const void *taps;           /* where its hidden states go */
    int64_t rows, asked, spans; /* rounded up; asked: rows with logits, -1 when all */
    int64_t layers;
    uint64_t skip[WG_GRAPH_LAYERS / 32]; /* two bits a layer */
} wg_graph_key;

typedef struct wg_graph {
    wg_graph_key key;
    void *ready;             /* of the device; NULL: noted */
    const wg_gpu_best *best; /* where its head writes the largest logits; NULL: nowhere */
    uint64_t used;           /* when, in passes; 0: no key */
} wg_graph;

typedef struct wg_graphs {
    wg_gpu *gpu; /* borrowed */
    uint64_t now;
    wg_graph at[WG_GRAPHS];
} wg_graphs;

/* Rows of a pass, or of its logits, rounded up to 1, 2, 4, 8, 16, 32, 48 or 64; more than that: as they are. Spans of so many
 * keys, rounded up to a power of two. */
int wg_graph_rows(int n);
int wg_graph_spans(int keys);

/* Fills the fields of the plan; false: the plan has more layers than a key can hold. */
bool wg_graph_plan(wg_graph_key *key, const wg_layer_plan *plan);

/* The entry of this key. *first: it is new, and its pass has not run before. */
wg_graph *wg_graphs_find(wg_graphs *g, const wg_graph_key *key, bool *first);
void wg_graphs_clear(wg_graphs *g);

#endif
