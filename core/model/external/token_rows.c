/* SPDX-License-Identifier: MIT
 * Rows as tokens and parents (token_rows.h). */
#include "core/model/external/token_rows.h"

#include <string.h>

wg_status wg_token_space(wg_kv *kv, int *space, wg_error *err) { return wg_kv_space(kv, 1, 1, 1, WG_F32, space, err); }

int wg_token_rows_end(const wg_batch *b, int lo)
{
    int hi = lo + 1;
    while (hi < b->n && b->row[hi].kv == b->row[lo].kv) hi++;
    return hi;
}

int wg_token_rows_put(const wg_batch *b, int lo, int hi, int space)
{
    const wg_kv_view v = wg_kv_view_of(b->row[lo].kv, space, 0);
    int first = b->row[lo].slot;
    for (int r = lo; r < hi; r++) {
        const wg_row *row = &b->row[r];
        memcpy(wg_kv_key4(&v, row->slot), &row->token, sizeof row->token);
        if (row->slot < first) first = row->slot;
    }
    return first;
}

void wg_token_rows_prefix(const wg_batch *b, int lo, int space, int n, int32_t *prefix)
{
    const wg_kv_view v = wg_kv_view_of(b->row[lo].kv, space, 0);
    for (int i = 0; i < n; i++) memcpy(&prefix[i], wg_kv_key4(&v, i), sizeof *prefix);
}

/* The slot of the token before a row: its last ancestor but itself, or the end of its prefix. */
static int slot_before(const wg_row *row)
{
    wg_mask anc = row->anc;
    wg_mask_take_last(&anc);
    const int bit = wg_mask_take_last(&anc);
    return bit >= 0 ? row->tail + bit : row->prefix - 1;
}

void wg_token_rows_parents(const wg_batch *b, int lo, int hi, int n, int32_t *parent)
{
    for (int r = lo; r < hi; r++) {
        const int before = slot_before(&b->row[r]);
        int i = before < n ? lo - 1 : r - 1;
        while (i >= lo && b->row[i].slot != before) i--;
        parent[r - lo] = i - lo;
    }
}

void wg_token_rows_wrote(const wg_batch *b, int space)
{
    for (int r = 0; r < b->n; r++) wg_kv_wrote(b->row[r].kv, space, b->row[r].slot);
}
