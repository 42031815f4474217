/* SPDX-License-Identifier: MIT
 * The network that is trained: the transformer of core/model/forward.c over packed sequences, forward and backward, written
 * once for both element types of train_ops.h. Families: RMSNorm, rotary positions, grouped-query attention, SwiGLU, head tied
 * or not; no biases, norms of heads, caps, windows, scaled positions or experts. */
#ifndef WG_DRAFT_TRAIN_NET_H
#define WG_DRAFT_TRAIN_NET_H

#include "core/model/arch.h"
#include "draft/train/train_ops.h"

/* A tensor of the weights, with its name in a GGUF file. */
typedef struct wg_net_tensor {
    char name[40];
    int rows, columns; /* rows 1: a norm */
    size_t at;         /* of its first element in wg_net.w */
    bool matrix;       /* of a layer: neither embedding, head nor norm */
} wg_net_tensor;

/* What is trained on at once: `sequences` of `length` rows each. */
typedef struct wg_train_rows {
    int sequences, length;
    const int32_t *token;    /* (rows) */
    const int32_t *target;   /* (rows) the next token; -1: the row has no loss */
    const int32_t *start;    /* (rows) in the sequence: the first row of the row's document, all that it attends to */
    const int32_t *position; /* (rows) in the document */
} wg_train_rows;

/* Loss of the rows [first, first + rows) of a pass and its gradient, both summed and not divided by the rows: z and dz are
 * (rows, vocab); dz is to be written, rows without a loss as zeros. Parts are at most WG_LOSS_ROWS consecutive rows of one
 * sequence, and begin at multiples of it. Called by several threads at once, for different rows and different numbers `thread`.
 * *sum is added to. */
enum { WG_LOSS_ROWS = 64 };
typedef void wg_loss_fn(void *ctx, int thread, int first, int rows, int vocab, const float *z, float *dz, wg_loss_part *sum);

/* A loss that is plugged in. */
typedef struct wg_train_loss {
    wg_loss_fn *fn;
    void *ctx;
} wg_train_loss;

typedef struct wg_net wg_net;

/* EUNSUPPORTED names what the model has that cannot be trained. */
wg_status wg_net_check(const wg_arch *a, const char *name, wg_error *err);

/* Bytes of weights, gradients and activations. */
typedef struct wg_net_bytes {
    size_t weights, gradients, activations, logits;
} wg_net_bytes;
wg_net_bytes wg_net_need(const wg_arch *a, size_t element, int sequences, int length, int threads);

/* Weights and gradients are zero. op and pool are borrowed. Loads OpenBLAS where products are the host's.
 * Errors: EUNSUPPORTED, ENOMEM (what was needed, and what to lower). */
wg_status wg_net_open(wg_net **out, const wg_train_ops *op, const wg_arch *a, int sequences, int length, wg_pool *pool,
                      wg_error *err);
void wg_net_close(wg_net *n); /* NULL is fine */

int wg_net_tensors(const wg_net *n);
const wg_net_tensor *wg_net_tensor_at(const wg_net *n, int i); /* in the order of a GGUF file */
const wg_arch *wg_net_arch(const wg_net *n);
size_t wg_net_elements(const wg_net *n); /* of the weights together, with the gaps between tensors, which stay zero */
const wg_train_ops *wg_net_ops(const wg_net *n);

/* (elements), of the table's type. Weights as files and checkpoints see them: in host memory, on a device a copy of those that
 * are trained. send: the trained ones become this copy; fetch: the copy becomes the trained ones, as soon as wg_ops_wait says
 * that the device is well. On the host they are the same, and both do nothing. */
void *wg_net_weights(wg_net *n);
void wg_net_send(wg_net *n);
void wg_net_fetch(wg_net *n);
void *wg_net_trained(wg_net *n); /* in the memory of the table, as are: */
void *wg_net_gradients(wg_net *n);

/* Room on the host for the logits of losses that are plugged in, which a device needs. ENOMEM. */
wg_status wg_net_plug(wg_net *n, wg_error *err);

void wg_net_clear_gradients(wg_net *n);

/* From now on embedding and head keep their values: they get no gradient, and its products are left out. */
void wg_net_freeze_ends(wg_net *n);

/* Hidden states of the rows, with all that the gradient needs. */
void wg_net_forward(wg_net *n, const wg_train_rows *rows);
/* After it: the input (rows, columns) of tensor i, a matrix of a layer or an output head of its own; NULL: of others. */
const void *wg_net_input(const wg_net *n, int i);
/* After it: logits (rows, vocab) of rows [first, first + rows), into memory of the table. */
void wg_net_logits(wg_net *n, int first, int rows, void *z);
/* After it: the loss of all rows; loss NULL: cross-entropy with rows->target; another one needs wg_net_plug. With backward the
 * gradients of all weights of scale * loss are added. What a device has failed to do, wg_ops_wait tells. */
wg_loss_part wg_net_loss(wg_net *n, const wg_train_rows *rows, const wg_train_loss *loss, double scale, bool backward);

#endif
