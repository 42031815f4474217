/* SPDX-License-Identifier: MIT
 * Reading tensors ahead (read_ahead.h). */
#include "core/model/read_ahead.h"

#include "core/base/mem.h"

enum { MOST = 64 << 20 };

bool wg_read_ahead_add(wg_read_ahead *a, const wg_tensor *t)
{
    if (a->n == a->room) {
        const int room = a->room ? 2 * a->room : 64;
        const wg_tensor **p = wg_realloc(a->tensor, (size_t)room, sizeof(wg_tensor *));
        if (!p) return false;
        a->tensor = p;
        a->room = room;
    }
    a->tensor[a->n++] = t;
    return true;
}

void wg_read_ahead_next(wg_read_ahead *a)
{
    if (!a || a->at == a->n) return;
    for (; a->asked < a->n && a->bytes < MOST; a->asked++) {
        wg_weights_ahead(a->weights, a->tensor[a->asked]);
        a->bytes += a->tensor[a->asked]->bytes;
    }
    a->bytes -= a->tensor[a->at++]->bytes;
}

void wg_read_ahead_close(wg_read_ahead *a)
{
    wg_free(a->tensor);
    *a = (wg_read_ahead){ 0 };
}
