/* SPDX-License-Identifier: MIT
 * Contents of an external model's sequence (held_rows.h). */
#include "core/model/external/held_rows.h"

#include "core/base/mem.h"

wg_status wg_held_reserve(wg_held_rows *h, int n, wg_error *err)
{
    if (n <= h->room) return WG_OK;
    const int room = n + n / 2 + 256;
    int32_t *text = wg_realloc(h->text, (size_t)room, sizeof *text);
    if (!text) return wg_nomem(err, (size_t)room * sizeof *text, "a text that an external target holds");
    h->text = text;
    h->room = room;
    return WG_OK;
}

void wg_held_close(wg_held_rows *h) { wg_free(h->text); }

void wg_held_drop(wg_held_rows *h) { h->n = h->rows = 0; }

void wg_held_settle(wg_held_rows *h, const int32_t *prefix, int n, int *kept, int32_t *path, int *path_n)
{
    int same = 0, last = -1;
    wg_assert(n <= h->room);
    while (same < h->n && same < n && h->text[same] == prefix[same]) same++;
    *kept = same;
    *path_n = 0;
    for (int i = 0; i < h->rows && *kept == h->n && same < n; i++) /* down the tree, a child that the text has at a time */
        if (h->parent[i] == last && h->token[i] == prefix[same]) {
            h->text[same++] = h->token[i];
            path[(*path_n)++] = last = i;
        }
    h->n = same;
    h->rows = 0;
}

void wg_held_asked(wg_held_rows *h, const wg_asked_row *row, int n)
{
    for (int i = 0; i < n; i++) {
        h->token[i] = row[i].token;
        h->parent[i] = row[i].parent;
    }
    h->rows = n;
}
