/* SPDX-License-Identifier: MIT
 * The parts that the passes of a network are made of (net.c, net_head.c): its tensors, products, norms, rotations, attention,
 * SwiGLU. Private to draft/train. */
#ifndef WG_DRAFT_TRAIN_NET_PARTS_H
#define WG_DRAFT_TRAIN_NET_PARTS_H

#include "draft/train/net_impl.h"

/* Tensors of a layer, in the order of wg_net.tensor. */
enum { ATTN_NORM, Q, K, V, O, FFN_NORM, GATE, UP, DOWN, LAYER_TENSORS };

static inline void *at(const wg_net *n, void *base, size_t element) { return (char *)base + element * n->op->size; }
static inline const wg_net_tensor *of_layer(const wg_net *n, int layer, int which)
{
    return &n->tensor[1 + layer * LAYER_TENSORS + which];
}
static inline const wg_net_tensor *out_norm(const wg_net *n) { return &n->tensor[1 + n->arch.layers * LAYER_TENSORS]; }
static inline const wg_net_tensor *whole_head(const wg_net *n) { return n->arch.tied ? &n->tensor[0] : out_norm(n) + 1; }
static inline const wg_net_tensor *head(const wg_net *n) { return n->ends.kept ? &n->kept : whole_head(n); }
static inline void *weight(const wg_net *n, const wg_net_tensor *t) { return t == &n->kept ? n->kept_w : at(n, n->w, t->at); }
static inline void *gradient(const wg_net *n, const wg_net_tensor *t) { return at(n, n->g, t->at); }

/* y = x w^T, or y += x w^T with `add`. */
static inline wg_gemm product(const wg_net *n, const wg_net_tensor *t, const void *x, void *y, int rows, bool add)
{
    return (wg_gemm){ .tb = true,
                      .m = rows,
                      .n = t->rows,
                      .k = t->columns,
                      .alpha = 1,
                      .beta = add,
                      .a = x,
                      .b = weight(n, t),
                      .c = y,
                      .lda = t->columns,
                      .ldb = t->columns,
                      .ldc = t->rows };
}

/* dx = dy w, or dx += dy w with `add`. */
static inline wg_gemm product_back(const wg_net *n, const wg_net_tensor *t, const void *dy, void *dx, int rows, bool add)
{
    return (wg_gemm){ .m = rows,
                      .n = t->columns,
                      .k = t->rows,
                      .alpha = 1,
                      .beta = add,
                      .a = dy,
                      .b = weight(n, t),
                      .c = dx,
                      .lda = t->rows,
                      .ldb = t->columns,
                      .ldc = t->columns };
}

/* dw += dy^T x */
static inline wg_gemm weight_back(const wg_net *n, const wg_net_tensor *t, const void *dy, const void *x, int rows)
{
    return (wg_gemm){ .ta = true,
                      .m = t->rows,
                      .n = t->columns,
                      .k = rows,
                      .alpha = 1,
                      .beta = 1,
                      .a = dy,
                      .b = x,
                      .c = gradient(n, t),
                      .lda = t->rows,
                      .ldb = t->columns,
                      .ldc = t->columns };
}

static inline void products(wg_net *n, const wg_gemm *g, int count) { wg_products(n->pool, n->op, g, count); }
static inline void over(wg_net *n, wg_train_part which, const void *job, int items)
{
    wg_ops_run(n->pool, n->op, which, job, items, 1);
}

static inline void norm(wg_net *n, const wg_net_tensor *t, const void *x, void *y, void *r)
{
    const wg_norm_job j = {
        .x = x, .w = weight(n, t), .y = y, .r = r, .rows = n->rows, .dim = n->arch.dim, .eps = n->arch.eps
    };
    over(n, WG_OP_NORM, &j, n->rows);
}

/* Adds the gradient through the norm to dx, and that of its weight. */
static inline void norm_back(wg_net *n, const wg_net_tensor *t, const void *x, void *r, const void *dy)
{
    const wg_norm_job j = { .x = x,
                            .w = weight(n, t),
                            .dy = dy,
                            .r = r,
                            .dx = n->dx,
                            .dw = gradient(n, t),
                            .rows = n->rows,
                            .dim = n->arch.dim,
                            .eps = n->arch.eps };
    over(n, WG_OP_NORM_BACK, &j, n->rows);
    wg_ops_run(n->pool, n->op, WG_OP_NORM_WEIGHT_BACK, &j, n->arch.dim, WG_NET_ALIGNED);
}

static inline void turn(wg_net *n, const wg_train_rows *rows, void *x, int heads, bool back)
{
    const wg_arch *a = &n->arch;
    const wg_turn_job j = { .x = x,
                            .cs = n->cs,
                            .position = rows->position,
                            .rows = n->rows,
                            .heads = heads,
                            .hd = a->head_dim,
                            .n_rot = a->n_rot,
                            .adjacent = a->rope_adjacent,
                            .back = back };
    over(n, WG_OP_TURN, &j, n->rows);
}

static inline wg_attention_job attention_of(const wg_net *n, const wg_train_rows *rows, const wg_net_layer *l)
{
    const wg_arch *a = &n->arch;
    return (wg_attention_job){ .q = l->q,
                               .k = l->k,
                               .v = l->v,
                               .y = l->att,
                               .lse = l->lse,
                               .dy = n->datt,
                               .dq = n->dq,
                               .dk = n->dk,
                               .dv = n->dv,
                               .start = rows->start,
                               .work = n->work,
                               .sequences = n->sequences,
                               .length = n->length,
                               .heads = a->heads,
                               .kv_heads = a->kv_heads,
                               .hd = a->head_dim,
                               .scale = (double)a->attention_scale };
}

static inline wg_gate_job gate_of(const wg_net *n, const wg_net_layer *l)
{
    return (wg_gate_job){ .gate = l->gate,
                          .up = l->up,
                          .y = l->act,
                          .dy = n->dact,
                          .dgate = n->dgate,
                          .dup = n->dup,
                          .n = (size_t)n->rows * (size_t)n->arch.hidden };
}

static inline void copy(const wg_net *n, void *to, const void *from)
{
    wg_ops_copy(n->op, to, from, (size_t)n->rows * (size_t)n->arch.dim * n->op->size);
}

#endif
