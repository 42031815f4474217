/* SPDX-License-Identifier: MIT
 * Reading ahead: the tensors that a model is loaded from, in that order. While one is packed, the disk reads those that come
 * next, up to 64 MB of them, so that a cold file is loaded at the speed of the disk. */
#ifndef WG_CORE_MODEL_READ_AHEAD_H
#define WG_CORE_MODEL_READ_AHEAD_H

#include "core/file/weights.h"

typedef struct wg_read_ahead {
    const wg_weights *weights;
    const wg_tensor **tensor; /* (room) */
    int n, room;
    int at, asked; /* the next tensor to load, and to request */
    size_t bytes;  /* requested and not yet loaded */
} wg_read_ahead;

/* Appends a tensor; false: out of memory. */
bool wg_read_ahead_add(wg_read_ahead *a, const wg_tensor *t);

/* Called before each added tensor is loaded. a NULL: does nothing. */
void wg_read_ahead_next(wg_read_ahead *a);

void wg_read_ahead_close(wg_read_ahead *a);

#endif
