/* SPDX-License-Identifier: MIT
 * The rows of p and q of a step on a CUDA device, and the device verification over them: the buffers behind device_cuda.c's
 * verify. */
#ifndef WG_CORE_MODEL_CUDA_VERIFY_BUFFERS_H
#define WG_CORE_MODEL_CUDA_VERIFY_BUFFERS_H

#include "core/model/device.h"
#include "kernels/cuda/gpu.h"

typedef struct wg_verify_buffers {
    size_t rows, trees, cells, key_bytes, scratch_cells; /* allocated sizes */
    double *p, *q;                                       /* (cells) rows of vocab each */
    int32_t *p_one_hot, *q_one_hot;
    uint64_t *keys;          /* of rows that are sampled */
    const wg_gpu_best *best; /* (rows, WG_GPU_BESTS) largest logits, borrowed; NULL: not computed yet */
    double *scratch;         /* wg_gpu_verify_cells a tree */
    wg_rule_tree *tree;
    wg_rule_path *path;
} wg_verify_buffers;

/* Allocates for *rows rows and so many trees. Where a bound on memory allows fewer rows, sets *rows to their number. Engines on
 * one device share the largest buffers. ENOMEM names the option to lower. */
wg_status wg_verify_buffers_open(wg_verify_buffers *r, wg_gpu *g, wg_rule_kind rule, int vocab, int trees, int *rows,
                                 wg_error *err);
void wg_verify_buffers_close(wg_verify_buffers *r, wg_gpu *g);

/* send: copies the trees and their rows of q. sample: computes p of rows first .. first + n-1 from their logits on the device.
 * finish: runs the rule and copies the paths. Failures are reported by the wait that ends the pass. */
void wg_cuda_verify_send(wg_verify_buffers *r, wg_gpu *g, int vocab, const wg_verify_spec *s);
void wg_cuda_verify_sample(wg_verify_buffers *r, wg_gpu *g, int vocab, const wg_verify_spec *s, const float *logits, int first,
                           int n);
void wg_cuda_verify_finish(wg_verify_buffers *r, wg_gpu *g, int vocab, const wg_verify_spec *s);

/* For decode loops (core/model/decode_loop.h): rows of q from logits; the rule over trees on the device. Paths stay there. */
void wg_cuda_verify_draft(wg_verify_buffers *r, wg_gpu *g, int vocab, const wg_gpu_chain *chain, const float *logits, int first,
                          int n);
void wg_cuda_verify_trees(wg_verify_buffers *r, wg_gpu *g, int vocab, const wg_rule *rule, int trees);

#endif
