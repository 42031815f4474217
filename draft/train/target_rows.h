/* SPDX-License-Identifier: MIT
 * The target's distributions at all positions of the packed sequences that students are trained on, computed by the inference
 * engine in blocks, as in a prefill. By the Prefix Law these are the rows that it has when it decodes the same texts. */
#ifndef WG_DRAFT_TRAIN_TARGET_ROWS_H
#define WG_DRAFT_TRAIN_TARGET_ROWS_H

#include "core/model/lm.h"
#include "draft/train/net.h"

typedef struct wg_target_rows wg_target_rows;

/* Options for passes of `sequences` sequences of `length` tokens; p = softmax(logits / temperature), one-hot at temperature 0.
 * lm, ops and pool are borrowed; the model has a cache of its own while this is open. Errors: EINVAL (the model's context is
 * shorter), EUNSUPPORTED (it gives no hidden states), ENOMEM. */
typedef struct wg_target_rows_options {
    wg_lm *lm;
    const wg_ops *ops;
    wg_pool *pool;
    double temperature;
    int sequences, length;
    const int32_t *kept; /* (n_kept) different tokens: only their p, which do not sum to 1, are kept. Borrowed */
    int n_kept;          /* NULL, 0: all tokens, by their ids */
    const int *tap;      /* (n_taps) hidden states that are kept of all rows (core/model/taps.h); copied */
    int n_taps;
} wg_target_rows_options;
wg_status wg_target_rows_open(wg_target_rows **out, const wg_target_rows_options *o, wg_error *err);
void wg_target_rows_close(wg_target_rows *t); /* NULL is fine */
/* Bytes without the model's cache. width: n_kept, or vocab; hidden: floats of all taps of a row. */
size_t wg_target_rows_need(int vocab, int width, int hidden, int sequences, int length, int threads);

/* (taps, sequences * length, dim) the hidden states of the last call; NULL without taps. */
const float *wg_target_rows_hidden(const wg_target_rows *t);

/* Computes the rows of a pass that have a target, from rows->token, start and position; the others are left as they were.
 * Sequences may be shorter than `length`. *rows is copied; its arrays are borrowed until the next call. Errors: those of the
 * model. */
wg_status wg_target_rows_compute(wg_target_rows *t, const wg_train_rows *rows, wg_error *err);

/* The same with rows from elsewhere: begin, then set for each row that has a target, which returns its p, (width) zeros. */
void wg_target_rows_begin(wg_target_rows *t, const wg_train_rows *rows);
float *wg_target_rows_set(wg_target_rows *t, int row, double entropy);
float *wg_target_rows_state(wg_target_rows *t, int row,
                            int tap); /* (dim) the hidden state number `tap` of a row, also to set */

int wg_target_rows_width(const wg_target_rows *t);               /* n_kept, or the vocabulary */
const float *wg_target_rows_p(const wg_target_rows *t, int row); /* (width) */
double wg_target_rows_entropy(const wg_target_rows *t, int row); /* - sum p log p over these */
/* The place in such a row of the token that a row of the last call has to predict; -1: none, or it is not kept. */
int32_t wg_target_rows_text(const wg_target_rows *t, int row);
const wg_train_rows *wg_target_rows_of(const wg_target_rows *t); /* rows of the last call */
int wg_target_rows_last(const wg_target_rows *t);                /* a row that has been computed; -1: none has */

#endif
