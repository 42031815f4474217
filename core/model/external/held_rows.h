/* SPDX-License-Identifier: MIT
 * What a model elsewhere holds of one sequence: the tokens of a text, and behind them the rows of its last request, a tree of
 * which a path may join the text. Before a request the text wanted is compared with them token by token, so a commit, a
 * rejected draft, a prompt that continues differently and a new sequence in the same place are one case. */
#ifndef WG_CORE_MODEL_EXTERNAL_HELD_ROWS_H
#define WG_CORE_MODEL_EXTERNAL_HELD_ROWS_H

#include <stdint.h>

#include "core/base/error.h"

/* A row that is asked of such a model. */
typedef struct wg_asked_row {
    int32_t token;
    int32_t parent;   /* an earlier row of the same sequence and request; -1: the last token that it keeps */
    int32_t position; /* tokens before it */
    int32_t logits;   /* which row of the answer gets its logits; -1: none wanted */
} wg_asked_row;

typedef struct wg_held_rows {
    int32_t *text; /* (room) of which n are held; grows */
    int n, room;
    int32_t *token, *parent; /* (most) the rows of the last request: borrowed */
    int rows;
} wg_held_rows;

/* Room for a text of n tokens. ENOMEM: nothing has changed. */
wg_status wg_held_reserve(wg_held_rows *h, int n, wg_error *err);
void wg_held_close(wg_held_rows *h);
void wg_held_drop(wg_held_rows *h); /* it holds nothing any more */

/* Makes h what it is to be before a text of `prefix` (n) goes on: the first *kept tokens of its text, then rows path[0 ..
 * *path_n - 1] of the last request, a path of the tree, and nothing else. h->n = *kept + *path_n tokens of the prefix. Room
 * for n is reserved. */
void wg_held_settle(wg_held_rows *h, const int32_t *prefix, int n, int *kept, int32_t *path, int *path_n);

/* These n rows were asked and answered. */
void wg_held_asked(wg_held_rows *h, const wg_asked_row *row, int n);

#endif
