/* SPDX-License-Identifier: MIT
 * The visible slots of rows of chains and trees. */
#include <criterion/criterion.h>

#include "core/base/mem.h"
#include "core/kv/batch.h"

/* Positions 0..9 in the prefix, then nodes 0, 3 and 5 of the tail at 10, 11 and 12. */
Test(batch, rows_within_a_window)
{
    const wg_mask anc = wg_mask_with(wg_mask_with(wg_mask_bit(0), 3), 5);
    const wg_row r = { .position = 12, .prefix = 10, .tail = 10, .anc = anc };
    static const struct {
        int window, gap, first; /* the lowest node that it sees */
    } row[] = { { 20, 0, 0 }, { 13, 0, 0 }, { 12, 1, 0 }, { 5, 8, 0 }, { 3, 10, 0 }, { 2, 10, 3 }, { 1, 10, 5 } };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        wg_row w = wg_row_within(r, row[i].window);
        cr_assert(w.sinks == 0 && w.gap == row[i].gap, "window %d: gap %d", row[i].window, w.gap);
        const int keys = w.prefix - w.gap + wg_mask_count(&w.anc);
        cr_assert_eq(keys, row[i].window < 13 ? row[i].window : 13);
        cr_assert(wg_mask_last(&w.anc) == 5 && wg_mask_take(&w.anc) == row[i].first);
    }
    wg_row sparse = r; /* a submodel's view: sinks stay, the longer gap counts */
    sparse.sinks = 2, sparse.gap = 4;
    cr_assert(wg_row_within(sparse, 10).gap == 4 && wg_row_within(sparse, 5).gap == 6 && wg_row_within(sparse, 5).sinks == 2);
}

Test(batch, chain_and_node_rows)
{
    wg_error err;
    wg_kv *kv;
    wg_kv_seq *s;
    wg_batch b;
    int space;
    cr_assert(wg_kv_open(&kv, 4, 16, 64, &err) == WG_OK && wg_kv_space(kv, 1, 1, 4, WG_F32, &space, &err) == WG_OK);
    cr_assert(wg_kv_seq_open(kv, &s, &err) == WG_OK && wg_kv_reserve(s, 5, &err) == WG_OK &&
              wg_batch_open(&b, 8, &err) == WG_OK);
    wg_kv_commit_chain(s, 5);

    const int32_t token[] = { 11, 12, 13 };
    cr_assert(wg_batch_chain(&b, s, 3, token, 3, 2) == 0);
    for (int i = 0; i < 3; i++) {
        const wg_row *r = &b.row[i];
        cr_assert(r->token == 11 + i && r->position == 3 + i && r->slot == 3 + i && r->prefix == 3 + i && r->tail == 3 + i);
        cr_assert(r->anc.w[0] == 1 && r->kv == s && r->logits == i - 1);
    }
    cr_assert(wg_batch_chain(&b, s, 0, token, 2, 0) == -1);
    cr_assert(wg_batch_chain(&b, s, 0, token, 0, 0) == -1);
    cr_assert(b.n == 5 && b.logits == 2);

    const wg_mask below = wg_mask_with(wg_mask_bit(0), 4);
    /* node 6 at depth 2 below nodes 0 and 4 */
    cr_assert(wg_batch_node(&b, s, 6, 2, wg_mask_with(below, 6), 99, true) == 2);
    cr_assert(wg_batch_node(&b, s, 63, 1, wg_mask_with(wg_mask_bit(0), 63), 98, false) == -1);
    const wg_row *r = &b.row[5];
    cr_assert(r->token == 99 && r->position == 7 && r->slot == 11 && r->prefix == 5 && r->tail == 5 && r->anc.w[0] == 0x51 &&
              r->logits == 2);
    cr_assert(b.row[6].slot == 68 && b.row[6].position == 6 && b.row[6].logits == -1);
    cr_assert(b.n == 7 && b.logits == 3);
    wg_batch_clear(&b);
    cr_assert(b.n == 0 && b.logits == 0 && b.cap == 8);

    wg_batch_close(&b);
    wg_kv_seq_close(s);
    wg_kv_close(kv);
}

Test(batch, open_fails_with_a_reason)
{
    wg_error err;
    wg_batch b;
    cr_assert(wg_batch_open(&b, 0, &err) == WG_EINVAL);
    cr_assert_str_eq(err.text, "a batch of 0 rows: expected at least 1");
    wg_mem_fail_at(1, false);
    cr_assert(wg_batch_open(&b, 8, &err) == WG_ENOMEM);
    wg_batch_close(&b);
}
