/* SPDX-License-Identifier: MIT
 * One block of memory; pages of unused rows are never touched. */
#include "core/dist/workspace.h"

#include "core/base/mem.h"

wg_status wg_workspace_open(wg_workspace *w, int vocab, wg_error *err)
{
    const size_t V = (size_t)vocab, rows = (size_t)WG_WORK_ROWS + 1;
    *w = (wg_workspace){ .vocab = vocab, .row = wg_alloc(rows * V, sizeof *w->row) };
    if (!w->row) return wg_nomem(err, rows * V * sizeof *w->row, "rows for a rule to work in");
    w->packed = w->row + (size_t)WG_WORK_ROWS * V;
    return WG_OK;
}

void wg_workspace_close(wg_workspace *w)
{
    wg_free(w->row);
    *w = (wg_workspace){ 0 };
}
