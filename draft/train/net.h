/* SPDX-License-Identifier: MIT
 * The network that is trained: the transformer of core/model/forward.c over packed sequences, forward and backward, written
 * once for both element types of train_ops.h. It supports RMSNorm, rotary positions, grouped-query attention, SwiGLU, and a
 * head that is tied or not; it refuses biases, norms of heads, soft caps, windows, scaled positions and experts.
 *
 * With ends.steps > 0 the network is a head of EAGLE-3 instead (net_head.c; Li et al. 2025), which reads hidden states of a
 * target: one layer over the embedding beside a feature. The pass is training-time test: step 0 reads features made of the
 * target's states in every row, step s what step s - 1 gave in the row before, and attends to the keys that a draft of s tokens
 * has in the cache. Its logits are those of drafts: `steps` drafted rows for every row at which a draft may begin. */
#ifndef WG_DRAFT_TRAIN_NET_H
#define WG_DRAFT_TRAIN_NET_H

#include "core/model/arch.h"
#include "draft/train/train_ops.h"

/* What the names of tensors begin with that only a head has. */
#define WG_NET_OWN "head."

/* A tensor of the weights, with its name in a GGUF file. */
typedef struct wg_net_tensor {
    char name[40];
    int rows, columns; /* rows 1: a norm */
    size_t at;         /* index of its first element in wg_net.w */
    bool matrix;       /* a matrix of a layer: neither embedding, head nor norm */
    bool frozen;       /* keeps its values: it has no gradient, no state of the optimiser, and is not in checkpoints */
} wg_net_tensor;

/* The rows of one pass: `sequences` of `length` rows each. */
typedef struct wg_train_rows {
    int sequences, length;
    const int32_t *token;    /* (rows) */
    const int32_t *target;   /* (rows) the next token; -1: the row has no loss */
    const int32_t *start;    /* (rows) first row, in its sequence, of the row's document; attention begins there */
    const int32_t *position; /* (rows) position in the document */
    const float *hidden;     /* of heads: (taps, rows, dim) the target's hidden states; else NULL */
} wg_train_rows;

/* The row whose next token a row of logits predicts; -1: it has no loss. steps 0: itself. Of a head there are `steps` rows of
 * logits to every row: the draft that begins there, whose row s predicts the token after s drafted ones. A draft begins where
 * the row before is of the same document, and ends before a row without a target. */
int wg_net_row(const wg_train_rows *rows, int steps, int logits);

/* Adds the loss of rows [first, first + rows) of a pass to *sum and writes its gradient to dz, zeros for rows without a loss;
 * both are sums, not means. z, dz: (rows, vocab), vocab being wg_net_outputs. A call has at most WG_LOSS_ROWS consecutive rows
 * of one sequence and begins at a multiple of it; of a head they are rows of whole drafts (wg_net_row). Several threads call it
 * at once, with different rows and different `thread`. */
enum { WG_LOSS_ROWS = 64 };
typedef void wg_loss_fn(void *ctx, int thread, int first, int rows, int vocab, const float *z, float *dz, wg_loss_part *sum);

/* A loss that is plugged in. */
typedef struct wg_train_loss {
    wg_loss_fn *fn;
    void *ctx;
} wg_train_loss;

typedef struct wg_net wg_net;

/* Checks that the model can be trained. EUNSUPPORTED names the feature that cannot. */
wg_status wg_net_check(const wg_arch *a, const char *name, wg_error *err);

/* What becomes of embedding and head. Frozen ones keep their values. With kept > 0, which needs frozen ones, logits are those
 * of so many rows of the head alone, which wg_net_keep names: they are `kept` wide. steps > 0: the network is a head of
 * EAGLE-3, of one layer and on the host, trained over drafts of so many tokens, that reads `taps` hidden states of width dim.
 * NULL stands for zeros. */
typedef struct wg_net_ends {
    bool frozen;
    int kept, steps, taps; /* steps: at most WG_PATH_STEPS + 1 */
} wg_net_ends;

/* Bytes of weights, gradients and activations. */
typedef struct wg_net_bytes {
    size_t weights, gradients, activations, logits;
} wg_net_bytes;
wg_net_bytes wg_net_need(const wg_arch *a, const wg_net_ends *ends, size_t element, int sequences, int length, int threads);

/* Opens a network with zero weights and gradients. op and pool are borrowed. Loads OpenBLAS when products run on the host.
 * Errors: EUNSUPPORTED, ENOMEM (what was needed, and what to lower). */
wg_status wg_net_open(wg_net **out, const wg_train_ops *op, const wg_arch *a, int sequences, int length, wg_pool *pool,
                      wg_error *err);
/* The same with these ends. */
wg_status wg_net_open_ends(wg_net **out, const wg_train_ops *op, const wg_arch *a, const wg_net_ends *ends, int sequences,
                           int length, wg_pool *pool, wg_error *err);
void wg_net_close(wg_net *n); /* NULL is fine */

int wg_net_tensors(const wg_net *n);
const wg_net_tensor *wg_net_tensor_at(const wg_net *n, int i); /* in the order of a GGUF file */
const wg_arch *wg_net_arch(const wg_net *n);
size_t wg_net_elements(const wg_net *n);         /* of all weights, with the gaps between tensors, which stay zero */
size_t wg_net_trained_elements(const wg_net *n); /* of the weights that are not frozen, which come first */
int wg_net_outputs(const wg_net *n);             /* width of a row of logits: the vocabulary, or the kept rows */
int wg_net_steps(const wg_net *n);               /* of a head; else 0 */
const wg_train_ops *wg_net_ops(const wg_net *n);

/* (elements) of the table's type: the weights in host memory, as files and checkpoints have them. On a device they are a copy
 * of the trained ones: send copies them to the device, fetch back from it, valid after a successful wg_ops_wait. On the host
 * they are the trained ones, and both do nothing. */
void *wg_net_weights(wg_net *n);
void wg_net_send(wg_net *n);
void wg_net_fetch(wg_net *n);
void *wg_net_trained(wg_net *n);   /* weights in the memory of the table; so are the gradients */
void *wg_net_gradients(wg_net *n); /* (trained elements) */

/* Allocates host memory for the logits of plugged-in losses, which a device needs. ENOMEM. */
wg_status wg_net_plug(wg_net *n, wg_error *err);

void wg_net_clear_gradients(wg_net *n);

/* Copies the rows of the head with these numbers, ends.kept of them, from the weights in host memory, which have been read:
 * column i of the logits is then that of token[i]. ENOMEM. */
wg_status wg_net_keep(wg_net *n, const int32_t *token, wg_error *err);

/* Computes the hidden states of the rows and keeps what the gradient needs. */
void wg_net_forward(wg_net *n, const wg_train_rows *rows);
/* The input (rows, columns) of tensor i in the last forward pass, if it is a matrix of a layer or an untied head; else NULL. */
const void *wg_net_input(const wg_net *n, int i);
/* Computes logits (rows, outputs) of rows [first, first + rows) of the last forward pass into z, memory of the table; of a head
 * those of drafts that begin there, (rows, steps, outputs), but none behind the end of a sequence. */
void wg_net_logits(wg_net *n, int first, int rows, void *z);
/* The loss of all rows of the last forward pass. loss NULL: cross-entropy with rows->target over the whole vocabulary; another
 * loss needs wg_net_plug.
 * backward: adds the gradients of scale * loss. wg_ops_wait reports failures of a device. */
wg_loss_part wg_net_loss(wg_net *n, const wg_train_rows *rows, const wg_train_loss *loss, double scale, bool backward);

#endif
