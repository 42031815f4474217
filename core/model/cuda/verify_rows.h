/* SPDX-License-Identifier: MIT
 * The rows of p and q of a step on a CUDA device, and what settles them: the buffers behind device_cuda.c's settle. */
#ifndef WG_CORE_MODEL_CUDA_VERIFY_ROWS_H
#define WG_CORE_MODEL_CUDA_VERIFY_ROWS_H

#include "core/model/device.h"
#include "kernels/cuda/gpu.h"

typedef struct wg_settle_room {
    size_t rows, trees, cells, key_bytes, scratch_cells; /* what there is room for */
    double *p, *q;          /* (cells) rows of vocab each */
    int32_t *p_point, *q_point;
    uint64_t *keys;         /* of rows that are sampled */
    const wg_gpu_best *best; /* of the logits that are there, (rows, WG_GPU_BESTS), borrowed; NULL: nobody has looked */
    double *scratch;        /* wg_gpu_settle_cells a tree */
    wg_rule_tree *tree;
    wg_rule_path *path;
} wg_settle_room;

/* Room for *rows rows and so many trees, or for as many rows as a bound on memory allows: *rows says. Engines on one device
 * share the largest room. ENOMEM names what to lower. */
wg_status wg_settle_room_open(wg_settle_room *r, wg_gpu *g, wg_rule_kind rule, int vocab, int trees, int *rows,
                              wg_error *err);
void wg_settle_room_close(wg_settle_room *r, wg_gpu *g);

/* The trees and their rows of q; p of rows first .. first + n-1 from their logits on the device; the rule, and its paths. What
 * fails on the way is told by the wait that ends the pass. */
void wg_settle_send(wg_settle_room *r, wg_gpu *g, int vocab, const wg_settling *s);
void wg_settle_sample(wg_settle_room *r, wg_gpu *g, int vocab, const wg_settling *s, const float *logits, int first, int n);
void wg_settle_finish(wg_settle_room *r, wg_gpu *g, int vocab, const wg_settling *s);

/* For loops (loop.h): rows of q from logits; the rule over trees that are there, its paths staying there. */
void wg_settle_draft(wg_settle_room *r, wg_gpu *g, int vocab, const wg_gpu_chain *chain, const float *logits, int first, int n);
void wg_settle_trees(wg_settle_room *r, wg_gpu *g, int vocab, const wg_rule *rule, int trees);

#endif
