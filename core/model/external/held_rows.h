/* SPDX-License-Identifier: MIT
 * The contents of one sequence of an external model: the tokens of a text, and behind them the rows of its last request, a tree
 * of which a path may become text. Before a request the wanted text is compared with them token by token, so commits, rejected
 * drafts, changed prompts and new sequences in the same slot are one case. */
#ifndef WG_CORE_MODEL_EXTERNAL_HELD_ROWS_H
#define WG_CORE_MODEL_EXTERNAL_HELD_ROWS_H

#include <stdint.h>

#include "core/base/error.h"

/* A row of a request. */
typedef struct wg_asked_row {
    int32_t token;
    int32_t parent;   /* an earlier row of the same sequence and request; -1: the last token that it keeps */
    int32_t position; /* tokens before it */
    int32_t logits;   /* row of the answer for its logits; -1: none */
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
void wg_held_drop(wg_held_rows *h); /* marks the sequence as empty */

/* Adapts h to a text that begins with `prefix` (n): it keeps the first *kept tokens of its text, then rows path[0 .. *path_n -
 * 1] of the last request, a path of the tree, and nothing else; h->n = *kept + *path_n. Room for n must be reserved. */
void wg_held_settle(wg_held_rows *h, const int32_t *prefix, int n, int *kept, int32_t *path, int *path_n);

/* Records n rows that were requested and answered. */
void wg_held_asked(wg_held_rows *h, const wg_asked_row *row, int n);

#endif
