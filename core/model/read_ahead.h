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
    int at, asked; /* the next one to be loaded, and to be asked for */
    size_t bytes;  /* asked for and not loaded */
} wg_read_ahead;

/* Appends a tensor; false: out of memory. */
bool wg_read_ahead_add(wg_read_ahead *a, const wg_tensor *t);

/* Before a tensor is loaded, once for each that was added. NULL: nothing. */
void wg_read_ahead_next(wg_read_ahead *a);

void wg_read_ahead_close(wg_read_ahead *a);

#endif
